"""An API server that gives recorded answers and remembers its requests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

Answer = Any  # a body, (status, body), or text
TOKEN = "not-a-secret-of-anybody"


@dataclass
class Server:
    """The server's address, its answers by path (or `METHOD path`), and the requests that it got."""

    url: str
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    delay_s: float = 0.0

    @property
    def methods(self) -> set[str]:
        """The methods of all requests."""
        return {method for method, *_ in self.asked}

    @property
    def paths(self) -> list[str]:
        """The paths of all requests."""
        return [path for _, path, *_ in self.asked]

    def kubeconfig(self, folder: Path, *contexts: str, user: Mapping[str, Any] | None = None) -> Path:
        """Write a kubeconfig with these contexts, all of this server."""
        path = folder / "kubeconfig"
        body = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "one", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": dict(user or {"token": TOKEN})}],
            "contexts": [{"name": name, "context": {"cluster": "one", "user": "me"}} for name in contexts],
        }
        path.write_text(yaml.safe_dump(body))
        return path


def refusal(code: int, reason: str, message: str, **details: Any) -> tuple[int, dict[str, Any]]:
    """Return a Status as API servers send it."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return code, {**body, "details": details}


@contextmanager
def serving(answers: Mapping[str, Answer] | None = None) -> Iterator[Server]:
    """Run a server while the block runs."""
    server: Server

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length)) if length else None
            query = {name: values[0] for name, values in parse_qs(address.query).items()}
            server.asked.append((self.command, address.path, query, sent))
            time.sleep(server.delay_s)
            missing = refusal(404, "NotFound", "the server could not find the requested resource")
            found = server.answers.get(
                f"{self.command} {address.path}", server.answers.get(address.path, missing)
            )
            status, body = found if isinstance(found, tuple) else (200, found)
            if isinstance(body, list):
                body = {"kind": "List", "metadata": {}, "items": body}
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for text in server.warnings:
                self.send_header("Warning", f'299 - "{text}"')
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = Server(f"http://127.0.0.1:{web.server_port}", dict(answers or {}))
    thread = threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        web.shutdown()
        web.server_close()
