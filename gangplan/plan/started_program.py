"""Check what a launcher of Python scripts is given to start: torchrun, deepspeed and accelerate run it with Python."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.plan.launch import LauncherCall
from gangplan.plan.launchers import SHELL_NAMES, is_python, program_name_of
from gangplan.plan.problems import WordEdit, WordProblem
from gangplan.rules.commands import COMMAND_STARTED_BY_PYTHON

# torch 2.9, distributed/run.py, config_from_args; deepspeed 0.18, launcher/launch.py; accelerate 1.11,
# utils/launch.py: each starts `python -u PROGRAM` unless this option or that of a module is given.
_OPTIONS = {"torch": "--no-python", "deepspeed": "--no_python", "accelerate": "--no_python"}
_NOT_PYTHON = (".sh", ".bash", ".out", ".exe")


def check_program_started_by_python(kept: LauncherCall) -> Iterator[WordProblem]:
    """Yield a problem of a program that Python cannot run as a script or as a module."""
    reading = kept.found.reading
    option = _OPTIONS.get(kept.found.start.launcher.kind)
    if option is None or not reading.programs or any(reading.of("no-python")):
        return
    begin, end = reading.programs[0]
    first, rest = reading.words[begin], reading.words[begin + 1 : end]
    message = f"{kept.name} runs its program with Python, and would look for a script '{first}'"
    if any(reading.of("module")):
        if first.endswith(".py"):
            name = first.removeprefix("./").removesuffix(".py").replace("/", ".")
            message = f"-m takes the name of a module, and '{first}' is a file"
            module = WordEdit(begin, begin + 1, (name,))
            yield WordProblem(COMMAND_STARTED_BY_PYTHON, begin, message, f"Write {name}.", module)
    elif is_python(first):
        options = next((index for index, word in enumerate(rest) if word not in ("-u", "-B")), len(rest))
        is_plain = rest[options : options + 1] and (
            rest[options] == "-m" or not rest[options].startswith("-")
        )
        edit = WordEdit(begin, begin + 1 + options) if is_plain else None
        hint = f"Remove {first}." if is_plain else f"Write {option} before {first}."
        yield WordProblem(COMMAND_STARTED_BY_PYTHON, begin, message, hint, edit)
    elif program_name_of(first) in SHELL_NAMES or first.endswith(_NOT_PYTHON):
        edit = WordEdit(begin, begin, (option,))
        yield WordProblem(COMMAND_STARTED_BY_PYTHON, begin, message, f"Write {option} before {first}.", edit)
