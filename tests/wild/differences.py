"""Pods of a source and of its run, compared: each difference must be in the report of the import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gangplan.imports.account import LeafOutcome
from gangplan.imports.batch import ImportedSource
from tests.wild.makers import JOBSET, Maker, maker_of
from tests.wild.podfacts import describe_placement, describe_pod

Object = dict[str, Any]
Path = tuple[str | int, ...]
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_SERVER = "/usr/sbin/sshd"
# Fields by the name that a source may still use for them, then facts that have another name in a pod.
_OLDER = {"serviceAccountName": "serviceAccount"}
_FIELDS = {"workdir": "workingDir", "grace": "terminationGracePeriodSeconds", "program": "command"}
# What pods of a run have, whatever their source says.
_OWN = (
    "/dev/shm", "folder of the SSH keys", "JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID",
)  # fmt: skip


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


class _Report:
    """What the report of an import says, and the differences that were looked up in it."""

    def __init__(self, pair: Pair, one: ImportedSource, theirs: list[Object]) -> None:
        self.pair = pair
        self.rows = {row.what: row for row in one.runs["lab"].rows if not row.is_same}
        self.entries = one.draft.work.entries()
        work, answers = one.draft.work, one.draft.home.answers
        self.given = {"image": answers.image, "program": answers.command}
        questions = (ask.message for ask in one.draft.questions)
        self.starter = next((ask for ask in questions if "Flux starts the ranks" in ask), "")
        # Where the pods of each role are in the source: what is said of one is not said of the other.
        self.places: dict[str, list[Path]] = {}
        for role in work.roles:
            name = "launcher" if role is work.launcher else "worker"
            self.places.setdefault(name, []).append(role.pod.node.path)
        # What launcher or workers have; those of a run have it, too.
        self.elsewhere: dict[str, set[str]] = {}
        for pod in theirs:
            for key, value in describe_pod(pod).items():
                self.elsewhere.setdefault(key, set()).add(value)

    def look_up(
        self, key: str, here: str | None, there: str | None, *parts: str, role: str, is_moved: bool = False
    ) -> None:
        """Sort a difference of a role by whether the report names it."""
        pair, text, word = self.pair, f"{here!r} -> {there!r}", key.rpartition(" ")[2]
        is_launch = key.startswith(("/", "container ", "program", "launcher", "worker"))
        if answer := self.given.get(word):
            pair.named.setdefault(key, f"{text} (the answer {answer})")
        elif self.starter and is_launch:
            pair.named.setdefault(key, f"{text} (asked: {self.starter})")
        elif here is None and self._is_of_every_pod(key, there):
            pair.added.setdefault(key, text)
        elif key in self.rows or f"{key} of a {role}" in self.rows:
            pair.named.setdefault(key, f"{text} (row)")
        elif entry := next((one for one in self.entries if self._is_about(one, role, parts, is_moved)), None):
            pair.named.setdefault(key, f"{text} ({entry.state}: {entry.to or entry.why})")
        else:
            pair.silent.setdefault(key, text)

    def _is_of_every_pod(self, key: str, there: str | None) -> bool:
        """Return whether all pods have it: other containers have what the program has."""
        is_known = key in _OWN or key in self.rows or key.startswith("container ")
        return is_known or there in self.elsewhere.get(key, ())

    def _is_about(self, entry: LeafOutcome, role: str, parts: tuple[str, ...], is_moved: bool) -> bool:
        """Return whether an entry says what became of a role's field; `is_moved`: also as another one."""
        others = [path for name, paths in self.places.items() if name != role for path in paths]
        if not parts or any(entry.path[: len(path)] == path for path in others):
            return False
        steps = [*map(str, entry.path), str(entry.value)]
        is_said = all(part in steps or _OLDER.get(part) in steps for part in parts)
        return is_said and (is_moved or entry.state != "mapped")


def compare(pair: Pair, one: ImportedSource, job: Object, theirs: list[Object], ours: list[Object]) -> None:
    """Compare pods in order, role by role, and sort the differences."""
    maker = maker_of(job["kind"])
    roles = dict(_roles_of(one, maker, theirs))
    theirs = [maker.plain(pod, job) for pod in theirs]
    sides = [_grouped(theirs, maker, roles), _grouped(ours, JOBSET, {})]
    report = _Report(pair, one, [*sides[0].get("launcher", ()), *sides[0].get("node", ())])
    steps = {str(step.get("name")) for step in one.draft.values.get("steps", ())}
    for role in dict.fromkeys([*sides[0], *sides[1]]):
        here, there = sides[0].get(role, []), sides[1].get(role, [])
        title = {"node": "worker", **{one: f"step {one}" for one in steps}}.get(role, role)
        if len(here) != len(there):
            count = {"node": "worker"}.get(role, role)
            report.look_up(count, f"{len(here)} pods", f"{len(there)} pods", role=title)
        for source, run in zip(here, there, strict=False):
            _compare_pods(report, source, run, title)


def _grouped(pods: list[Object], maker: Maker, names: dict[str, str]) -> dict[str, list[Object]]:
    """Return pods by the name of their role in a run, in the order of ranks."""
    groups: dict[str, list[Object]] = {}
    for pod in pods:
        role = maker.role(pod)
        groups.setdefault(names.get(role, role), []).append(pod)
    order = list(names)
    for each in groups.values():
        each.sort(
            key=lambda pod: (
                order.index(maker.role(pod)) if maker.role(pod) in order else len(order),
                maker.place(pod),
            )
        )
    return groups


def _compare_pods(report: _Report, source: Object, run: Object, role: str) -> None:
    theirs, ours = describe_pod(source, role), describe_pod(run, role)
    if role == "worker" and _SERVER in ours["program"]:
        theirs["program"] = ours["program"]  # the launcher has it
    for key in sorted({*theirs, *ours}):
        is_longer = key == "grace" and int(ours[key]) >= int(theirs[key])  # more than ranks have
        # A container that the run lacks is a difference by its own name; its image starts it.
        is_nothing = key.endswith(" program") and theirs.get(key) == "" and key not in ours
        if theirs.get(key) != ours.get(key) and not is_longer and not is_nothing:
            field = key.rpartition(" ")[2]
            parts = (_FIELDS.get(field, field),) if key in _FIELDS or key.startswith("container ") else ()
            parts += (_list_of(source, key.split(" ")[1]),) if key.startswith("container ") else ()
            parts = tuple(key.split(" ")) if key.startswith("envFrom ") else parts
            parts = (key,) if key == "/dev/shm" or _is_variable(key) else parts
            is_moved = key.startswith("container ") and len(key.split(" ")) == 2
            report.look_up(key, theirs.get(key), ours.get(key), *parts, role=role, is_moved=is_moved)
    theirs, ours = describe_placement(source), describe_placement(run)
    domain = source["metadata"].get("annotations", {}).get(EXCLUSIVE)
    for key, value in theirs.items():
        if ours.get(key) != value:
            is_of_jobset = domain and (key == f"nodeSelector {domain}" or f'"{domain}"' in value)
            parts = (EXCLUSIVE,) if is_of_jobset else tuple(key.split(" "))
            report.look_up(key, value, ours.get(key), *parts, role=role, is_moved=True)


def _is_variable(key: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", key) is not None and key not in ("image", *_FIELDS)


def _list_of(pod: Object, container: str) -> str:
    """Return the field of a pod that has a container."""
    inits = [one["name"] for one in pod["spec"].get("initContainers", ())]
    return "initContainers" if container in inits else "containers"


def _roles_of(one: ImportedSource, maker: Maker, pods: list[Object]) -> Iterator[tuple[str, str]]:
    """Yield each role of a source and its name in the run, in the order of ranks."""
    work = one.draft.work
    for step, entry in zip(work.before, one.draft.values.get("steps", ()), strict=False):
        yield step.name, str(entry.get("name", step.name))
    if work.kind == "TrainJob":
        names = {maker.role(pod): 0 for pod in pods}
        known = {"launcher", *(step.name for step in work.before)}
        yield from (
            (name, name if name == "launcher" else "node")
            for name in names
            if name not in known - {"launcher"}
        )
        return
    own = one.draft.values.get("roles", {})
    jobs = [str(job["name"]) for job in work.account.root().value["spec"].get("replicatedJobs", ())]
    for role in (*work.roles, *work.aside):
        path = role.pod.node.path
        name = jobs[int(path[2])] if jobs else role.name
        if role in work.aside:  # a name that runs have already gets an ending
            yield name, next((new for new in own if new in (role.name, f"{role.name}-pods")), role.name)
        else:
            yield name, "launcher" if role is work.launcher else "node"
