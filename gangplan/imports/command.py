"""Convert the command of a source, without hosts, counts and rendezvous options: every run has those."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field

from gangplan.imports.accelerate import convert_accelerate_launch
from gangplan.imports.scripts import is_rendezvous_option, simplify_command
from gangplan.imports.users import drop_user_change
from gangplan.plan.launchers import (
    FoundLauncher,
    MpiGeneration,
    ParsedOption,
    UnreadableError,
    find_launchers,
)
from gangplan.plan.problems import WordEdit, correct_launcher_words_in_command
from gangplan.plan.program import extract_launched_program
from gangplan.plan.reach import explain_broken_mpi_launch
from gangplan.plan.reserved import find_reserved_mca_variable, is_launcher_variable, is_reserved_variable
from gangplan.records import dataclass

BINDINGS = ("none", "core", "socket", "numa")
MAPPINGS = ("slot", "core", "socket", "numa", "node")
# Roles of options for facts that only the run knows (gangplan.plan.launchers.table).
_OF_THE_RUN = frozenset(
    {
        "count",
        "per-host",
        "hosts",
        "hostfile",
        "workers",
        "rendezvous",
        "standalone",
        "elastic",
        "root",
        "agent",
    }
)
_PER_NODE = re.compile(r"ppr:([0-9]+):node")
_VALUE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}]*))?\})")
_FRAMEWORKS = {"accelerate": "torch"} | {kind: kind for kind in ("torch", "horovod", "deepspeed", "paddle")}
_EMPTY_LINE = re.compile(r"(?<=\\\n)[ \t]*\\\n")


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """One of several launches of a script: its text, how often that came before, and the ranks that it states."""

    text: str
    number: int
    ranks: int | None
    per_worker: int | None


@dataclass(slots=True)
class ConvertedCommand:
    """The command for a spec, and what else its launcher specified.

    `ranks` and `per_worker` are counts that it gave; `flags`, `bind_to` and `map_by` go to `mpi`. `is_once`
    is set if nothing in it starts ranks, so that it ran once in its pod, and `starts_one` if its torchrun leaves
    their number to a variable, and has one without it; `launches` are those of a script with several. `losses` are words that the run does not need, each with the reason; `questions` are about what
    changes its meaning, and `why` is the reason for another program than the source's.
    """

    command: tuple[str, ...]
    framework: str = ""
    ranks: int | None = None
    per_worker: int | None = None
    elastic: tuple[int, int] | None = None
    env: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    bind_to: str = ""
    map_by: str = ""
    is_once: bool = False
    starts_one: bool = False
    is_elastic: bool = False
    losses: list[tuple[str, str]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    launches: list[CountedLaunch] = field(default_factory=list)
    why: str = ""


def convert_command(
    words: Sequence[str], family: MpiGeneration | None, env: Mapping[str, str]
) -> ConvertedCommand:
    """Convert the command of the pod that starts the ranks; `env` are the static variables of its container.

    Raises UnreadableError for a script that no shell would accept.
    """
    words, change, is_login = drop_user_change(words)
    found = ConvertedCommand(words)
    if change:
        found.why = "a run has one user, and its pods start as that one"
        found.losses.append((change, found.why))
    if is_login:
        found.questions.append(
            f"{change.partition(' ')[0]} starts in the home of its user, with that user's settings; a run starts in the folder of its image"
        )
    found.command, dropped = simplify_command(found.command)
    found.losses += dropped
    launchers = find_launchers(found.command, family)
    if not launchers:
        found.is_once = True
        return found
    if len(launchers) > 1:
        return _convert_script_with_several_launches(found, launchers, env)
    one = launchers[0]
    kind = one.start.launcher.kind
    found.framework = _FRAMEWORKS.get(kind, "")
    if kind == "foreign":
        found.questions.append(f"{one.start.name} starts ranks by means that a run does not have")
        return found
    if one.reading.unknown:
        found.questions.append(
            f"{one.start.name} is given {one.reading.unknown[0].spelled}, which gangplan does not know"
        )
        return found
    _record_launcher_counts(found, one, env)
    if one.script is not None and not one.script.is_direct:
        found.questions.append(f"{one.start.name} is in a script inside of a script, which stays as it is")
        return found
    is_plain = one.script is None and not one.peeled.via and len(one.reading.programs) == 1
    if is_plain and kind == "mpi":
        _convert_mpi_launcher(found, one)
    elif is_plain and kind == "torch" and not _list_kept_launcher_options(one):
        found.command = extract_launched_program(one) or found.command
    elif kind == "accelerate":
        found.command = convert_accelerate_launch(found.command, one, _list_kept_launcher_options(one))
    else:
        gone = [use for use in one.reading.uses if _needs_launcher_option_removal(use, one)]
        edits = [WordEdit(use.at, use.end) for use in gone]
        if kind == "horovod":  # Horovod never counts by itself
            edits.append(WordEdit(one.start.at + 1, one.start.at + 1, ("-np", "{ranks}")))
        found.command = remove_empty_continuations(
            correct_launcher_words_in_command(found.command, one, edits) or found.command
        )
        found.losses += [(use.spelled, _explain_dropped_launcher_option(use)) for use in gone]
    return found


def remove_empty_continuations(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command without script lines on which only a line continuation is left."""
    return tuple(word if "<<" in word else _EMPTY_LINE.sub("", word) for word in words)


def _convert_script_with_several_launches(
    found: ConvertedCommand, launchers: Sequence[FoundLauncher], env: Mapping[str, str]
) -> ConvertedCommand:
    """Convert a script with several launches: it stays, and the launch of most ranks gives their number."""
    seen, starts_one = Counter[str](), True
    for one in launchers:
        found.ranks = found.per_worker = None
        _record_launcher_counts(found, one, env)
        starts_one &= found.starts_one
        text = ""
        if one.script is not None and one.script.is_direct:
            text = one.script.text[one.script.words[0].begin : one.script.words[-1].end]
        found.launches.append(CountedLaunch(text, seen[text], found.ranks, found.per_worker))
        seen[text] += 1
    most = max(found.launches, key=lambda one: (one.ranks or 0, one.per_worker or 0))
    found.ranks, found.per_worker, found.starts_one = most.ranks, most.per_worker, starts_one
    found.framework = _FRAMEWORKS.get(launchers[0].start.launcher.kind, "")
    found.env.clear()
    for one in reversed(launchers):
        gone = [use for use in one.reading.uses if _needs_launcher_option_removal(use, one)]
        edits = [WordEdit(use.at, use.end) for use in gone]
        fresh = next(
            (
                now
                for now in find_launchers(found.command, None)
                if now.script
                and one.script
                and now.script.text[: now.script.words[0].begin]
                == one.script.text[: one.script.words[0].begin]
            ),
            None,
        )
        if fresh is not None:
            found.command = correct_launcher_words_in_command(found.command, fresh, edits) or found.command
    found.command = remove_empty_continuations(found.command)
    return found


def _record_launcher_counts(found: ConvertedCommand, one: FoundLauncher, env: Mapping[str, str]) -> None:
    """Record counts that the launcher states, if they are known before the run."""
    # torch/distributed/run.py of PyTorch (010929fd): --nproc-per-node, default PET_NPROC_PER_NODE, else 1
    counts = {use.option.role for use in one.reading.uses}
    found.starts_one = one.start.launcher.kind == "torch" and "per-host" not in counts
    for use in one.reading.uses:
        role, value = use.option.role, _fill_in_count_variables(use.value, env)
        number = int(value) if value.isdigit() else None
        if role == "count":
            if number is None and "$" in value and one.start.launcher.kind == "mpi":
                found.questions.append(
                    f"how many ranks {one.start.name} starts, {use.value}, only the script knows; a run starts workers"
                    " times slots"
                )
            if one.start.launcher.kind in ("torch", "deepspeed"):
                found.per_worker = number
            else:
                found.ranks = number
        elif role == "per-host":
            found.per_worker = 1 if not use.values and use.option.name == "pernode" else number
        elif role == "map" and (per := _PER_NODE.match(value)):
            found.per_worker = int(per[1])
        elif role == "hosts" and one.start.launcher.kind == "deepspeed":
            _record_chosen_gpus(found, use)
        elif role == "elastic":
            found.is_elastic = True
        elif role == "workers" and (span := re.fullmatch(r"([0-9]+):([0-9]+)", value)):
            found.elastic = (int(span[1]), int(span[2]))
    if one.start.launcher.kind == "mpi" and one.reading.parts > 1:
        _sum_ranks_of_programs(found, one, env)


def _sum_ranks_of_programs(found: ConvertedCommand, one: FoundLauncher, env: Mapping[str, str]) -> None:
    """Record the ranks of all programs that one launch starts: `mpirun -np 1 ./a : -np 3 ./b`."""
    counts = {use.part: _fill_in_count_variables(use.value, env) for use in one.reading.of("count")}
    is_known = len(counts) == one.reading.parts and all(count.isdigit() for count in counts.values())
    found.ranks = sum(map(int, counts.values())) if is_known else None
    if not is_known:
        found.questions.append(
            f"{one.start.name} starts several programs, and does not say how many ranks each has"
        )
    elif len({use.value for use in one.reading.of("hosts", "hostfile")}) > 1:
        found.questions.append(
            f"{one.start.name} starts each program on hosts of its own; a run fills its workers in the order of the ranks"
        )


def _record_chosen_gpus(found: ConvertedCommand, use: ParsedOption) -> None:
    """Record how many GPUs of each host DeepSpeed uses: `--include a:0,1@b:0,1`."""
    chosen = [one.partition(":")[2] for one in use.value.split("@")]
    counts = {len(set(one.split(","))) if one else 0 for one in chosen}
    if use.option.name in ("i", "include") and len(counts) == 1 and "$" not in use.value:
        found.per_worker = counts.pop() or found.per_worker
    else:
        found.questions.append(
            f"deepspeed is given {use.spelled} {use.value}; a run starts the same number of ranks on each worker"
        )


def _fill_in_count_variables(text: str, env: Mapping[str, str]) -> str:
    """Return a count with a variable of the container, or its default, filled in: `${NP:-4}`."""
    return _VALUE.sub(lambda found: env.get(found[1] or found[2]) or found[3] or found[0], text)


def _is_of_the_run(use: ParsedOption) -> bool:
    return use.option.role in _OF_THE_RUN or is_rendezvous_option(use)


def _needs_launcher_option_removal(use: ParsedOption, one: FoundLauncher) -> bool:
    """Return whether to remove an option from a script that stays.

    The run knows its value, or it would break the connection to workers. It does not know how many ranks each
    of several programs has.
    """
    if use.option.role == "count" and one.reading.parts > 1:
        return False
    return _is_of_the_run(use) or (
        use.option.role == "parameter" and _is_source_option_breaking_launch(use.value.partition("=")[0], use)
    )


def _list_kept_launcher_options(one: FoundLauncher) -> list[ParsedOption]:
    """Return the options that do more than state facts of the run or how the program is found."""
    return [
        use
        for use in one.reading.uses
        if not _is_of_the_run(use) and use.option.role not in ("module", "no-python")
    ]


def _explain_dropped_launcher_option(use: ParsedOption) -> str:
    return {
        "hosts": "the run hands its own hosts to the launcher",
        "hostfile": "the run hands its own hosts to the launcher",
        "root": "ranks never run as root",
        "agent": "the run's workers are reached over SSH",
        "standalone": "the workers of a run train together",
    }.get(use.option.role, "the run knows it")


def _convert_mpi_launcher(found: ConvertedCommand, one: FoundLauncher) -> None:
    """Convert an MPI launcher that gangplan can start itself: keep the program, turn options into fields."""
    for name, value in one.peeled.sets:
        found.env[name] = value
    for use in one.reading.uses:
        words = one.reading.words[use.at : use.end]
        role, name = use.option.role, use.value.partition("=")[0]
        if _is_of_the_run(use):
            found.losses.append((shlex.join(words), _explain_dropped_launcher_option(use)))
        elif role == "bind" and use.value in BINDINGS:
            found.bind_to = use.value
        elif role == "map" and use.value in MAPPINGS:
            found.map_by = use.value
        elif role == "map" and _PER_NODE.fullmatch(use.value):
            found.losses.append((shlex.join(words), _explain_dropped_launcher_option(use)))
        elif role == "env":
            _convert_mpi_variable_option(found, use)
        elif role == "parameter" and _is_source_option_breaking_launch(name, use):
            found.losses.append((shlex.join(words), "it would break the way to the run's workers"))
        else:
            found.flags += words
    found.command = one.reading.program


def _convert_mpi_variable_option(found: ConvertedCommand, use: ParsedOption) -> None:
    """Convert `-x NAME=VALUE` to a variable; drop a name alone, as a run passes on all of its variables."""
    name, equals, value = use.value.partition("=")
    if not equals and len(use.values) > 1:  # Hydra's -genv NAME VALUE
        equals, value = "=", use.values[1]
    if equals and value in (f"$({name})", f"${name}", f"${{{name}}}"):
        found.losses.append((f"{use.spelled} {use.value}", "the run carries its variables to all ranks"))
    elif equals and not is_reserved_variable(name) and not is_launcher_variable(name):
        found.env[name] = value
    elif equals:
        found.losses.append((f"{use.spelled} {use.value}", "gangplan sets it for every run"))
    else:
        found.losses.append((f"{use.spelled} {use.value}", "the run carries its variables to all ranks"))


def _is_source_option_breaking_launch(name: str, use: ParsedOption) -> bool:
    value = use.values[1] if len(use.values) > 1 else use.value.partition("=")[2]
    return (
        bool(find_reserved_mca_variable(name))
        or bool(explain_broken_mpi_launch(name, value, 2222, "rsh"))
        or bool(explain_broken_mpi_launch(name, value, 2222, "ssh"))
    )


__all__ = ["ConvertedCommand", "UnreadableError", "convert_command"]
