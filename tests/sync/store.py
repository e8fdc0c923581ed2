"""An API server that stores what it receives, with uids, resourceVersions, preconditions and refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from gangplan.model.kinds import RENDERED_KINDS
from tests.live.server import refusal

Object = dict[str, Any]


@dataclass
class Store:
    """Objects by path. `refuses` holds refusals by KIND/NAME; `spaces` are the namespaces that exist."""

    url: str = ""
    objects: dict[str, Object] = field(default_factory=dict)
    refuses: dict[str, tuple[int, Object]] = field(default_factory=dict)
    changes: list[tuple[str, str]] = field(default_factory=list)
    spaces: set[str] = field(default_factory=lambda: {"gangplan"})
    _numbers: Any = field(default_factory=lambda: count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def named(self, kind: str, start: str = "") -> list[Object]:
        """Return the objects of a kind whose names begin with `start`."""
        return [
            body
            for _, body in sorted(self.objects.items())
            if body["kind"] == kind and body["metadata"]["name"].startswith(start)
        ]

    def answer(self, method: str, path: str, sent: Any) -> tuple[int, Any]:
        """Answer a request as an API server does."""
        with self._lock:
            if method != "GET":
                self.changes.append((method, path))
            return getattr(self, f"_{method.lower()}")(path, sent)

    def _get(self, path: str, _: Any) -> tuple[int, Any]:
        if path in self.objects:
            return 200, self.objects[path]
        if path == "/api/v1" or (path.startswith("/apis/") and path.count("/") == 3):
            return 200, {"resources": _served(path.split("/")[2] if path != "/api/v1" else "")}
        return refusal(404, "NotFound", f"{path} not found")

    def _keep(self, path: str, body: Object, code: int) -> tuple[int, Any]:
        old = self.objects.get(path, {"metadata": {}})["metadata"]
        made = {"uid": old.get("uid") or f"uid-{next(self._numbers)}"}
        changed = {"resourceVersion": str(next(self._numbers))}
        self.objects[path] = {**body, "metadata": {**body["metadata"], **made, **changed}}
        return code, self.objects[path]

    def _patch(self, path: str, body: Object) -> tuple[int, Any]:
        name = f"{body['kind']}/{body['metadata']['name']}"
        if name in self.refuses:
            return self.refuses[name]
        return self._keep(path, body, 200 if path in self.objects else 201)

    def _post(self, place: str, body: Object) -> tuple[int, Any]:
        path = f"{place}/{body['metadata']['name']}"
        if body["metadata"]["namespace"] not in self.spaces:
            return refusal(404, "NotFound", "namespaces not found")
        if path in self.objects:
            return refusal(409, "AlreadyExists", "already exists")
        return self._keep(path, body, 201)

    def _put(self, path: str, body: Object) -> tuple[int, Any]:
        if self.objects[path]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            return refusal(409, "Conflict", "the object has been modified")
        return self._keep(path, body, 200)

    def _delete(self, path: str, options: Object) -> tuple[int, Any]:
        if path not in self.objects:
            return refusal(404, "NotFound", f"{path} not found")
        if self.objects[path]["metadata"]["uid"] != options["preconditions"]["uid"]:
            return refusal(409, "Conflict", "the UID in the precondition does not match")
        return 200, self.objects.pop(path)


def _served(group: str) -> list[Object]:
    """Return the kinds of a group, with the names that apimachinery guesses
    (meta.UnsafeGuessKindToResource)."""
    return [
        {"kind": one.name, "name": f"{one.name.lower()}s", "namespaced": not one.is_wide}
        for one in RENDERED_KINDS
        if one.group == group
    ]


@contextmanager
def serving() -> Iterator[Store]:
    """Run a server for as long as the block runs."""
    store = Store()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length)) if length else None
            status, body = store.answer(self.command, urlsplit(self.path).path, sent)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    store.url = f"http://127.0.0.1:{web.server_port}"
    threading.Thread(target=web.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield store
    finally:
        web.shutdown()
        web.server_close()
