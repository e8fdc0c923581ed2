"""A launcher that the user started: whether it starts the planned ranks on the planned hosts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from gangplan.findings import Severity
from gangplan.model.job import Job
from gangplan.model.version import parse_version
from gangplan.plan.faults import Edit, Trouble
from gangplan.plan.flags import family_of
from gangplan.plan.launchers import FAMILIES, Found, Use
from gangplan.plan.paths import HOSTFILE, HYDRA_HOSTFILE
from gangplan.plan.reserved import is_reserved, variable_of

# From here on Open MPI 5 no longer takes one dash before these (tried: 5.0.8 and 5.0.9 do, 5.0.10 and 5.0.11 end).
_ONE_DASH_ENDS = "5.0.10"
_SSH = frozenset({"ssh", "pdsh", "openmpi", "mpich", "impi", "mvapich"})


@dataclass(frozen=True, slots=True)
class Kept:
    """A launcher in a command of a job."""

    job: Job
    found: Found

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self.found.start.name

    @property
    def sums(self) -> str:
        """The plan in numbers."""
        job = self.job
        return f"{job.workers} workers x {job.slots} slots = {job.ranks} ranks"

    def number(self, use: Use) -> str | None:
        """An option's value as far as it is known before the run; None for one that is not."""
        text, script = use.value, self.found.script
        if script is None or use.value_at >= len(script.words) or not script.words[use.value_at].is_open:
            return text
        known = {variable.name: variable.value for variable in self.job.env if not variable.secret}
        known |= {"PET_NNODES": str(self.job.workers), "PET_NPROC_PER_NODE": str(self.job.slots)}
        for name in script.words[use.value_at].names:
            value = script.sets[name] if name in script.sets else known.get(name)
            if value is None:
                return None
            text = text.replace(f"${{{name}}}", value).replace(f"${name}", value)
        return None if "$" in text or "`" in text else text


def drop(use: Use) -> Edit:
    """Take an option away."""
    return Edit(use.at, use.end)


def put(use: Use, value: str) -> Edit:
    """Give an option another value."""
    if use.value_at == use.at:
        glue = "=" if use.spelled.startswith("--") or len(use.spelled) > 2 else ""
        return Edit(use.at, use.at + 1, (f"{use.spelled}{glue or '='}{value}",))
    return Edit(use.value_at, use.value_at + 1, (value,))


def troubles(kept: Kept) -> Iterator[Trouble]:
    """What is wrong with the options of a launcher that may run here."""
    reading = kept.found.reading
    for use in reading.uses:
        if not use.option.name:
            yield _unknown(kept, use)
        elif use.is_short:
            yield _short(use, kept)
        else:
            yield from _option(kept, use)
    if not reading.programs and not reading.unknown and not any(reading.of("file", "nothing")):
        message = f"{kept.name} is given no program to run"
        yield Trouble(
            rule="command-no-program",
            at=reading.at,
            message=message,
            hint="Add the program and its arguments.",
        )
    yield from _counts(kept)


def _short(use: Use, kept: Kept) -> Trouble:
    what = "two values" if use.option.words == 2 else "a value" if use.option.words else "no value"
    return Trouble(
        rule="command-option",
        at=use.at,
        message=f"{use.spelled} of {kept.found.start.launcher.label} takes {what}",
        hint="Complete it, or remove it." if use.option.words else "Remove the value.",
    )


def _unknown(kept: Kept, use: Use) -> Trouble:
    """An option that the image's launcher does not know: one of another family, or a slip."""
    launcher, name = kept.found.start.launcher, use.spelled.lstrip("-")
    if launcher.kind == "mpi":
        other = next((one for one in FAMILIES.values() if name in one.options), None)
        if other is not None:
            message = f"{use.spelled} is an option of {other.label}, but the image has {launcher.label}"
            return Trouble(
                rule="command-option", at=use.at, message=message, hint=_instead(kept, name, use), edit=None
            )
    near = difflib.get_close_matches(name, launcher.options, 1, 0.7)
    dashes = "-" if launcher.style == "hydra" or len(near and near[0]) == 1 else "--"
    hint = f"Did you mean {dashes}{near[0]}?" if near else "Remove it."
    return Trouble(
        rule="command-option",
        at=use.at,
        message=f"{launcher.label} has no option {use.spelled}",
        hint=hint,
        edit=Edit(use.at, use.at + 1, (dashes + near[0],)) if near else None,
    )


def _instead(kept: Kept, name: str, use: Use) -> str:
    """The same thing in the words of the image's MPI."""
    is_hydra = kept.found.start.launcher.style == "hydra"
    slots = kept.job.slots
    to_hydra = {
        **dict.fromkeys(("N", "npernode", "pernode"), f"Write -ppn {slots}."),
        "x": "Remove it and its value: Hydra carries all variables. To set one, write -genv NAME VALUE.",
        **dict.fromkeys(("mca", "gmca"), "Remove it and its two values: they mean nothing to Hydra."),
    }
    to_open = {
        **dict.fromkeys(("ppn", "perhost"), f"Write --map-by ppr:{slots}:node."),
        **dict.fromkeys(("genv", "env"), "Write -x NAME=VALUE."),
        **dict.fromkeys(("genvlist", "envlist"), "Write -x NAME for each variable."),
        **dict.fromkeys(
            ("f", "hosts", "hostlist"), "Remove it and its value: the run's hosts are handed over."
        ),
    }
    return (to_hydra if is_hydra else to_open).get(name, "Remove it.")


def _option(kept: Kept, use: Use) -> Iterator[Trouble]:
    """One option by what it decides."""
    role, launcher = use.option.role, kept.found.start.launcher
    if role == "hosts" or (role == "hostfile" and not _is_ours(kept, use)):
        yield _hosts(kept, use)
    elif role in ("parameter", "env"):
        yield from _reserved(kept, use)
    elif role == "root":
        message = f"{use.spelled} has no effect: ranks never run as root here"
        yield Trouble("command-root", use.at, message, "Remove it.", drop(use), Severity.WARNING)
    elif role == "agent" and use.value.lower() not in _SSH:
        message = f"{use.spelled} changes how {kept.name} reaches the workers, which answer by SSH only"
        yield Trouble("command-reserved", use.at, message, "Remove it.", drop(use))
    elif role == "away" and kept.job.launcher_runs_ranks:
        message = (
            f"{use.spelled} keeps ranks off the launcher, but launcher.runsRanks makes it one of the workers"
        )
        yield Trouble("ranks-mismatch", use.at, message, "Remove it, or launcher.runsRanks.", drop(use))
    elif role == "file":
        message = f"{use.spelled} {use.value} holds what gangplan must know to prove that the run starts"
        yield Trouble("command-unreadable", use.at, message, "Write its options in the command.")
    elif role == "nothing":
        message = f"{use.spelled} makes {kept.name} start nothing"
        yield Trouble("command-no-program", use.at, message, "Remove it.", drop(use))
    elif role == "elastic":
        message = (
            f"{use.spelled} lets the number of ranks change, but a run has {kept.sums} from start to end"
        )
        yield Trouble("ranks-mismatch", use.at, message, "Remove it.", drop(use))
    elif role == "port" and use.value != str(port := kept.job.image.ssh.port):
        message = f"{use.spelled} is {use.value}, but the image's SSH server listens on port {port}"
        yield Trouble(
            "command-reserved", use.at, message, f"Write {use.spelled} {port}.", put(use, str(port))
        )
    if launcher.double_only and use.option.name in launcher.double_only and not use.spelled.startswith("--"):
        yield from _one_dash(kept, use)


def _one_dash(kept: Kept, use: Use) -> Iterator[Trouble]:
    mpi = kept.job.image.mpi
    if mpi is None or not _from(mpi.version, _ONE_DASH_ENDS):
        return
    message = f"Open MPI {mpi.version} does not know {use.spelled} with one dash"
    edit = Edit(use.at, use.at + 1, (f"-{kept.found.reading.words[use.at]}",))
    yield Trouble("command-option", use.at, message, f"Write -{use.spelled}.", edit)


def _from(version: str, first: str) -> bool:
    try:
        return parse_version(version) >= parse_version(first)
    except ValueError:
        return False


def _is_ours(kept: Kept, use: Use) -> bool:
    """Whether a host file is the one that this launcher can read: Trainer's, or its translation for Hydra."""
    ours = HYDRA_HOSTFILE if kept.found.start.launcher.style == "hydra" else HOSTFILE
    return use.value == ours


def _hosts(kept: Kept, use: Use) -> Trouble:
    message = (
        f"{use.spelled} {use.value} names hosts, but the run's own are only known when it starts;"
        f" gangplan hands them to {kept.name}"
    )
    return Trouble("command-hosts", use.at, message, "Remove it.", drop(use))


def _reserved(kept: Kept, use: Use) -> Iterator[Trouble]:
    """A name of the launch, set by an option."""
    name = use.value.partition("=")[0]
    variable = variable_of(name) if use.option.role == "parameter" else name * is_reserved(name)
    if variable:
        message = f"{use.spelled} {name} sets {variable}, which is set for every run; a value of your own would break the launch"
        yield Trouble("command-reserved", use.at, message, "Remove it.", drop(use))


def _counts(kept: Kept) -> Iterator[Trouble]:
    """Ranks in all, ranks on each worker, and workers, against the plan."""
    job, reading = kept.job, kept.found.reading
    counts = [use for use in reading.of("count") if not use.is_short]
    numbers = [kept.number(use) for use in counts]
    parts = {use.part for use in counts}
    whole = len(parts) == max(len(reading.programs), 1) and len(parts) > 1
    if whole and all(number is not None and number.isdigit() for number in numbers):
        total = sum(int(number or 0) for number in numbers)
        if total != job.ranks:
            message = f"the parts of the command start {total} ranks in all, but the run has {kept.sums}"
            yield Trouble("ranks-mismatch", counts[0].value_at, message, f"Let them add up to {job.ranks}.")
    elif len(reading.programs) <= 1:
        for use in counts:
            yield from _number(kept, use, job.ranks)
    if (
        not counts
        and kept.found.start.launcher.kind == "horovod"
        and not reading.unknown
        and reading.programs
    ):
        edit = Edit(reading.at + 1, reading.at + 1, ("-np", str(job.ranks)))
        yield Trouble(
            "ranks-mismatch",
            reading.at,
            "horovodrun needs the number of ranks",
            f"Add -np {job.ranks}.",
            edit,
        )
    for use in reading.of("per-host"):
        yield from _per_host(kept, use, has_count=bool(counts))
    for use in reading.of("map"):
        if use.option.name in ("map-by", "ppr") and (number := _ppr(use.value)):
            yield from _ppr_number(kept, use, number)
    for use in reading.of("workers"):
        yield from _number(kept, use, job.workers)


def _number(kept: Kept, use: Use, expected: int) -> Iterator[Trouble]:
    """A number that must be the plan's. One with a `$` that no shell reads has a finding of its own."""
    number = kept.number(use)
    if number is None:
        message = f"what {use.spelled} {use.value} amounts to is only known when the script runs"
        yield Trouble(
            "command-unreadable",
            use.value_at,
            message,
            f"Write {use.spelled} {expected}.",
            put(use, str(expected)),
        )
        return
    if kept.found.script is None and "$" in number:
        return
    low, colon, high = number.partition(":")
    if {low, high if colon else low} != {str(expected)}:
        what = kept.sums if expected == kept.job.ranks else str(expected)
        message = f"the command says {use.spelled} {number}, but the run has {what}"
        filled = {kept.job.ranks: "{ranks}"}.get(expected, "")
        hint = f"Write {use.spelled} {expected}" + (f", or {filled} to have it filled in." if filled else ".")
        yield Trouble("ranks-mismatch", use.value_at, message, hint, put(use, str(expected)))


def _per_host(kept: Kept, use: Use, has_count: bool) -> Iterator[Trouble]:
    """Ranks on each worker. Hydra deals out smaller portions in turn until all ranks have a place; Horovod,
    DeepSpeed, torch and Open MPI start that many and no more."""
    job = kept.job
    number = kept.number(use) if use.option.words else "1"
    if number in ("gpu", "auto") and kept.found.start.launcher.kind == "torch" and job.slots == job.gpus:
        return
    portion = kept.found.start.launcher.style == "hydra" and (number or "").isdigit() and int(number or 0)
    if portion and job.slots % portion == 0:
        return
    if not use.option.words:
        if job.slots != 1:
            message = f"{use.spelled} starts one rank on each worker, but the run has {job.slots} slots"
            yield Trouble("ranks-mismatch", use.at, message, "Remove it.", drop(use))
        return
    yield from _number(kept, use, job.slots)


def _ppr(value: str) -> str:
    """N of ppr:N:node, the only layout that says how many ranks a host has."""
    parts = value.split(":")
    parts = parts[1:] if parts[0].lower() == "ppr" else parts
    is_ppr = value.lower().startswith("ppr:") or (len(parts) == 2 and parts[0].isdigit())
    return parts[0] if is_ppr and len(parts) > 1 and parts[1].lower() == "node" else ""


def _ppr_number(kept: Kept, use: Use, number: str) -> Iterator[Trouble]:
    if number == str(kept.job.slots) or "$" in number:
        return
    right = use.value.replace(f"{number}:", f"{kept.job.slots}:", 1)
    message = f"{use.spelled} {use.value} allows {number} ranks on each worker, but the run has {kept.job.slots} slots"
    yield Trouble("ranks-mismatch", use.value_at, message, f"Write {use.spelled} {right}.", put(use, right))


__all__ = ["Kept", "drop", "family_of", "troubles"]
