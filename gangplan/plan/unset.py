"""Find variables that a script reads and that nothing sets: in general, and those that only a field of the spec sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from gangplan.findings import Problem
from gangplan.model.job import EnvVar, Job
from gangplan.model.pods import CHECKPOINT_ENV, MODEL_ENV, SCRATCH_VARIABLE
from gangplan.plan.launchers import UnreadableError, find_script_index
from gangplan.plan.launchers.shell import ShellWord, SimpleCommand, read_shell_commands
from gangplan.plan.words import BATCH_VARIABLES
from gangplan.rules.commands import COMMAND_NEEDS_FIELD, SCRIPT_VARIABLE_UNSET

# The variables that a field sets, each with the field and how to write it.
_FIELDS = {
    **dict.fromkeys(CHECKPOINT_ENV, ("checkpoint", "checkpoint: {to: CLAIM}")),
    **dict.fromkeys(MODEL_ENV, ("model", "model: {name: NAME, version: VERSION}")),
    SCRATCH_VARIABLE: ("scratch", "scratch: SIZE"),
}
_SETS = re.compile(
    r"\b(?:for|select)\s+([A-Za-z_]\w*)|\bprintf\s+-v\s+([A-Za-z_]\w*)|\bgetopts\s+\S+\s+([A-Za-z_]\w*)"
)
_ARITHMETIC = re.compile(r"\$\(\((.*?)\)\)", re.DOTALL)
_BARE = re.compile(r"(?<![\w#])\$?\{?([A-Za-z_]\w*)")
_SETTING = frozenset(
    {"read", "mapfile", "readarray", "export", "declare", "local", "typeset", "readonly", "unset"}
)
# Commands behind which a script may have any variable.
_LOADING = frozenset({"source", ".", "eval"})


def check_command_needs_no_field(words: tuple[str, ...], env: Iterable[EnvVar]) -> Iterator[Problem]:
    """Yield a problem of each variable that the script of a command reads, and that only an absent field sets.

    `env` are the variables of its container.
    """
    at = find_script_index(words, 0)
    script = words[at] if at >= 0 else ""
    if not any(name in script for name in _FIELDS):
        return
    known = {one.name for one in env}
    for name, _, _ in find_unset_shell_variables(script, known, lambda name: name not in _FIELDS):
        field, example = _FIELDS[name]
        message = f"the command reads ${name}, which only {field} sets, and nothing here does: it is empty unless the image sets it"
        help = f"Add {example}; or give {name} a value in the script or under env."
        yield Problem(("command", at), message, help, COMMAND_NEEDS_FIELD)


# What torchrun, Open MPI, and Hydra or MVAPICH give each rank; a script that starts one of them is none.
_TORCH = r"(?:LOCAL_)?(?:RANK|WORLD_SIZE)|GROUP_RANK|NODE_RANK|NNODES|MASTER_(?:ADDR|PORT)"
_OPEN_MPI = r"OMPI_COMM_WORLD_\w+"
_HYDRA = r"(?:PMI|MV2_COMM_WORLD)_\w+|MPI_LOCAL(?:RANKID|NRANKS)"
_BY_RANK = "Read it in the program, or in a script that each rank runs."
# What a run has in place of such a variable.
_INSTEAD = {
    r"\w+_JOB_?ID": """Write env: {RUN_NAME: {field: "metadata.labels['gangplan.dev/run']"}}, and read $RUN_NAME.""",
    r"SLURM_(?:NTASKS|NPROCS)|PBS_NP": "Write {ranks}, which gangplan fills in.",
    r"SLURM_(?:JOB_NUM_)?(?:NNODES|NODES)|PBS_NUM_NODES": "Write {workers}, which gangplan fills in.",
    r"SLURM_TMPDIR": "Write scratch: SIZE, and read $SCRATCH_DIR.",
    r"SLURM_SUBMIT_DIR|PBS_O_WORKDIR": "Write the folder itself, or workdir.",
    r"SLURM_PROCID": f"A rank has its number as $RANK (torch), $OMPI_COMM_WORLD_RANK (Open MPI) or $PMI_RANK (MPICH, Intel MPI). {_BY_RANK}",
    r"SLURM_LOCALID": f"A rank has it as $LOCAL_RANK (torch), $OMPI_COMM_WORLD_LOCAL_RANK (Open MPI) or $MPI_LOCALRANKID (MPICH, Intel MPI). {_BY_RANK}",
    r"SLURM_NODEID": f"A worker has its number as $GROUP_RANK (torch) or $NODE_RANK (framework: plain). {_BY_RANK}",
    rf"{_TORCH}|{_OPEN_MPI}|{_HYDRA}": _BY_RANK,
}


def check_variables_of_other_systems(
    words: tuple[str, ...], known: Collection[str], others: str = ""
) -> Iterator[Problem]:
    """Yield a problem of each variable that the script of a command reads, and that another system would set.

    `known` are the variables of its container, `others` is the pattern of those that its pod has not.
    """
    at = find_script_index(words, 0)
    absent = re.compile(f"{BATCH_VARIABLES}|{others}" if others else BATCH_VARIABLES)
    if at < 0 or not absent.search(words[at]):
        return
    for name, _, _ in find_unset_shell_variables(words[at], known, lambda name: not absent.fullmatch(name)):
        message = f"the command reads ${name}, which nothing sets there: it is empty unless the image sets it"
        help = next((help for names, help in _INSTEAD.items() if re.fullmatch(names, name)), "Remove it.")
        yield Problem(("command", at), message, help, SCRIPT_VARIABLE_UNSET)


def describe_absent_rank_variables(job: Job, is_wrapped: bool) -> str:
    """Return the pattern of variables of ranks that a job's own script has not, wrapped by a launcher or not."""
    if job.image.framework == "torch":
        return "" if is_wrapped else _TORCH
    if job.image.mpi is None:
        return ""
    absent = {_OPEN_MPI, _HYDRA}
    if is_wrapped:
        absent.discard(_OPEN_MPI if job.image.mpi.family == "OpenMPI" else _HYDRA)
    return "|".join(sorted(absent))


def find_unset_shell_variables(
    script: str, known: Collection[str], is_of_others: Callable[[str], object]
) -> Iterator[tuple[str, int, str]]:
    """Yield variables that a script needs and does not set: name, place of the first use, and how it is written.

    One that has a default, or is only looked at, is not needed. A script that loads another may have any variable.
    `is_of_others` tells which names something else sets.
    """
    try:
        commands = read_shell_commands(script)
    except UnreadableError:
        return
    if any(_LOADING & set(one.texts[:1]) for one in commands):
        return
    set_here = set(_list_set_names(commands)) | {
        name for found in _SETS.findall(script) for name in found if name
    }
    seen = {*known, *set_here}
    for command in commands:
        for word in (*command.sets, *command.words):
            for name, offset, piece in _list_read_names(script, word):
                if name in seen or not name[0].isidentifier() or is_of_others(name):
                    continue
                seen.add(name)  # a script is searched once for each name
                is_looked_at = rf"\$\{{{name}:?[-=+]|-[nzv]\s+\"?(?:\$\{{?)?{name}\b"
                is_calculated = (
                    rf"(?:\(\([^)\n]*|\blet\s[^;&|\n]*)(?<![\w$]){name}\s*(?:[-+*/%]?=(?!=)|\+\+|--)"
                )
                if not re.search(f"{is_looked_at}|{is_calculated}", script):
                    yield name, offset, piece


def _list_read_names(script: str, word: ShellWord) -> Iterator[tuple[str, int, str]]:
    """Yield the variables of a word, with their places and how they are written; those in arithmetic are bare."""
    for name in word.names:
        found = re.compile(rf"\$\{{?{re.escape(name)}(?!\w)").search(script, word.begin, word.end)
        if found is not None:
            yield name, found.start(), found[0]
    for inner in _ARITHMETIC.finditer(script, word.begin, word.end) if word.is_open else ():
        for found in _BARE.finditer(script, inner.start(1), inner.end(1)):
            yield found[1], found.start(), found[0]


def _list_set_names(commands: Collection[SimpleCommand]) -> Iterator[str]:
    for one in commands:
        for word in one.sets:
            yield re.split(r"\+?=|\[", word.text)[0]
        if one.texts and one.texts[0] in _SETTING:
            for word in one.words[1:]:
                yield word.text.partition("=")[0]
