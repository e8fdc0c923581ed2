"""A small client of the API server: JSON over one persistent connection per thread."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from .kinds import Resource, served_kinds

Object = dict[str, Any]
Objects = list[Object]
Query = Mapping[str, str]

#: Seconds that anything may take which happens by itself: a limit costs nothing where things work. The
#: variable is a factor for even slower machines.
PATIENCE = 60.0 * float(os.environ.get("GANGPLAN_LAB_PATIENCE", "1"))
#: Seconds for which a request that gets "not now" is repeated.
_AGAIN = PATIENCE / 2

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class ApiError(RuntimeError):
    """The API server's refusal, with its own message."""

    def __init__(self, status: int, body: Any) -> None:
        """Take the message, reason and details from the server's answer."""
        answer: Object = body if isinstance(body, dict) else {"message": str(body)}
        self.status = status
        self.reason: str = answer.get("reason", "")
        self.message: str = answer.get("message", "")
        self.details: Object = answer.get("details") or {}
        super().__init__(f"{status} {self.reason}: {self.message}")

    def is_passing(self, method: str) -> bool:
        """Return whether the same request may succeed in a moment, and this one did nothing."""
        if self.status == 500:
            return "failed calling webhook" in self.message
        return self.status in (429, 503) or (self.status == 504 and method != "POST")


class TooLateError(AssertionError):
    """Raised when something did not happen in time."""


@dataclass(frozen=True)
class Answer:
    """The server's answer: the object, and the texts of its Warning headers."""

    object: Object
    warnings: tuple[str, ...] = ()


@dataclass
class Client:
    """Talks to one API server as one user."""

    url: str
    token: str
    trust: ssl.SSLContext
    user_agent: str = "gangplan-lab"
    _resources: dict[str, Resource] = field(default_factory=dict, repr=False)
    _local: threading.local = field(default_factory=threading.local, repr=False)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request and return the answer; raise ApiError if it is refused.

        "Not now" is not a refusal: too many requests, a webhook that did not answer, a server that restarts.
        """
        head = {
            "Authorization": f"Bearer {self.token}",
            "User-Agent": self.user_agent,
            "Accept": "application/json",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        target = f"{path}?{urlencode(query)}" if query else path
        deadline = time.monotonic() + _AGAIN
        while True:
            response, content = self._send(method, target, data, head)
            parsed = _parse(content)
            if response.status < 400:
                return Answer(parsed, _warnings(response))
            refusal = ApiError(response.status, parsed)
            if not refusal.is_passing(method) or time.monotonic() > deadline:
                raise refusal
            time.sleep(0.5)

    def _send(
        self, method: str, target: str, data: bytes | None, headers: Mapping[str, str]
    ) -> tuple[http.client.HTTPResponse, bytes]:
        """Use this thread's connection; open a new one if the old one was closed."""
        for last in (False, True):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                address = urlsplit(self.url)
                connection = http.client.HTTPSConnection(address.netloc, timeout=60, context=self.trust)
                self._local.connection = connection
            try:
                connection.request(method, target, data, dict(headers))
                response = connection.getresponse()
                return response, response.read()
            except (http.client.HTTPException, OSError):
                connection.close()
                self._local.connection = None
                if last:
                    raise
        raise AssertionError("unreachable")

    # --- kinds -------------------------------------------------------------

    def resource(self, kind: str) -> Resource:
        """Return how a kind is served: ``Pod`` (preferred version) or ``apps/v1/Deployment``."""
        if kind not in self._resources:
            self.discover()
        if kind not in self._resources:
            raise LookupError(f"the API server does not serve {kind}")
        return self._resources[kind]

    def discover(self) -> Mapping[str, Resource]:
        """Return every kind that the server knows; earlier groups and versions win."""
        found: dict[str, Resource] = {}
        for root in ("/api", "/apis"):
            groups = self.request("GET", root, headers={"Accept": _DISCOVERY}).object["items"]
            for group in groups:
                for served in served_kinds(group):
                    found[f"{served.api_version}/{served.kind}"] = served
                    found.setdefault(served.kind, served)
        self._resources = found
        return found

    def _of(self, item: Object) -> Resource:
        return self.resource(f"{item['apiVersion']}/{item['kind']}")

    # --- objects -----------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return one object."""
        return self.request("GET", self.resource(kind).path(namespace, name)).object

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """Return one object, or None if it does not exist."""
        try:
            return self.get(kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str | None = None, labels: str = "") -> Objects:
        """Return the objects of a kind, in a namespace or in all, with their kind filled in."""
        resource = self.resource(kind)
        query = {"labelSelector": labels} if labels else None
        items = self.request("GET", resource.path(namespace), query=query).object["items"]
        return [{"apiVersion": resource.api_version, "kind": resource.kind, **item} for item in items]

    def create(self, item: Object, *, dry_run: bool = False, strict: bool = True) -> Answer:
        """Create an object, as ``kubectl create`` does."""
        path = self._of(item).path(item["metadata"].get("namespace"))
        return self.request("POST", path, item, query=_options(dry_run, strict))

    def apply(
        self,
        item: Object,
        *,
        dry_run: bool = False,
        strict: bool = True,
        manager: str = "gangplan",
        force: bool = True,
    ) -> Answer:
        """Apply an object server-side; strict means that unknown fields are refused."""
        metadata = item["metadata"]
        path = self._of(item).path(metadata.get("namespace"), metadata["name"])
        query = {**_options(dry_run, strict), "fieldManager": manager, "force": str(force).lower()}
        return self.request("PATCH", path, item, query=query, headers={"Content-Type": _APPLY})

    def apply_patiently(self, item: Object, *, timeout: float = PATIENCE, **options: Any) -> Answer:
        """Apply an object that may be refused until a controller has seen another one.

        Trainer refuses a run as long as its own cache lacks the runtime, even when the API server has it.
        """
        answers: list[Answer] = []
        refusals: list[ApiError] = []

        def accepted() -> bool:
            try:
                answers.append(self.apply(item, **options))
            except ApiError as refusal:
                refusals.append(refusal)
            return bool(answers)

        poll(accepted, timeout, lambda: f"still refused: {refusals[-1]}")
        return answers[0]

    def apply_all(self, items: Iterable[Object], **options: Any) -> tuple[Answer, ...]:
        """Apply objects in the order given."""
        return tuple(self.apply(item, **options) for item in items)

    def patch(
        self, kind: str, name: str, change: Object, namespace: str | None = None, part: str = ""
    ) -> Object:
        """Return an object after merging a change into it, or into its ``status`` or another part."""
        path = self.resource(kind).path(namespace, name) + (f"/{part}" if part else "")
        return self.request("PATCH", path, change, headers={"Content-Type": _MERGE}).object

    def delete(self, kind: str, name: str, namespace: str | None = None, *, foreground: bool = False) -> None:
        """Delete an object, if it exists."""
        policy = {"propagationPolicy": "Foreground" if foreground else "Background"}
        try:
            self.request("DELETE", self.resource(kind).path(namespace, name), query=policy)
        except ApiError as error:
            if error.status != 404:
                raise

    def wait(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        until: Callable[[Object], Any],
        timeout: float = PATIENCE,
    ) -> Object:
        """Wait until something holds for an object, which may not exist yet; return the object."""
        seen: list[Object] = []

        def holds() -> Any:
            seen[:] = [found] if (found := self.find(kind, name, namespace)) else []
            return found and until(found)

        where = f"{kind} {namespace + '/' if namespace else ''}{name}"
        poll(holds, timeout, lambda: f"{where} is not as expected; its status: {_status(seen)}")
        return seen[0]

    def wait_gone(
        self, kind: str, name: str, namespace: str | None = None, *, timeout: float = PATIENCE
    ) -> None:
        """Wait until an object no longer exists."""
        what = f"{kind} {name} is still there"
        poll(lambda: self.find(kind, name, namespace) is None, timeout, lambda: what)


def poll(holds: Callable[[], Any], timeout: float, explain: Callable[[], str], every: float = 0.1) -> None:
    """Poll until something holds; raise TooLateError with an explanation if it never does.

    `timeout` is what a test knows to be needed, in seconds; it is never shorter than PATIENCE.
    """
    timeout = max(timeout * PATIENCE / 60, PATIENCE)
    deadline = time.monotonic() + timeout
    while not holds():
        if time.monotonic() > deadline:
            raise TooLateError(f"after {timeout:g} s: {explain()}")
        time.sleep(every)


def condition(item: Object, kind: str) -> str | None:
    """Return the status (``True``, ``False``, ``Unknown``) of a condition, or None if it has none."""
    for found in item.get("status", {}).get("conditions") or ():
        if found["type"] == kind:
            status: str = found["status"]
            return status
    return None


def _options(dry_run: bool, strict: bool) -> dict[str, str]:
    validation = {"fieldValidation": "Strict" if strict else "Warn"}
    return {**validation, "dryRun": "All"} if dry_run else validation


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return {"message": content.decode(errors="replace")}


def _warnings(response: http.client.HTTPResponse) -> tuple[str, ...]:
    """Return the texts of the Warning headers (``299 - "text"``)."""
    headers = response.headers.get_all("Warning") or ()
    return tuple(header.partition('"')[2].removesuffix('"').replace('\\"', '"') for header in headers)


def _status(seen: list[Object]) -> str:
    return json.dumps(seen[0].get("status", {}))[:2000] if seen else "there is no such object"
