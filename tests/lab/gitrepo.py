"""A small Git repository for Argo CD or Flux to follow."""

from __future__ import annotations

import http.server
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

#: Without any user's settings and name.
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "lab",
    "GIT_AUTHOR_EMAIL": "lab@example.com",
    "GIT_COMMITTER_NAME": "lab",
    "GIT_COMMITTER_EMAIL": "lab@example.com",
}


class GitRepository:
    """A repository in a folder, with one branch ``main``."""

    def __init__(self, folder: Path) -> None:
        """Create the repository; the folder may have files already."""
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._git("init", "--quiet", "--initial-branch=main")

    @property
    def url(self) -> str:
        """The address for an Application's ``repoURL``."""
        return self.folder.resolve().as_uri()

    @contextmanager
    def served(self, port: int) -> Iterator[str]:
        """Serve the repository on a loopback port as long as the context lasts; yield its address."""
        handler = type("Handler", (_Handler,), {"folder": self.folder.resolve()})
        with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield f"http://127.0.0.1:{port}/.git"
            finally:
                server.shutdown()

    def commit(self, files: Mapping[str, str | None] | None = None, message: str = "change") -> str:
        """Write files (None deletes one), commit everything, and return the revision."""
        for name, text in (files or {}).items():
            path = self.folder / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message", message)
        return self._git("rev-parse", "HEAD")

    def checkout(self, revision: str) -> None:
        """Check out the files of a revision or of the branch."""
        self._git("checkout", "--quiet", revision)

    def _git(self, *arguments: str) -> str:
        environment = {**os.environ, **_ENVIRONMENT}
        result = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, check=True
        )
        return result.stdout.strip()


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers with Git's own server, `git http-backend`, which is a CGI program."""

    folder: Path

    def do_GET(self) -> None:
        """Answer a request."""
        path, _, query = self.path.partition("?")
        length = self.headers.get("Content-Length", "")
        environment = {
            **os.environ,
            **_ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": length,
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        told = subprocess.run(
            ["git", "http-backend"],
            env=environment,
            input=self.rfile.read(int(length or 0)),
            capture_output=True,
            check=True,
        ).stdout
        head, _, body = told.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in {**fields, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815  # the name is the base class's

    def log_message(self, *_: object) -> None:
        """Log nothing."""
