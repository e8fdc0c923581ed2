"""Compare a source with the run that was rendered from its spec: what is the same, what differs, and why."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.draft import Draft
from gangplan.imports.images import split_reference
from gangplan.imports.shapes import Fact, Shape, shape_of_run, shape_of_source
from gangplan.imports.trials import with_setting
from gangplan.model.quantity import QuantityError, parse
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve.image import mirrored

AREAS = (
    "pods",
    "ranks",
    "image",
    "command",
    "resources",
    "devices",
    "environment",
    "volumes",
    "network",
    "access",
    "policy",
)


# Why a fact differs although the account has its field as mapped.
_OTHERWISE = {
    "ranks": "all workers of a run start the same number of ranks",
    "command": "the launcher of a run is given options of the run, too",
    "devices": "GPUs of a run have the name that the pool gives them",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A fact of the source, of the run, or of both; an absent value is None."""

    area: str
    what: str
    source: str | None
    run: str | None
    is_same: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Equivalence:
    """All facts compared; `percent` is the share of the source's facts that are the same in the run."""

    rows: tuple[Row, ...]

    @property
    def percent(self) -> int:
        """The percentage, rounded down: 100 means that nothing of the source differs."""
        of_source = [row for row in self.rows if row.source is not None]
        same = sum(row.is_same for row in of_source)
        return 100 * same // len(of_source) if of_source else 100

    @property
    def differences(self) -> list[Row]:
        """Facts of the source that are different in the run, or absent."""
        return [row for row in self.rows if row.source is not None and not row.is_same]

    @property
    def added(self) -> list[Row]:
        """Facts of the run only."""
        return [row for row in self.rows if row.source is None]


def compared(draft: Draft, objects: list[Body], setting: Sequence[tuple[str, str]] = ()) -> Equivalence:
    """Compare the source of a draft with the objects of its run.

    `setting` are the values of parameters, for a trial.
    """
    source, run = shape_of_source(draft), shape_of_run(objects)
    for key, fact in source.facts.items():
        source.facts[key] = Fact(*key, with_setting(fact.value, setting), fact.node)
    keys = sorted({*source.facts, *run.facts}, key=lambda key: (AREAS.index(key[0]), key[1]))
    return Equivalence(tuple(_row(draft, source, run, key) for key in keys))


def _row(draft: Draft, source: Shape, run: Shape, key: tuple[str, str]) -> Row:
    theirs, ours = source.facts.get(key), run.facts.get(key)
    is_same = theirs is not None and ours is not None and _same(draft, theirs, ours)
    why = "" if is_same or theirs is None else _why(draft, theirs)
    return Row(*key, theirs.value if theirs else None, ours.value if ours else None, is_same, why)


def _why(draft: Draft, fact: Fact) -> str:
    """Return the reason that the account gives for a fact."""
    if fact.area == "command" and draft.command_why:
        return draft.command_why
    if fact.node is None:
        return _OTHERWISE.get(fact.area, "")
    account = fact.node.account
    entries = [
        one for one in account.entries() if one.path[: len(fact.node.path)] == fact.node.path and one.why
    ]
    if fact.area == "volumes" and fact.value.startswith("nfs "):
        return "a claim of the team shows the same folder"
    usual = _OTHERWISE.get(fact.area, "")
    if fact.value.startswith("field metadata."):
        usual = "pods of a run have it by another name, or as a value"
    return next((one.why for one in sorted(entries, key=lambda one: one.state != "asked")), usual)


def _same(draft: Draft, theirs: Fact, ours: Fact) -> bool:
    if theirs.area in ("resources", "devices"):
        return _amount(theirs.value) == _amount(ours.value)
    if theirs.area == "image":
        ours_at = split_reference(ours.value)[0]
        places = {split_reference(theirs.value)[0]}
        places |= {mirrored(place, one) for place in tuple(places) for one in draft.home.clusters.values()}
        return ours_at in {place.lower() for place in places} or bool(draft.home.answers.image)
    if theirs.what == "/dev/shm":
        return ours.value == "emptyDir Memory" and theirs.value.startswith(("emptyDir", "hostPath"))
    return theirs.value == ours.value


def _amount(text: str) -> object:
    try:
        return parse(text)
    except QuantityError:
        return text
