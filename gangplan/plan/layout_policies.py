"""Check the values of Open MPI's options that lay out, number and bind ranks: its versions know different ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from gangplan.plan.launch import LauncherCall, drop_option, replace_launcher_option_value
from gangplan.plan.launchers import ParsedOption
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.rules.commands import COMMAND_OPTION, COMMAND_UNREADABLE
from gangplan.rules.specs import RANKS_MISMATCH

_OBJECTS = ("hwthread", "core", "l1cache", "l2cache", "l3cache", "numa", "socket")
# By the style of the launcher, as mpirun of 4.1.8 and 5.0.11 accepts them. Both take any beginning of a word;
# Open MPI 5 also takes more letters behind it (`cores`).
_POLICIES = {
    "openmpi": {
        "map-by": ("slot", *_OBJECTS, "node", "seq", "dist", "ppr", "rankfile"),
        "rank-by": ("slot", *_OBJECTS, "board", "node"),
        "bind-to": ("none", *_OBJECTS, "board", "cpu-list"),
    },
    "prrte": {
        "map-by": ("slot", *_OBJECTS, "package", "node", "seq", "ppr", "rankfile", "pe-list"),
        "rank-by": ("slot", "node", "fill", "span"),
        "bind-to": ("none", *_OBJECTS, "package"),
    },
}
_SAME = {"package": "socket"}


def check_layout_policies(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield problems of policies that the image's Open MPI lacks, or that start other numbers of ranks."""
    reading, job = kept.found.reading, kept.job
    table = _POLICIES.get(kept.found.start.launcher.style, {})
    is_counted = any(reading.of("count")) or reading.program == ("",)  # gangplan counts behind mpi.flags
    for use in reading.uses:
        policy = use.value.lower().partition(":")[0].partition("=")[0]
        is_sequence = use.option.name == "map-by" and policy == "seq"
        is_sequence |= use.option.role == "parameter" and use.values == ("rmaps", "seq")
        if is_sequence and table and job.slots > 1:
            message = f"{' '.join((use.spelled, *use.values))} starts a rank for each line of the host file, which has one for each worker, but the run has {kept.sums}"
            yield WordProblem(RANKS_MISMATCH, use.at, message, "Remove it.", drop_option(use))
        elif use.option.name in table and not use.is_short and "$" not in use.value and "`" not in use.value:
            if policy and not _is_known(policy, table[use.option.name], kept):
                yield _build_unknown_policy_problem(kept, use, policy, table[use.option.name])
            elif not is_counted and _is_ppr_of_objects(use):
                message = f"{use.spelled} {use.value} starts as many ranks as a node has of these, which only the run shows"
                edit = WordEdit(reading.at + 1, reading.at + 1, ("-np", str(job.ranks)))
                yield WordProblem(COMMAND_UNREADABLE, use.value_at, message, f"Add -np {job.ranks}.", edit)


def _is_known(policy: str, known: tuple[str, ...], kept: LauncherCall) -> bool:
    takes_more = kept.found.start.launcher.style == "prrte"
    return any(one.startswith(policy) or (takes_more and policy.startswith(one)) for one in known)


def _is_ppr_of_objects(use: ParsedOption) -> bool:
    """Return whether a layout sets ranks per core, socket and the like."""
    parts = use.value.lower().split(":")
    return use.option.name == "map-by" and parts[0] == "ppr" and len(parts) > 2 and parts[2] != "node"


def _build_unknown_policy_problem(
    kept: LauncherCall, use: ParsedOption, policy: str, known: tuple[str, ...]
) -> WordProblem:
    message = f"{kept.found.start.launcher.label} has no {use.spelled} {use.value}"
    wanted = _SAME.get(policy, policy)
    near = difflib.get_close_matches(wanted, known, 1, 0.7)
    if not near:
        return WordProblem(COMMAND_OPTION, use.value_at, message, "Remove it.", drop_option(use))
    right = near[0] + use.value[len(policy) :]
    edit = replace_launcher_option_value(use, right)
    return WordProblem(COMMAND_OPTION, use.value_at, message, f"Write {use.spelled} {right}.", edit)
