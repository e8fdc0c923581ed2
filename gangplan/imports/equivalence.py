"""Compare a source with the run that was rendered from its spec: what is the same, what differs, and why."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from gangplan.imports.draft import SpecDraft
from gangplan.imports.images import split_source_image_reference
from gangplan.imports.shapes import (
    Fact,
    JobShape,
    describe_run_for_import_comparison,
    describe_source_for_import_comparison,
)
from gangplan.imports.trials import fill_trial_values
from gangplan.imports.undecided import explain_open_command
from gangplan.model.quantity import QuantityError, parse_quantity
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.resolve.image import apply_mirrors

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
_NOT_FOR_LAUNCHERS = "a fabric is for workers; the launcher only starts them"


@dataclass(frozen=True, slots=True)
class ComparedFact:
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

    rows: tuple[ComparedFact, ...]

    @property
    def percent(self) -> int:
        """The percentage, rounded down: 100 means that nothing of the source differs."""
        of_source = [row for row in self.rows if row.source is not None]
        same = sum(row.is_same for row in of_source)
        return 100 * same // len(of_source) if of_source else 100

    @property
    def differences(self) -> list[ComparedFact]:
        """Facts of the source that are different in the run, or absent."""
        return [row for row in self.rows if row.source is not None and not row.is_same]

    @property
    def added(self) -> list[ComparedFact]:
        """Facts of the run only."""
        return [row for row in self.rows if row.source is None]


def compare_imported_job_with_run(
    draft: SpecDraft, objects: list[Body], setting: Sequence[tuple[str, str]] = ()
) -> Equivalence:
    """Compare the source of a draft with the objects of its run.

    `setting` are the values of parameters, for a trial.
    """
    source, run = describe_source_for_import_comparison(draft), describe_run_for_import_comparison(objects)
    for key, fact in source.facts.items():
        source.facts[key] = Fact(*key, fill_trial_values(fact.value, setting), fact.node)
    keys = sorted({*source.facts, *run.facts}, key=lambda key: (AREAS.index(key[0]), key[1]))
    rows = [_compare_source_fact_with_run(draft, source, run, key) for key in keys]
    if open_part := explain_open_command(draft):
        rows = [
            replace(row, is_same=False, why=open_part) if row.area == "command" and row.is_same else row
            for row in rows
        ]
    differs = {row.what for row in rows if not row.is_same}
    rows += _compare_facts_by_role(draft, source, run, setting, differs)
    rows += [ComparedFact(one.area, one.what, one.source, one.run, False, one.why) for one in draft.unmet]
    return Equivalence(tuple(sorted(rows, key=lambda row: (AREAS.index(row.area), row.what))))


def _compare_source_fact_with_run(
    draft: SpecDraft, source: JobShape, run: JobShape, key: tuple[str, str]
) -> ComparedFact:
    theirs, ours = source.facts.get(key), run.facts.get(key)
    is_same = theirs is not None and ours is not None and _is_fact_same_after_import(draft, theirs, ours)
    if theirs is not None and ours is None and run.privileged and key[1].startswith("capability "):
        return ComparedFact(*key, theirs.value, "privileged", True)
    why = "" if is_same or theirs is None else _explain_fact_difference(draft, theirs)
    if theirs is not None and not is_same and key == ("access", "privileged of a launcher"):
        why = why or _NOT_FOR_LAUNCHERS
    return ComparedFact(*key, theirs.value if theirs else None, ours.value if ours else None, is_same, why)


def _compare_facts_by_role(
    draft: SpecDraft,
    source: JobShape,
    run: JobShape,
    setting: Sequence[tuple[str, str]],
    known: Container[str],
) -> Iterator[ComparedFact]:
    """Yield facts of launchers or workers that are different in a run, though other pods have them."""
    there = {(role, fact.what): fact for role, fact in reversed(run.by_role)}
    stated = {(role, fact.what, fact.value): fact for role, fact in reversed(source.by_role)}
    for (role, _, _), fact in reversed(stated.items()):
        theirs = Fact(fact.area, fact.what, fill_trial_values(fact.value, setting), fact.node)
        ours = there.get((role, fact.what))
        if theirs.what in known or (ours is not None and _is_fact_same_after_import(draft, theirs, ours)):
            continue
        if role in run.privileged and theirs.what.startswith("capability "):
            continue
        what = f"{theirs.what} of a {role}"
        why = _explain_fact_difference(draft, theirs)
        if theirs.area in ("access", "network") and role == "launcher":
            why = why or _NOT_FOR_LAUNCHERS
        yield ComparedFact(theirs.area, what, theirs.value, ours.value if ours else None, False, why)


def _explain_fact_difference(draft: SpecDraft, fact: Fact) -> str:
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


def _is_fact_same_after_import(draft: SpecDraft, theirs: Fact, ours: Fact) -> bool:
    if theirs.area in ("resources", "devices"):
        return _parse_amount_or_text(theirs.value) == _parse_amount_or_text(ours.value)
    if theirs.area == "image":
        ours_at = split_source_image_reference(ours.value)[0]
        places = {split_source_image_reference(theirs.value)[0]}
        places |= {
            apply_mirrors(place, one) for place in tuple(places) for one in draft.home.clusters.values()
        }
        return ours_at in places or bool(draft.home.answers.image)
    if theirs.what == "/dev/shm":
        return ours.value == "emptyDir Memory" and theirs.value.startswith(("emptyDir", "hostPath"))
    return theirs.value == ours.value


def _parse_amount_or_text(text: str) -> object:
    try:
        return parse_quantity(text)
    except QuantityError:
        return text
