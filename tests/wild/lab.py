"""Jobs of others and the runs that are imported from them, side by side on a real control plane.

Each source runs in a namespace of its own, and the run in its team's, admitted by Kueue. The pods that their
controllers make are compared; each difference must be in the import's own report.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gangplan.imports.batch import Batch, ImportedSource
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import load_objects
from tests import plain
from tests.e2e import world
from tests.lab import addons
from tests.lab.client import PATIENCE, ApiError, TooLateError
from tests.lab.lab import Lab
from tests.wild.differences import EXCLUSIVE, Pair, compare
from tests.wild.makers import JOBSET, OPERATED, Maker, maker_of
from tests.wild.trial import CLUSTER

Object = dict[str, Any]
_OF_RUN = "gangplan.dev/job"
_UNKNOWN = "field not declared in schema"
_KUEUE = "kueue.x-k8s.io/"
KINDS = ("jobset", "trainjob", *(kind.lower() for kind in OPERATED))
# Every pod is bound to one of these nodes, whatever it asks for: the lab has none of the sources' machines.
_COUNT = 4
NODES = ({"name": "any", "count": _COUNT, "allocatable": {"pods": "1000"}},)
# Racks would have Kueue look for room on nodes.
FLAT = CLUSTER[: CLUSTER.index("topology:")] + CLUSTER[CLUSTER.index("egress:") :]
# Trainer's own runtimes, which sources name without having them.
_RUNTIMES = (
    "github.com/kubeflow/trainer/v2",
    "v2.3.0",
    "h1:Je+e7zvTLzB4qW09J1fB7pZrqvPtWuGng2NqdN5p5QU=",
)
_RUNTIME_FILES = ("torch", "jax", "deepspeed", "xgboost", "mlx")


class Stage:
    """A lab on which pairs are compared, one after another."""

    def __init__(self, lab: Lab) -> None:
        """Give the lab Trainer's own runtimes."""
        self.lab, self.client, self.pairs = lab, lab.client, list[Pair]()
        for name in _RUNTIME_FILES:
            file = addons.file_of(
                addons.Addon(*_RUNTIMES, f"manifests/base/runtimes/{name}_distributed.yaml")
            )
            for body in plain.load_all(file.read_text()):
                self.client.apply_patiently(body)

    def look(self, name: str, batch: Batch, root: Path) -> None:
        """Compare each source of an import with its run."""
        result = preview_render(Request(root, engine="serial"))
        for path in world.before_runs(result.texts):
            for body in load_objects(result.texts[path]):
                self.client.apply_patiently(body)
        for one in batch.imported:
            run = next(run for run in result.runs if run.unit.job.source == one.draft.file)
            pair = Pair(f"{name}#{one.draft.work.name}", one.draft.file)
            self.pairs.append(pair)
            self._compare(pair, one, run, load_objects(result.texts[run.path]))

    def _compare(self, pair: Pair, one: ImportedSource, run: PlannedRun, bodies: list[Object]) -> None:
        place = f"theirs-{len(self.pairs)}"
        self.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
        source = list(_source_of(one))
        job = source[-1]
        home = run.unit.job.namespace
        try:
            self._apply_source(source, place)
        except (ApiError, TooLateError, LookupError) as error:
            pair.refused = str(error)
        else:
            _until(lambda: self.client.find("TrainJob", run.name, home) is None)  # of an equal source
            for body in bodies:
                self.client.apply_patiently(body)
            self._judge(pair, one, job, (home, run.name))
        self.client.delete("Namespace", place)
        if not pair.refused:
            self.client.delete("TrainJob", run.name, home)

    def _apply_source(self, source: list[Object], place: str) -> None:
        """Apply a source with what else its namespace would have; refusals are raised at once."""
        for body in (*_surroundings(source, place), *source):
            if body["kind"] not in ("PriorityClass", "ClusterTrainingRuntime", "RuntimeClass"):
                body["metadata"]["namespace"] = place
            keys = list(_values(body, EXCLUSIVE))
            for number in range(_COUNT) if keys else ():
                labels = dict.fromkeys(keys, f"any-{number}")
                self.client.patch("Node", f"any-{number}", {"metadata": {"labels": labels}})
            deadline = time.monotonic() + PATIENCE / 6
            while True:
                try:
                    self.client.apply(body)
                    break
                except ApiError as error:
                    if _UNKNOWN in str(error):  # of an older version: the server drops it
                        self.client.create(body, strict=False)
                        break
                    # Trainer's cache may not have the runtime yet.
                    if "not found" not in str(error) or time.monotonic() > deadline:
                        raise
                    time.sleep(0.5)

    def _judge(self, pair: Pair, one: ImportedSource, job: Object, ours: tuple[str, str]) -> None:
        """Wait for the pods of a job, in its namespace, and of a run, and compare them."""
        seen: list[dict[tuple[Any, ...], Object]] = [{}, {}]
        wanted = [0, 0]
        theirs = (job["metadata"]["namespace"], job["metadata"]["name"])
        makers = (maker_of(job["kind"]), JOBSET)

        def are_there() -> bool:
            for number, (maker, (place, name)) in enumerate(zip(makers, (theirs, ours), strict=True)):
                owner = self.client.find(maker.owner or job["kind"], name, place)
                wanted[number] = maker.count(owner) if owner else 0
                self._gather(maker, place, name, seen[number])
            return all(count and len(some) >= count for count, some in zip(wanted, seen, strict=True))

        if not _until(are_there):
            missing = [
                f"{who}: {len(some)} of {count} pods"
                for who, some, count in zip(("source", "run"), seen, wanted, strict=True)
            ]
            pair.stuck = "; ".join([*missing, *self._events(theirs[0]), *self._events(ours[0])])
            return
        pair.pods = len(seen[0])
        compare(pair, one, job, *(list(some.values()) for some in seen))

    def _gather(self, maker: Maker, place: str, job: str, seen: dict[tuple[Any, ...], Object]) -> None:
        """Keep each pod as it first was, and give it a node."""
        for pod in self.client.list("Pod", place, f"{maker.label}={job}"):
            key = (maker.role(pod), *maker.place(pod))
            seen.setdefault(key, pod)
            if "nodeName" not in pod["spec"] and not pod["spec"].get("schedulingGates"):
                self._bind(pod, len(seen))

    def _bind(self, pod: Object, number: int) -> None:
        name, place = pod["metadata"]["name"], pod["metadata"]["namespace"]
        target = {"apiVersion": "v1", "kind": "Node", "name": f"any-{number % _COUNT}"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        try:
            self.client.request("POST", f"/api/v1/namespaces/{place}/pods/{name}/binding", body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    def _events(self, place: str) -> list[str]:
        told = [
            one.get("message", "") for one in self.client.list("Event", place) if one.get("type") != "Normal"
        ]
        told = [one for one in dict.fromkeys(told) if "nodes are available" not in one]
        return told[-3:]


def _until(holds: Callable[[], bool]) -> bool:
    """Return whether something holds in time."""
    deadline = time.monotonic() + PATIENCE / 2
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def _source_of(one: ImportedSource) -> Iterator[Object]:
    """Yield a source's runtime, if it has one, and the source; nothing holds it back."""
    accounts = [
        account.root().value for account in reversed((one.draft.work.account, *one.draft.work.others))
    ]
    for value in accounts:
        body = copy.deepcopy(value)
        meta, spec = body["metadata"], body["spec"]
        body["metadata"] = {key: meta[key] for key in ("name", "labels", "annotations") if key in meta}
        body["metadata"].setdefault("name", f"{meta.get('generateName', 'source-')}0")
        for part in ("labels", "annotations"):
            found = body["metadata"].get(part) or {}
            body["metadata"][part] = {key: value for key, value in found.items() if _KUEUE not in key}
        for part in (spec, spec.get("runPolicy") or {}):
            part.pop("suspend", None)
            part.pop("managedBy", None)
        yield body


def _values(body: Any, key: str) -> Iterator[Any]:
    """Yield the values of a key anywhere in an object."""
    if isinstance(body, dict):
        for name, value in body.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(body, list):
        for value in body:
            yield from _values(value, key)


def _surroundings(source: Iterable[Object], place: str) -> Iterator[Object]:
    """Yield what the pods of a source name and a cluster of its own would have."""
    accounts = ("serviceAccountName", "serviceAccount")
    names = {name for body in source for key in accounts for name in _values(body, key) if name}
    for name in sorted(names):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": place}}
    for name in sorted({name for body in source for name in _values(body, "runtimeClassName") if name}):
        yield {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": name},
            "handler": "any",
        }
    names = {name for body in source for name in _values(body, "priorityClassName") if name}
    for name in sorted(name for name in names if not name.startswith("system-")):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 0,
        }
