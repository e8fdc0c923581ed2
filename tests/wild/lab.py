"""Jobs of others and the runs that are imported from them, side by side on a real control plane.

Each source runs in a namespace of its own, and the run in its team's, admitted by Kueue. The pods that their
controllers make are compared; each difference must be in the import's own report.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gangplan.imports.account import LeafOutcome
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
from tests.wild.podfacts import describe_placement, describe_pod, order_of
from tests.wild.trial import CLUSTER

Object = dict[str, Any]
ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
_OF_JOBSET = "jobset.sigs.k8s.io/jobset-name"
_OF_RUN = "gangplan.dev/job"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_UNKNOWN = "field not declared in schema"
_SERVER = "/usr/sbin/sshd"
# Facts that have another name in a pod.
_FIELDS = {"workdir": "workingDir", "grace": "terminationGracePeriodSeconds", "program": "command"}
_KUEUE = "kueue.x-k8s.io/"
KINDS = ("jobset", "trainjob")
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


@dataclass
class Pair:
    """A source and its run: the differences that the report names, by what, and those that it does not."""

    name: str
    spec: str
    pods: int = 0
    refused: str = ""
    stuck: str = ""
    added: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Return the result in a word."""
        if self.refused:
            return "refused"
        if self.stuck:
            return "stuck"
        return "silent" if self.silent else "named" if self.named else "equal"


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
            self._judge(pair, one, (place, job["metadata"]["name"]), (home, run.name))
        self.client.delete("Namespace", place)
        if not pair.refused:
            self.client.delete("TrainJob", run.name, home)

    def _apply_source(self, source: list[Object], place: str) -> None:
        """Apply a source with what else its namespace would have; refusals are raised at once."""
        for body in (*_surroundings(source, place), *source):
            if body["kind"] not in ("PriorityClass", "ClusterTrainingRuntime", "RuntimeClass"):
                body["metadata"]["namespace"] = place
            keys = list(_values(body, _EXCLUSIVE))
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

    def _judge(self, pair: Pair, one: ImportedSource, theirs: tuple[str, str], ours: tuple[str, str]) -> None:
        seen: list[dict[tuple[Any, ...], Object]] = [{}, {}]
        wanted = [0, 0]

        def are_there() -> bool:
            for number, (place, name) in enumerate((theirs, ours)):
                jobset = self.client.find("JobSet", name, place)
                wanted[number] = _pods_of(jobset) if jobset else 0
                self._gather(place, name, seen[number])
            return all(count and len(some) >= count for count, some in zip(wanted, seen, strict=True))

        if not _until(are_there):
            missing = [
                f"{who}: {len(some)} of {count} pods"
                for who, some, count in zip(("source", "run"), seen, wanted, strict=True)
            ]
            pair.stuck = "; ".join([*missing, *self._events(theirs[0]), *self._events(ours[0])])
            return
        pair.pods = len(seen[0])
        compare(pair, one, *(list(some.values()) for some in seen))

    def _gather(self, place: str, jobset: str, seen: dict[tuple[Any, ...], Object]) -> None:
        """Keep each pod as it first was, and give it a node."""
        for pod in self.client.list("Pod", place, f"{_OF_JOBSET}={jobset}"):
            key = (pod["metadata"]["labels"][ROLE], *order_of(pod))
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


def _pods_of(jobset: Object) -> int:
    """Return how many pods a JobSet has at one time."""
    total = 0
    for one in jobset["spec"]["replicatedJobs"]:
        spec = one["template"]["spec"]
        at_once = spec.get("parallelism", 1)
        total += one.get("replicas", 1) * min(at_once, spec.get("completions", at_once))
    return total


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
        spec.pop("suspend", None)
        spec.pop("managedBy", None)
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
    names = {name for body in source for name in _values(body, "serviceAccountName") if name}
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


def compare(pair: Pair, one: ImportedSource, theirs: list[Object], ours: list[Object]) -> None:
    """Compare pods in order, role by role, and sort the differences."""
    rows = {row.what: row for row in one.runs["lab"].rows if not row.is_same}
    entries = one.draft.work.entries()
    roles = dict(_roles_of(one, theirs))
    sides = []
    for some, named in ((theirs, roles), (ours, {})):
        groups: dict[str, list[Object]] = {}
        for pod in some:
            of = pod["metadata"]["labels"][ROLE]
            groups.setdefault(named.get(of, of), []).append(pod)
        order = list(roles)
        for each in groups.values():
            each.sort(key=lambda pod: (_place(order, pod), order_of(pod)))
        sides.append(groups)

    answers = one.draft.home.answers
    given = {"image": answers.image, "program": answers.command}
    starter = next((ask.message for ask in one.draft.questions if "Flux starts the ranks" in ask.message), "")

    def differs(key: str, here: str | None, there: str | None, *parts: str, is_moved: bool = False) -> None:
        text, word = f"{here!r} -> {there!r}", key.rpartition(" ")[2]
        is_launch = key.startswith(("/", "container ", "program", "launcher", "worker"))
        if answer := given.get(word):
            pair.named.setdefault(key, f"{text} (the answer {answer})")
        elif starter and is_launch:
            pair.named.setdefault(key, f"{text} (asked: {starter})")
        elif here is None and (key in rows or key.startswith("container ")):  # they have what the program has
            pair.added.setdefault(key, text)
        elif key in rows:
            pair.named.setdefault(key, f"{text} (row)")
        elif entry := next((one for one in entries if parts and _is_about(one, parts, is_moved)), None):
            pair.named.setdefault(key, f"{text} ({entry.state}: {entry.to or entry.why})")
        else:
            pair.silent.setdefault(key, text)

    steps = {str(step.get("name")) for step in one.draft.values.get("steps", ())}
    for role in dict.fromkeys([*sides[0], *sides[1]]):
        here, there = sides[0].get(role, []), sides[1].get(role, [])
        if len(here) != len(there):
            differs({"node": "worker"}.get(role, role), f"{len(here)} pods", f"{len(there)} pods")
        title = {"node": "worker", **{one: f"step {one}" for one in steps}}.get(role, role)
        for source, run in zip(here, there, strict=False):
            _compare_pods(differs, source, run, title)


def _place(order: list[str], pod: Object) -> int:
    name = pod["metadata"]["labels"][ROLE]
    return order.index(name) if name in order else len(order)


def _is_about(entry: LeafOutcome, parts: tuple[str, ...], is_moved: bool) -> bool:
    """Return whether an entry of the account says what became of a field; `is_moved`: also as another one."""
    steps = [*map(str, entry.path), str(entry.value)]
    return (is_moved or entry.state != "mapped") and all(part in steps for part in parts)


def _compare_pods(differs: Callable[..., None], source: Object, run: Object, role: str) -> None:
    theirs, ours = describe_pod(source, role), describe_pod(run, role)
    if role == "worker" and _SERVER in ours["program"]:
        theirs["program"] = ours["program"]  # the launcher has it
    for key in sorted({*theirs, *ours}):
        is_longer = key == "grace" and int(ours[key]) >= int(theirs[key])
        if theirs.get(key) != ours.get(key) and not is_longer:  # pods have somewhat more than ranks
            field = key.rpartition(" ")[2]
            parts = (_FIELDS.get(field, field),) if key in _FIELDS or key.startswith("container ") else ()
            parts += (_list_of(source, key.split(" ")[1]),) if key.startswith("container ") else ()
            differs(key, theirs.get(key), ours.get(key), *parts, is_moved=len(key.split(" ")) == 2)
    theirs, ours = describe_placement(source), describe_placement(run)
    domain = source["metadata"].get("annotations", {}).get(_EXCLUSIVE)
    for key, value in theirs.items():
        if ours.get(key) != value:
            is_of_jobset = domain and (key == f"nodeSelector {domain}" or f'"{domain}"' in value)
            parts = (_EXCLUSIVE,) if is_of_jobset else tuple(key.split(" "))
            differs(key, value, ours.get(key), *parts, is_moved=True)


def _list_of(pod: Object, container: str) -> str:
    """Return the field of a pod that has a container."""
    inits = [one["name"] for one in pod["spec"].get("initContainers", ())]
    return "initContainers" if container in inits else "containers"


def _roles_of(one: ImportedSource, pods: list[Object]) -> Iterator[tuple[str, str]]:
    """Yield each replicated job of a source and its name in the run, in the order of ranks."""
    work = one.draft.work
    for step, entry in zip(work.before, one.draft.values.get("steps", ()), strict=False):
        yield step.name, str(entry.get("name", step.name))
    if work.kind == "TrainJob":
        names = {pod["metadata"]["labels"][ROLE]: 0 for pod in pods}
        known = {"launcher", *(step.name for step in work.before)}
        yield from (
            (name, name if name == "launcher" else "node")
            for name in names
            if name not in known - {"launcher"}
        )
        return
    own = one.draft.values.get("roles", {})
    jobs = [str(job["name"]) for job in work.account.root().value["spec"]["replicatedJobs"]]
    for role in (*work.roles, *work.aside):
        path = role.pod.node.path
        name = jobs[int(path[2])]
        if role in work.aside:  # a name that runs have already gets an ending
            yield name, next((new for new in own if new in (role.name, f"{role.name}-pods")), role.name)
        else:
            yield name, "launcher" if role is work.launcher else "node"
