"""Ask both sides, compare, and shrink each disagreement."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.problems import format_path
from tests.e2e.fidelity.edits import Edit
from tests.e2e.fidelity.known import GANGPLAN, SERVER, Known, known
from tests.e2e.fidelity.questions import AS_EMITTED, Question, batches, sweep
from tests.e2e.fidelity.sides import ControlPlane, Verdict, gangplan_says, versions_of
from tests.e2e.fidelity.worlds import Emitted, expand, workspace
from tests.lab.client import Client
from tests.lab.profiles import Profile

Object = dict[str, Any]
QUESTION = "is this object accepted?"
# Questions in parallel: two cores keep up with this many.
WORKERS = 4
NO_NAMESPACE = re.compile(r'namespaces "[^"]*" not found')


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and both sides' answers."""

    question: Question
    gangplan: Verdict
    server: Verdict

    @property
    def agrees(self) -> bool:
        """Whether both sides say the same."""
        return self.gangplan.accepted == self.server.accepted

    @property
    def refuses(self) -> str:
        """The side that refuses, if they disagree."""
        return SERVER if self.gangplan.accepted else GANGPLAN

    @property
    def message(self) -> str:
        """The message of the side that refuses."""
        return self.server.message if self.gangplan.accepted else self.gangplan.message

    @property
    def places(self) -> list[str]:
        """The places where the object was edited."""
        return [format_path(edit.at) for edit in self.question.edits] or [""]

    @property
    def known(self) -> Known | None:
        """The known cause, if it is in the table."""
        return known(self.question.kind, self.places, self.refuses, self.message)

    @property
    def cause(self) -> tuple[str, ...]:
        """What equal disagreements have in common."""
        place = self.places[-1] if self.question.edits else AS_EMITTED
        return (self.question.kind, self.refuses, _plain(place), self.server.stage, _plain(self.message))


def _plain(text: str) -> str:
    """Return a text without the names and numbers that differ from case to case."""
    text = re.sub(r"^[\w.]*\.\w* \"[^\"]*\" is invalid: ", "", text.split("; ")[0])
    text = re.sub(r'"[^"]*"|\'[^\']*\'', "…", text)
    return re.sub(r"[-\w]*\d[-\w]*", "#", text)[:160]


@dataclass(slots=True)
class Result:
    """All answers of one run of the harness."""

    profile: Profile
    seed: int
    answered: list[Answered] = field(default_factory=list)
    unasked: int = 0
    refused_specs: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(
        default_factory=lambda: {"workspaces": 0.0, "gangplan": 0.0, "both": 0.0}
    )

    @property
    def disagreements(self) -> dict[tuple[str, ...], list[Answered]]:
        """The unknown disagreements by cause, the most frequent first."""
        groups: dict[tuple[str, ...], list[Answered]] = {}
        for one in self.answered:
            if not one.agrees and one.known is None:
                groups.setdefault(one.cause, []).append(one)
        return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def run(
    client: Client,
    profile: Profile,
    seed: int,
    count: int,
    say: Callable[[str], None] = lambda _: None,
    kind: str = "",
) -> Result:
    """Ask `count` questions, with a `kind` about its objects alone; if it is 0, ask about every value of
    values.yaml once."""
    versions = versions_of(profile)
    plane = ControlPlane(client, versions)
    result = Result(profile, seed)
    source = batches(profile, seed, count, kind) if count else sweep(profile)
    with ThreadPoolExecutor(WORKERS) as pool:
        while True:
            began = time.monotonic()
            batch = next(source, None)
            if batch is None:
                return result
            result.seconds["workspaces"] += time.monotonic() - began
            result.refused_specs.update(_plain(line.partition(": ")[2]) for line in batch.refused)
            for group in batch.groups:
                plane.prepare(group[0].emitted.bodies)
            began = time.monotonic()
            for answers in pool.map(lambda group: _ask_group(plane, versions, group), batch.groups):
                for one in answers:
                    if one is None:
                        result.unasked += 1
                    else:
                        result.answered.append(one)
            result.seconds["both"] += time.monotonic() - began
            wrong = sum(not one.agrees and one.known is None for one in result.answered)
            say(f"{len(result.answered)} questions, {wrong} disagreements")


def _ask_group(plane: ControlPlane, versions: SchemaVersions, group: list[Question]) -> list[Answered | None]:
    """Ask the questions about the objects of one file, in order."""
    try:
        return [ask(plane, versions, question) for question in group]
    finally:
        if any(question.kind == "TrainJob" for question in group):
            plane.forget(group[0].emitted.bodies)


def ask(plane: ControlPlane, versions: SchemaVersions, question: Question) -> Answered | None:
    """Ask both sides; return None if the server only missed the namespace that an edit names."""
    bodies = question.bodies()
    ours = gangplan_says(bodies, versions)
    theirs = plane.says(bodies, question.index)
    if ours.accepted and not theirs.accepted and NO_NAMESPACE.search(theirs.message):
        return None
    return Answered(question, ours, theirs)


# --- small counterexamples -----------------------------------------------------------------------------


def shrink(client: Client, profile: Profile, found: Answered, most: int = 40) -> Answered:
    """Return the same disagreement with a smaller spec and team, found in at most `most` trials."""
    versions = versions_of(profile)
    plane = ControlPlane(client, versions)
    best = found
    with workspace(profile) as root:
        for part in ("spec", "team"):
            for name in _optional(getattr(best.question.emitted, part)):
                most -= 1
                if most < 0:
                    return best
                smaller = _without(root, best.question, part, name)
                answer = ask(plane, versions, smaller) if smaller else None
                if answer and not answer.agrees and answer.cause == best.cause:
                    best = answer
    return best


def _optional(text: Object | None) -> list[str]:
    needed = ("apiVersion", "kind", "image", "command", "name")
    return [name for name in text or {} if name not in needed]


def _without(root: Path, question: Question, part: str, name: str) -> Question | None:
    """Return the same question about a workspace without a field of the spec or the team."""
    emitted = question.emitted
    texts = {"team": emitted.team, "spec": emitted.spec}
    texts[part] = {key: value for key, value in (texts[part] or {}).items() if key != name}
    try:
        world = expand(root, texts["team"] or {}, [texts["spec"]] if texts["spec"] else [])
    except AssertionError:
        return None
    body = emitted.bodies[question.index]
    return next(iter(_same_place(world.emitted, body, question)), None)


def _same_place(emitted: Sequence[Emitted], body: Object, question: Question) -> Iterator[Question]:
    """Yield the question about the object of the new workspace that corresponds to the old one."""
    wanted = role(body)
    for file in emitted:
        for index, other in enumerate(file.bodies):
            if role(other) == wanted:
                smaller = Question(file, index, question.mutation, question.edits)
                try:
                    smaller.bodies()
                except (KeyError, IndexError, TypeError):
                    continue
                yield smaller


def role(body: Object) -> str:
    """Return an object's role in its file: its kind, and the end of its name where a run has several."""
    name = str(body["metadata"]["name"])
    ending = next((end for end in ("-launcher-ssh", "-node-ssh") if name.endswith(end)), "")
    return f"{body['kind']}{ending}" if body["kind"] != "WorkloadPriorityClass" else f"{body['kind']} {name}"


def as_case(found: Answered, name: str, profile: Profile) -> Object:
    """Return a disagreement as a file that can become a named test. Who is right has yet to be decided."""
    question = found.question
    return {
        "case": name,
        "profiles": [profile.name],
        "object": role(question.emitted.bodies[question.index]),
        "edits": [edit.as_case() for edit in question.edits],
        "accepted": found.server.accepted,
        "gangplan": str(found.gangplan),
        "control plane": str(found.server),
        "spec": question.emitted.spec,
        "team": question.emitted.team,
    }


def of_case(case: Object, root: Path) -> Question:
    """Return the question of a case file."""
    team = case.get("team") or {"apiVersion": "gangplan.dev/v1", "kind": "Team"}
    world = expand(root, team, [case["spec"]] if case.get("spec") else [])
    edits = tuple(Edit.of(edit) for edit in case["edits"])
    for file in world.emitted:
        for index, body in enumerate(file.bodies):
            if role(body) == case["object"]:
                return Question(file, index, case["case"], edits)
    raise LookupError(f"{case['case']}: its workspace has no {case['object']}")
