"""Read a launch of a script: the scheduler's launcher and its options, the container, and the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import field

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.scripted import idioms, slurm_options, slurm_tables
from gangplan.imports.scripted.containers import (
    ContainerStart,
    convert_image_uri_to_reference,
    find_container_start_in_script,
)
from gangplan.imports.scripted.directives import BatchScript, ScriptOption
from gangplan.imports.scripted.pals import is_pals_launch_in_batch_script, read_pals_option_as_slurm_option
from gangplan.imports.scripted.perhost import find_per_host_start
from gangplan.imports.scripted.pieces import ExpandedWord
from gangplan.imports.scripted.wanted import WantedAllocation, parse_script_container_mounts
from gangplan.imports.workload import SourceLoss
from gangplan.plan.launchers import UnreadableError, find_launcher_at, find_launchers, program_name_of
from gangplan.plan.launchers.foreign import OTHER_LAUNCHERS
from gangplan.plan.launchers.shell import ShellWord
from gangplan.records import dataclass

# Launchers that a scheduler gives to a job, whose options are read here.
STEPS = frozenset({"srun", "ibrun", "aprun", "ccc_mprun", "prun", "mpiexec_mpt", "pbsdsh", "jsrun", "lrun"})
# Launchers of frameworks that gangplan does not start, and of other schedulers.
FOREIGN_LAUNCHER_NAMES = frozenset(OTHER_LAUNCHERS) - STEPS - {"sbatch", "salloc", "qsub", "bsub"}
# Words before a launcher that are useless to a run.
_PREFIXES = frozenset({"time", "exec", "nohup", "command", "eval"})
# Options of GNU time (1.9) with a value.
_TIME_WORDS = frozenset({"-f", "-o", "--format", "--output"})
_APRUN = {"n": "ntasks", "N": "ntasks-per-node", "d": "cpus-per-task", "D": "", "e": "export"}
_APRUN_WORDS = frozenset(
    str.split("-n -N -d -j -S -cc -cp -e -L -l -m -M -p -r -ss -d -B -b -w -P -o -depth -ppn --np")
)
_IBRUN_WORDS = frozenset(["-n", "-np", "-o"])
# Options of torchrun and Accelerate for a rendezvous, which every run has.
_MEETING = frozenset(
    set(
        str.split(
            "master-port master_port rdzv-id rdzv_id main-process-port main_process_port rdzv-conf rdzv_conf"
        )
    )
)


@dataclass(slots=True)
class ScriptLaunch:
    """A launch: its words after expansion, the word of the script that each comes from, and what was found.

    `starter` is the scheduler's launcher, and `program` the words that are left.
    """

    fields: list[ExpandedWord]
    words: list[ShellWord]
    starter: str = ""
    program: list[ExpandedWord] = field(default_factory=list)
    sets: list[ExpandedWord] = field(default_factory=list)
    losses: list[tuple[str, str]] = field(default_factory=list)


def skip_shell_command_prefixes(texts: Sequence[str], at: int = 0) -> int:
    """Return the index after words that only measure or wrap a command: `time`, `exec`, `nohup`.

    GNU time may have options.
    """
    while at < len(texts):
        if program_name_of(texts[at]) == "time":
            at += 1
            while at < len(texts) and texts[at].startswith("-"):
                at += 2 if texts[at] in _TIME_WORDS else 1
        elif texts[at] in _PREFIXES:
            at += 1
        else:
            break
    return at


def is_start_of_batch_script_launch(texts: Sequence[str], at: int = 0) -> bool:
    """Return whether a command begins with a launcher, after prefixes."""
    while at < len(texts) and (
        skip_shell_command_prefixes(texts, at) > at or re.match(r"[A-Za-z_]\w*=", texts[at])
    ):
        at = max(at + 1, skip_shell_command_prefixes(texts, at))
    if at >= len(texts):
        return False
    name = program_name_of(texts[at])
    if _is_step(texts, at) or (
        name in FOREIGN_LAUNCHER_NAMES and find_launcher_at(texts, at, None) is not None
    ):
        return True
    if (inner := find_container_start_in_script(texts, at)) is not None:
        return True if inner.is_entrypoint else bool(texts[inner.end :])
    try:
        return bool(find_launchers(texts[at:], None))
    except UnreadableError:
        return False


def is_batch_script_launch(texts: Sequence[str]) -> bool:
    """Return whether a command of the script starts ranks, and not only what looks around or prepares."""
    if not is_start_of_batch_script_launch(texts):
        return False
    inside = find_container_start_in_script(rest := skip_job_step_launcher(texts), 0)
    if inside is not None and (inside.is_entrypoint or inside.end >= len(rest)):
        return True
    rest = rest[inside.end :] if inside is not None else rest
    if rest and program_name_of(rest[0]) == "bash":
        return len(rest) != 1
    return (
        not rest or program_name_of(rest[0]) not in idioms.INSPECTION_COMMANDS | idioms.PREPARATION_COMMANDS
    )


def read_script_launch(
    launch: ScriptLaunch, script: BatchScript, account: Account, wanted: WantedAllocation
) -> None:
    """Take the launch apart, and add every word of it to the account."""
    texts = [one.text for one in launch.fields]
    at = 0
    if end := skip_shell_command_prefixes(texts):
        _add_launch_leaf_to_account(launch, script, account, 0, end, texts[0]).dropped(
            "it is about the shell of the batch script"
        )
        at = end
    if _is_step(texts, at):
        at = _read_job_step_launcher(launch, script, account, wanted, at)
    at = _read_script_launch_container(launch, script, account, wanted, at)
    at = _read_per_host_start(launch, script, account, wanted, at)
    begin = at
    nodes = _add_program_leaves_to_account(launch, script, account, begin)
    inner = _find_container_after_mpirun(launch, at)
    if inner is not None:  # mpirun -np 4 apptainer exec IMAGE PROGRAM
        line = script.where(launch.words[inner.begin].begin).line
        _record_script_container_settings(inner, launch, wanted, nodes[line])
        kept = [*range(begin, inner.begin), *range(inner.end, len(texts))]
    else:
        kept = list(range(begin, len(texts)))
    kept = _remove_rendezvous_options(launch, kept)
    launch.program = [launch.fields[index] for index in kept]


def _read_per_host_start(
    launch: ScriptLaunch, script: BatchScript, account: Account, wanted: WantedAllocation, at: int
) -> int:
    """Skip an mpirun that only starts torchrun on each host; return the index of what it starts."""
    texts = [one.text for one in launch.fields]
    found = find_per_host_start(texts[at:], wanted.node_count)
    if found is None:
        return at
    launch.starter = program_name_of(texts[at])
    rows = _group_batch_script_words_by_line(launch, script, at, at + found.begin)
    for row in rows:
        node = _add_launch_leaf_to_account(launch, script, account, row[0], row[-1] + 1, launch.starter)
        node.dropped("every worker of a run starts its ranks itself")
    for name, value in found.env:
        wanted.variable(name, value, node)
    return at + found.begin


def _remove_rendezvous_options(launch: ScriptLaunch, kept: list[int]) -> list[int]:
    """Return the words without options that name ports and ids of a rendezvous."""
    texts = [launch.fields[index].text for index in kept]
    try:
        found = find_launchers(texts, None)
    except UnreadableError:
        return kept
    gone: set[int] = set()
    for one in found:
        if one.script is None and one.start.launcher.kind in ("torch", "accelerate"):
            for use in one.reading.uses:
                if use.spelled.lstrip("-") in _MEETING:
                    gone |= set(range(use.at, use.end))
                    launch.losses.append((use.spelled, "the run's workers meet by themselves"))
    return [index for place, index in enumerate(kept) if place not in gone]


def _add_launch_leaf_to_account(
    launch: ScriptLaunch,
    script: BatchScript,
    account: Account,
    begin: int,
    end: int,
    name: str,
    value: str = "",
) -> SourceNode:
    """Return a new leaf for some words of the launch."""
    first, last = launch.words[begin], launch.words[end - 1]
    path = script.leaf(
        name, first.begin, last.end, value or " ".join(one.text for one in launch.fields[begin:end])
    )
    return SourceNode(account, path, value)


def _read_job_step_launcher(
    launch: ScriptLaunch, script: BatchScript, account: Account, wanted: WantedAllocation, at: int
) -> int:
    """Read the scheduler's launcher and its options; return the index of what it starts."""
    texts = [one.text for one in launch.fields]
    name = program_name_of(texts[at])
    launch.starter = name
    _add_launch_leaf_to_account(launch, script, account, at, at + 1, name, name).mapped("command")
    takes = _select_option_reader(name)
    index = at + 1
    found: list[ScriptOption] = []
    while index < len(texts) and texts[index].startswith("-") and len(texts[index]) > 1:
        if texts[index] == "--":
            return _apply_step_options(found, wanted, account, index + 1)
        end, option, value = takes(texts, index)
        path = script.leaf(
            f"{name} --{option}", launch.words[index].begin, launch.words[min(end, len(texts)) - 1].end, value
        )
        found.append(ScriptOption(option, value, path))
        index = end
    return _apply_step_options(found, wanted, account, index)


def _is_step(texts: Sequence[str], at: int) -> bool:
    """Return whether a word is a launcher of the scheduler: one by its name, or the mpiexec of PALS."""
    return at < len(texts) and (
        program_name_of(texts[at]) in STEPS or is_pals_launch_in_batch_script(texts, at)
    )


def _select_option_reader(name: str) -> Callable[[Sequence[str], int], tuple[int, str, str]]:
    """Return the function that reads the options of a launcher."""
    if name in ("srun", "ccc_mprun", "prun"):
        return _read_srun_option
    return read_pals_option_as_slurm_option if name == "mpiexec" else _read_aprun_option


def _apply_step_options(
    found: list[ScriptOption], wanted: WantedAllocation, account: Account, index: int
) -> int:
    slurm_options.apply_slurm_options(found, wanted, account, is_step=True)
    return index


def _read_srun_option(texts: Sequence[str], index: int) -> tuple[int, str, str]:
    """Return the end, name and value of an option of srun."""
    text = texts[index]
    name, equals, value = text.partition("=")
    if text.startswith("--"):
        bare = slurm_options.expand_slurm_option_name(name[2:])
        if equals or bare in slurm_tables.SLURM_FLAGS or index + 1 >= len(texts):
            return index + 1, bare, value
        return index + 2, bare, texts[index + 1]
    bare = slurm_tables.SLURM_SHORT_OPTIONS.get(text[1], text[1])
    if bare in slurm_tables.SLURM_FLAGS:
        return index + 1, bare, ""
    if len(text) > 2:
        return index + 1, bare, text[2:].removeprefix("=")
    return min(index + 2, len(texts)), bare, texts[index + 1] if index + 1 < len(texts) else ""


def _read_aprun_option(texts: Sequence[str], index: int) -> tuple[int, str, str]:
    """Return the same for an option of aprun (Cray ALPS 6), ibrun (TACC) or mpiexec_mpt."""
    text = texts[index]
    if text in _APRUN_WORDS | _IBRUN_WORDS and index + 1 < len(texts):
        return index + 2, _APRUN.get(text.lstrip("-"), "") or "cpu-bind", texts[index + 1]
    short = re.fullmatch(r"-([nNd])([0-9]+)", text)
    return (index + 1, _APRUN[short[1]], short[2]) if short else (index + 1, "cpu-bind", "")


def _read_script_launch_container(
    launch: ScriptLaunch, script: BatchScript, account: Account, wanted: WantedAllocation, at: int
) -> int:
    """Read a container that the launcher starts; return the index of the program in it."""
    found = find_container_start_in_script([one.text for one in launch.fields], at)
    if found is None:
        return at
    end = max(found.end, at + 1)
    rows = _group_batch_script_words_by_line(launch, script, at, end)
    nodes = [
        _add_launch_leaf_to_account(
            launch, script, account, row[0], row[-1] + 1, program_name_of(launch.fields[at].text)
        )
        for row in rows
    ]
    _record_script_container_settings(found, launch, wanted, nodes[0])
    for node in nodes:
        node.mapped("image")
    return end


def _record_script_container_settings(
    found: ContainerStart, launch: ScriptLaunch, wanted: WantedAllocation, node: SourceNode
) -> None:
    """Record the image, mounts, variables and folder with which a container starts."""
    if found.image and not wanted.image:
        wanted.image = found.image
        wanted.place("image", node)
    for text in found.mounts:
        for mount in parse_script_container_mounts(text, node):
            wanted.mounts.append(mount)
            is_known = mount.host.startswith("/") and "$" not in mount.host + mount.target
            if not is_known:
                what = f"the container sees {mount.host} as {mount.target}"
                _ask_about_container(wanted, node, "volumes", mount.target, what)
    for text in found.env:
        name, equals, value = text.partition("=")
        if equals and "$" not in value:
            wanted.variable(name, value, node)
        else:
            what = f"the container has the variable {name}"
            _ask_about_container(wanted, node, "environment", name, what)
    if found.workdir.startswith("/") and "$" not in found.workdir:
        wanted.workdir = found.workdir
        replaced = wanted.at.pop("workdir", None)
        if replaced is not None:
            replaced.dropped(f"the container's own working directory {found.workdir} holds")
    for text in found.files:
        what = f"the container has the variables of {text}"
        _ask_about_container(wanted, node, "environment", text, what)
    program = next((one.text for one in launch.fields[found.end :]), "-")
    is_known = convert_image_uri_to_reference(found.image) != "" and not program.startswith("-")
    if found.is_entrypoint and not is_known:
        message = f"the program that {found.image} starts by itself is not known here"
        wanted.questions.append((node, message, "Write the command of that program."))


def _ask_about_container(wanted: WantedAllocation, node: SourceNode, area: str, name: str, what: str) -> None:
    help = "Give it (--set NAME=VALUE), or write env: or data: {CLAIM: FOLDER}."
    why = f"{what}, which only the old cluster knows"
    wanted.lost.append(SourceLoss(area, name, what, None, why, help, node))


def _find_container_after_mpirun(launch: ScriptLaunch, at: int) -> ContainerStart | None:
    """Return a container after mpirun and its options."""
    texts = [one.text for one in launch.fields[at:]]
    try:
        launchers = find_launchers(texts, None)
    except UnreadableError:
        return None
    if len(launchers) != 1 or launchers[0].script is not None or not launchers[0].reading.programs:
        return None
    begin = launchers[0].reading.programs[0][0] + at
    return find_container_start_in_script([one.text for one in launch.fields], begin) if begin > at else None


def _add_program_leaves_to_account(
    launch: ScriptLaunch, script: BatchScript, account: Account, begin: int
) -> dict[int, SourceNode]:
    """Add a leaf for each line of the program's words, and return those of words by their lines."""
    found: dict[int, SourceNode] = {}
    for row in _group_batch_script_words_by_line(launch, script, begin, len(launch.fields)):
        node = _add_launch_leaf_to_account(launch, script, account, row[0], row[-1] + 1, "program")
        found[script.where(launch.words[row[0]].begin).line] = node.mapped("command")
    for word in dict.fromkeys(launch.words[begin:]):
        first = script.text.find("\n", word.begin, word.end)
        if first >= 0:  # a word of several lines, such as a script for another shell
            for path in script.lines("program", first + 1, word.end):
                SourceNode(account, path, None).mapped("command")
    return found


def _group_batch_script_words_by_line(
    launch: ScriptLaunch, script: BatchScript, begin: int, end: int
) -> list[list[int]]:
    """Group words of the launch by their line in the script."""
    rows: dict[int, list[int]] = {}
    for index in range(begin, end):
        rows.setdefault(script.where(launch.words[index].begin).line, []).append(index)
    return list(rows.values())


def skip_job_step_launcher(texts: Sequence[str]) -> Sequence[str]:
    """Return the words after the scheduler's launcher and its options."""
    if not _is_step(texts, 0):
        return texts
    takes = _select_option_reader(program_name_of(texts[0]))
    index = 1
    while index < len(texts) and texts[index].startswith("-") and len(texts[index]) > 1:
        index = takes(texts, index)[0]
    return texts[index:]


def strip_scheduler_start(texts: Sequence[str]) -> Sequence[str]:
    """Return a command without the scheduler's launcher and the container in which it runs."""
    rest = skip_job_step_launcher(texts)
    inside = find_container_start_in_script(rest, 0)
    return rest[inside.end :] if inside is not None and inside.end < len(rest) else rest
