"""A package index on loopback for pip, which can fail on purpose, and its wheel."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "smallest"


def wheel(version: str = "1.0") -> bytes:
    """Return a package with one module."""
    made = io.BytesIO()
    meta = f"{NAME}-{version}.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        files = {
            f"{NAME}.py": f"VERSION = '{version}'\n",
            f"{meta}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n",
            f"{meta}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        records = [f"{name},," for name in (*files, f"{meta}/RECORD")]
        for name, text in {**files, f"{meta}/RECORD": "\n".join(records) + "\n"}.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


def pin(version: str = "1.0") -> str:
    """Return its line in a file of pins."""
    return f"{NAME}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel()).hexdigest()}\n"


class Index(ThreadingHTTPServer):
    """An index that refuses a number of requests with a code, or never answers; it records all requests."""

    refusals = 0
    is_silent = False
    code = 503

    def __init__(self) -> None:
        """Listen on a free port."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        """The value for PIP_INDEX_URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class _Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        if self.server.is_silent:
            self.server.ended.wait()
            return
        if self.server.refusals:
            self.server.refusals -= 1
            self.send_error(self.server.code)
            return
        file = f"{NAME}-1.0-py3-none-any.whl"
        is_wheel = self.path.endswith(".whl")
        body = wheel() if is_wheel else f'<a href="/{file}">{file}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[Index]:
    """Run an index until the block ends."""
    with Index() as index:
        thread = threading.Thread(target=index.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield index
        finally:
            index.ended.set()
            index.shutdown()
            thread.join()
