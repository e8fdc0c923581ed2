"""Find words of a command that nothing expands, splits or fills in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from gangplan.findings import Problem
from gangplan.model.frameworks import ONE_RANK_FRAMEWORKS
from gangplan.model.job import Job
from gangplan.plan.launchers import SHELL_NAMES, find_script_index, is_python, program_name_of, strip_prefixes
from gangplan.plan.launchers.prefixes import ASSIGNMENT_PATTERN
from gangplan.plan.operators import (
    SoundnessCheck,
    check_command_privilege_prefixes,
    check_command_shell_operators,
    propose_sound_command_help,
)
from gangplan.plan.problems import format_flow_list, is_pasteable, join_shell_words
from gangplan.rules.commands import (
    COMMAND_HOSTS,
    COMMAND_ONE_WORD,
    COMMAND_PLACEHOLDER,
    COMMAND_SHELL,
    COMMAND_TOO_LONG,
    COMMAND_VARIABLE,
)
from gangplan.rules.model import Severity

# Linux refuses one argument above 128 KiB including its final zero byte (MAX_ARG_STRLEN,
# include/uapi/linux/binfmts.h, v2.6.23 to v6.x), and all arguments and variables together above a quarter of
# the stack limit of 8 MiB.
LONGEST_WORD = 131071
LONGEST_COMMAND = 2 * 1024 * 1024
_POINTER = 8

# What a shell would expand. Lower-case names are left alone: configurations use ${model.size}.
VARIABLE_REFERENCE = re.compile(
    r"\$(?:([A-Z_][A-Z0-9_]*)(?![A-Za-z0-9_])|\{([A-Z_][A-Z0-9_]*)[}:]|\(([^)]*)\))|(?<![^=:/,])`[^`\s][^`]*`"
)
_BACKTICKS = re.compile(r"`([^`]*)`")
_SUBSTITUTION = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`")
# Names in braces that mean a number of the run, each with the one that gangplan fills in.
_NEAR = {
    **dict.fromkeys(("rank", "np", "nproc", "world_size", "num_proc", "num_processes", "size"), "{ranks}"),
    **dict.fromkeys(
        ("worker", "nodes", "nnodes", "num_nodes", "num_workers", "hosts", "replicas"), "{workers}"
    ),
    **dict.fromkeys(
        ("slot", "gpus", "nproc_per_node", "gpus_per_node", "ranks_per_worker", "ppn"), "{slots}"
    ),
}
_BRACES = re.compile(r"\{(\w+)\}")
TEMPLATE_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_ANGLES = re.compile(r"(?:^|=)<([A-Za-z][A-Za-z0-9 _.-]{2,40})>$")
# Tokens of tokenizers and filters that look like placeholders.
_TOKENS = frozenset(
    {"pad", "unk", "mask", "eos", "bos", "sep", "cls", "image", "video", "audio", "stdin", "think"}
)
# What runs a file, by the end of its name.
_FILES = {"py": "python", "sh": "bash"}
_LONG_OPTION = re.compile(r"--[A-Za-z][\w.-]*[ \t]+\S")
_PARAMETER_SERVER = re.compile(r"--(?:(?:ps|worker)[_-]hosts=|job[_-]name=ps(?:=|$))")
_BUILTINS = frozenset(
    {
        "cd",
        "export",
        "source",
        ".",
        "exec",
        "eval",
        "ulimit",
        "set",
        "unset",
        "alias",
        "if",
        "for",
        "while",
        "trap",
        "umask",
    }
)
# Programs whose text contains dollar signs, and options of others whose value is code.
_TEXT_PROGRAMS = frozenset(
    {"awk", "gawk", "mawk", "sed", "grep", "egrep", "jq", "perl", "ruby", "envsubst", "find"}
)
_CODE_OPTIONS = frozenset({"-c", "-e", "-E", "-r", "--eval"})


def check_command_words(job: Job, is_sound: SoundnessCheck | None = None) -> Iterator[Problem]:
    """Yield problems of single words, in order. `is_sound` decides whether a command may be proposed."""
    code = _find_code_word_indexes(job.command)
    operators = list(check_command_shell_operators(job, code, is_sound))
    yield from _find_first_command_word_problems(job, is_sound, bool(operators))
    yield from check_command_privilege_prefixes(job, is_sound)
    yield from operators
    if operators:
        return  # the shell that they need also expands the other words
    for index, word in enumerate(job.command):
        if index in code:
            continue
        yield from _find_unexpanded_command_variable(job, index, word, is_sound)
        yield from _find_unfilled_command_placeholder(index, word)
        yield from _find_parameter_server_option(job, index, word)
    yield from _find_unsplit_options(job, code, is_sound)


def _find_unsplit_options(job: Job, code: set[int], is_sound: SoundnessCheck | None) -> Iterator[Problem]:
    """Yield a problem of the first option that is one word with its value; the help splits all of them."""
    words = job.command
    split = {
        index: parts
        for index, word in enumerate(words)
        if index
        and index not in code
        and not _takes_next_word(words[index - 1])
        and (parts := _split_option(word))
    }
    if not split:
        return
    first = min(split)
    right = tuple(part for index, word in enumerate(words) for part in split.get(index, (word,)))
    message = f"'{_shorten_word(words[first])}' is one word with spaces: the program gets one argument, not an option and its value"
    help = propose_sound_command_help(job, right, "Make each word a separate entry.", is_sound)
    yield Problem(("command", first), message, help, COMMAND_ONE_WORD, level=Severity.WARNING)


def _takes_next_word(word: str) -> bool:
    """Return whether the next word may be the value of this one, whatever it looks like."""
    return word.startswith("-") and "=" not in word and not _split_option(word)


def _split_option(word: str) -> tuple[str, ...]:
    """Return the words in a long option written with its value; empty for any other word.

    A short option is left alone: most programs read `-n 10` as -n and its value.
    """
    if not _LONG_OPTION.match(word):
        return ()
    try:
        return tuple(shlex.split(word))
    except ValueError:
        return ()


def _find_parameter_server_option(job: Job, index: int, word: str) -> Iterator[Problem]:
    """Yield a problem of an option for parameter servers, where all ranks get the same command.

    The options are those of TensorFlow 1's distributed programs (tensorflow/docs, r1.15, deploy/distributed).
    """
    following = job.command[index + 1] if index + 1 < len(job.command) else ""
    if job.image.framework in ONE_RANK_FRAMEWORKS or not _PARAMETER_SERVER.match(f"{word}={following}"):
        return
    message = f"{word.partition('=')[0]} is for parameter servers, but all {job.ranks} ranks of the run get this command"
    help = (
        "Remove it and train with all-reduce, such as Horovod; or use an image with framework: tensorflow and"
        " give the servers as roles: {ps: {workers: 2}} (docs/pods.md)."
    )
    yield Problem(("command", index), message, help, COMMAND_HOSTS)


def check_command_word_lengths(
    job: Job, argv: tuple[str, ...], places: tuple[tuple[str | int, ...], ...]
) -> Iterator[Problem]:
    """Yield problems of words, or of all words together, that are too long for Linux."""
    total = sum(len(f"{one.name}={one.value}".encode()) + 1 + _POINTER for one in job.env)
    for word, place in zip(argv, places, strict=True):
        size = len(word.encode())
        total += size + 1 + _POINTER
        if size > LONGEST_WORD:
            message = f"a word of {size:,} bytes: Linux limits an argument to {LONGEST_WORD:,} bytes"
            yield Problem(place or ("command",), message, _FILE, COMMAND_TOO_LONG)
    if total > LONGEST_COMMAND:
        message = f"the command and its environment hold {total:,} bytes: Linux starts nothing above {LONGEST_COMMAND:,}"
        yield Problem(("command",), message, _FILE, COMMAND_TOO_LONG)


_FILE = "Put the text into a file in the image or on a claim, and pass its path."


def _find_first_command_word_problems(
    job: Job, is_sound: SoundnessCheck | None, has_operators: bool
) -> Iterator[Problem]:
    words, first = job.command, job.command[0]
    if assigned := _list_leading_assignments(words):
        message = f"'{first}' is an assignment, which only a shell understands; here it would be taken for the program"
        if first == "export":
            message = "'export' is part of the shell, not a program"
        help = f"Write {' and '.join(assigned)} under env, and begin the command with the program."
        rest = words[len(assigned) + (first == "export") :]
        if rest and is_sound is not None and is_pasteable(words) and is_sound(job, rest):
            env = ", ".join(f"{name}: {format_flow_list([value])[1:-1]}" for name, value in assigned.items())
            help = f"Write env: {{{env}}} and command: {format_flow_list(rest)}."
        yield Problem(("command", 0), message, help, COMMAND_SHELL)
    elif first in _BUILTINS and not has_operators:
        message = f"'{first}' is part of the shell, not a program"
        otherwise = "Run it with a shell: bash, -c, and the script as one word."
        yield Problem(
            ("command", 0),
            message,
            propose_sound_command_help(job, _wrap_words_in_shell(words), otherwise, is_sound),
            COMMAND_SHELL,
        )
    for index in _list_program_indexes(job):
        word = words[index]
        name, dot, end = word.rpartition(".")
        runner = _FILES.get(end) if name and dot and "/" not in word else None
        if split := split_command_word(word):
            right = (*words[:index], *split, *words[index + 1 :])
            message = f"'{_shorten_word(word)}' is one word with spaces: the system would look for a file of that name"
            help = propose_sound_command_help(job, right, "Make each word a separate entry.", is_sound)
            yield Problem(("command", index), message, help, COMMAND_ONE_WORD)
        elif runner and not any(is_python(one) or _runs_by_uv(one, runner) for one in words[:index]):
            message = f"'{word}' is the name of a file, and the system looks for programs on PATH alone"
            right = (*words[:index], runner, *words[index:])
            help = propose_sound_command_help(job, right, f"Begin with {runner}.", is_sound)
            yield Problem(("command", index), message, help, COMMAND_ONE_WORD, level=Severity.WARNING)


def _runs_by_uv(word: str, runner: str) -> bool:
    """Return whether a word is uv, which starts a file of Python with Python (docs.astral.sh/uv, uv run)."""
    return runner == "python" and program_name_of(word) == "uv"


def _list_leading_assignments(words: tuple[str, ...]) -> dict[str, str]:
    """Return what is set before the program, by name, with or without `export`."""
    found: dict[str, str] = {}
    for word in words[words[0] == "export" :]:
        assigned = ASSIGNMENT_PATTERN.fullmatch(word)
        if assigned is None:
            break
        found[assigned[1]] = assigned[2]
    return found


def _list_program_indexes(job: Job) -> Iterator[int]:
    """Yield the index of the first word, of the first after prefixes, and of a script or module of Python that
    has options in its word; others may have blanks in their names."""
    words = job.command
    yield 0
    behind = strip_prefixes(words).at
    if 0 < behind < len(words):
        yield behind
    script = behind + 1 + (words[behind + 1 : behind + 2] == ("-m",))
    if behind < len(words) and is_python(words[behind]) and script < len(words):
        name, _, options = words[script].partition(" ")
        if options.lstrip().startswith("-") and (words[script - 1] == "-m" or name.endswith(".py")):
            yield script


def split_command_word(word: str) -> list[str]:
    """Return the words in a word meant as a whole command; empty for one word, as a path with spaces."""
    if not re.search(r"\S[ \t\n]+\S", word) or (word.startswith("/") and "/" in word.rpartition(" ")[2]):
        return []
    try:
        # YAML reads entries whose dashes are deeper than the first as one text: `python - train.py`.
        split = shlex.split(
            _SUBSTITUTION.sub(_hide_blanks, word.replace(" - ", " ") if re.match(r"\S+ - \S", word) else word)
        )
    except ValueError:
        return []
    return [part.replace("\0", " ") for part in split] if len(split) > 1 else []


def _hide_blanks(substitution: re.Match[str]) -> str:
    """Return a substitution without blanks: a shell puts its result in its place, and splits only that."""
    return re.sub(r"\s", "\0", substitution[0])


def _shorten_word(word: str) -> str:
    return word if len(word) <= 60 else f"{word[:57]}..."


def _wrap_words_in_shell(words: tuple[str, ...]) -> tuple[str, ...]:
    return ("bash", "-c", join_shell_words(words))


def find_unexpanded_command_variables(words: tuple[str, ...]) -> list[str]:
    """Return the names of variables in words that no shell reads, each once."""
    code = _find_code_word_indexes(words)
    found = (
        one for at, word in enumerate(words) if at not in code for one in VARIABLE_REFERENCE.finditer(word)
    )
    return list(dict.fromkeys(name for one in found if (name := one[1] or one[2])))


def _find_code_word_indexes(words: tuple[str, ...]) -> set[int]:
    """Return the indexes of words that another program reads as its own language."""
    at = strip_prefixes(words).at
    script = find_script_index(words, at)
    if script >= 0:
        return set(range(script, len(words)))
    found: set[int] = set()
    for index, word in enumerate(words):
        name = program_name_of(word)
        if name in _TEXT_PROGRAMS:
            return found | set(range(index, len(words)))
        if name in SHELL_NAMES and (inner := find_script_index(words, index)) >= 0:
            return found | set(range(inner, len(words)))
        if word in _CODE_OPTIONS and index and any(is_python(one) for one in words[:index]):
            found.add(index + 1)
    return found


# Variables of batch systems: Slurm, PBS, LSF, Grid Engine, Cobalt and Flux.
BATCH_VARIABLES = r"(?:SLURM|SBATCH|PBS|LSB|SGE|COBALT|FLUX)_\w+"


def _find_unexpanded_command_variable(
    job: Job, index: int, word: str, is_sound: SoundnessCheck | None
) -> Iterator[Problem]:
    found = VARIABLE_REFERENCE.search(word)
    what = found[0] if found else "~" if word.startswith("~/") else ""
    if what.endswith(":"):  # ${NAME:-DEFAULT}
        what = f"{what[:-1]}}}"
    if not what:
        return
    programs = set(_list_program_indexes(job))
    words = tuple(
        part.replace("~", "$HOME", 1) if number == index and what == "~" else _BACKTICKS.sub(r"$(\1)", part)
        for number, one in enumerate(job.command)
        for part in (number in programs and split_command_word(one)) or [one]
    )
    message = f"'{_shorten_word(word)}' stays as it is: no shell runs the command, so nothing expands {what}"
    otherwise = "Write the value itself; {ranks}, {workers} and {slots} are filled in."
    if re.search(rf"\b{BATCH_VARIABLES}", what):
        is_sound = None  # a shell would find it empty
    help = propose_sound_command_help(job, _wrap_words_in_shell(words), otherwise, is_sound)
    yield Problem(("command", index), message, help, COMMAND_VARIABLE)


def _find_unfilled_command_placeholder(index: int, word: str) -> Iterator[Problem]:
    near = next((name for name in _BRACES.findall(word) if name.lower() in _NEAR), "")
    what = TEMPLATE_EXPRESSION.search(word) or _ANGLES.search(word)
    if what is not None and what[0].strip("=<>").lower() not in _TOKENS:
        message = f"'{_shorten_word(word)}' looks like a placeholder, but nothing fills it in"
        help = "Write the value itself; only {ranks}, {workers} and {slots} are filled in."
    elif near and f"{{{{{near}" not in word:
        message = f"{{{near}}} stays as it is: only {{ranks}}, {{workers}} and {{slots}} are filled in"
        help = f"Did you mean {_NEAR[near.lower()]}?"
    else:
        return
    yield Problem(("command", index), message, help, COMMAND_PLACEHOLDER)
