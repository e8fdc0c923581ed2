"""Watch a lab for all askers: Workloads, pods, and Kueue's complaints."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.lab.client import ApiError
from tests.lab.lab import Lab

Object = dict[str, Any]
JOBSET = "jobset.sigs.k8s.io/jobset-name"
#: Seconds between two looks at what is known, and how long anything may take.
EVERY, PATIENCE = 0.2, 120.0
#: A TrainJob that Kueue could not handle, in its log.
ABOUT = re.compile(r'"logger":"trainjob",.*?"name":"([^"]+)"')
ERROR = re.compile(r'"error":"((?:[^"\\]|\\.)*)"')
#: A condition that Kueue could not write, because it had no reason (0.19.2).
UNWRITTEN = re.compile(r'Could not update Workload status.*Workload[^ ]* \\"([^"\\]+)\\" is invalid')


class Watcher:
    """The Workloads and pods of a lab, watched by one thread each, and the complaints in Kueue's log."""

    def __init__(self, lab: Lab) -> None:
        """Start watching."""
        self._client, self._stop = lab.client, threading.Event()
        self._log = lab.processes["kueue"].log
        self._read = 0
        self._complaints: dict[str, str] = {}
        self._unwritten: set[str] = set()
        self._items: dict[str, dict[str, Object]] = {"Workload": {}, "Pod": {}}
        tasks = [lambda kind=kind: self._follow(kind) for kind in self._items]
        self._threads = [threading.Thread(target=task, daemon=True) for task in (*tasks, self._listen)]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop; the threads end with their connections."""
        self._stop.set()

    # --- objects ---------------------------------------------------------------------------------------

    def _follow(self, kind: str) -> None:
        """List, then watch, again and again, because a server may end a watch at any time."""
        while not self._stop.is_set():
            try:
                self._watch(kind)
            except (OSError, ApiError, http.client.HTTPException, ValueError):
                time.sleep(EVERY)

    def _watch(self, kind: str) -> None:
        path = self._client.resource(kind).path(None)
        answer = self._client.request("GET", path).object
        self._items[kind] = {item["metadata"]["uid"]: item for item in answer["items"]}
        connection = http.client.HTTPSConnection(
            urlsplit(self._client.url).netloc, timeout=30, context=self._client.trust
        )
        query = {
            "watch": "1",
            "resourceVersion": answer["metadata"]["resourceVersion"],
            "timeoutSeconds": "25",
        }
        head = {"Authorization": f"Bearer {self._client.token}", "Accept": "application/json"}
        try:
            connection.request("GET", f"{path}?{urlencode(query)}", headers=head)
            response = connection.getresponse()
            while not self._stop.is_set() and (line := response.readline()):
                self._take(kind, json.loads(line))
        finally:
            connection.close()

    def _take(self, kind: str, event: Object) -> None:
        item = event["object"]
        if event["type"] == "ERROR":
            raise ValueError(item.get("message"))
        items = dict(self._items[kind])  # askers read while this is written
        if event["type"] == "DELETED":
            items.pop(item["metadata"]["uid"], None)
        else:
            items[item["metadata"]["uid"]] = item
        self._items[kind] = items

    def workload(self, namespace: str, run: str) -> Object | None:
        """Return the Workload of a TrainJob."""
        for item in self._items["Workload"].values():
            metadata = item["metadata"]
            owners = metadata.get("ownerReferences") or ()
            if metadata["namespace"] == namespace and any(owner["name"] == run for owner in owners):
                return item
        return None

    def pods(self, namespace: str, run: str) -> list[Object]:
        """Return the pods of a TrainJob."""
        return [
            item
            for item in self._items["Pod"].values()
            if item["metadata"]["namespace"] == namespace
            and item["metadata"].get("labels", {}).get(JOBSET) == run
        ]

    # --- Kueue's log -----------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Read the complaints in Kueue's log."""
        while not self._stop.wait(2 * EVERY):
            with self._log.open("rb") as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._read += len(whole)
            for line in whole.decode(errors="replace").splitlines():
                self._hear(line)

    def _hear(self, line: str) -> None:
        about, error = ABOUT.search(line), ERROR.search(line)
        if about and error and "the object has been modified" not in error[1]:
            self._complaints[about[1]] = error[1].replace('\\"', '"')
        nothing = UNWRITTEN.search(line)
        if nothing:
            self._unwritten.add(nothing[1])

    def is_unwritten(self, workload: str) -> bool:
        """Return whether the API server refused Kueue's own condition of a Workload."""
        return workload in self._unwritten

    def complaint(self, run: str) -> str:
        """Return Kueue's latest complaint about a TrainJob."""
        return self._complaints.get(run, "")

    def forget(self, run: str) -> None:
        """Forget the complaints about a TrainJob, because one of this name is about to come."""
        self._complaints.pop(run, None)
