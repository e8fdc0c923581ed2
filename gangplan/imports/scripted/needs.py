"""List what the command of a script needs, and no run has: variables, a meeting point, numbers, its own place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from gangplan.imports.scripted import variables
from gangplan.imports.scripted.pieces import find_variable_names, is_reading_submission_folder
from gangplan.plan.launchers.shell import UnreadableError, read_shell_commands

# Where only a number is read: arithmetic, and options of such names.
_COUNTED = re.compile(r"\$\(\(.*?\)\)|--?[\w-]*(?:seed|port)[= ]\"?\$\{?\w+", re.IGNORECASE)
# A launcher whose options for a meeting point a run does not need.
_OWN_MEETING = re.compile(r"\bdeepspeed\b.*\s--master_(?:addr|port)\b")
# What programs in here-documents ask the scheduler's environment for.
_READ = re.compile(
    r"(?:environ(?:\.get)?\s*[\[(]|getenv\s*\(|\bENV\s*[\[{])\s*[\"']?((?:SLURM|PBS|PALS)_\w+)[\"']?"
)
# Hosts that the scheduler lists: a run passes its own to the launcher.
_HOSTFILE = re.compile(r"--?(?:machine|host)file[ =]\"?\$\{?PBS_NODEFILE\}?\"?")
_OWN_PATH = re.compile(r"\$\{?(0(?![0-9])|BASH_SOURCE\b)")


def list_needs_of_command(
    text: str, texts: Sequence[str], start: str, given: Collection[str], env: set[str], script: str
) -> Iterator[tuple[str, str]]:
    """Yield what a command needs that nothing sets, each with the help.

    `text` is the command as a script, `texts` the values of its variables in addition, `given` what is set,
    `env` the variables of its container, and `script` the source.
    """
    needed = find_variable_names([_HOSTFILE.sub("", text)])
    met = find_variable_names(one for one in text.splitlines() if not _OWN_MEETING.search(one))
    if start == "mpi" and (met := met & variables.MEETING_POINT - env):
        message = f"the command needs {' and '.join(sorted(met))}, which an MPI run does not set"
        yield message, "Let the program ask MPI for its hosts, or choose an image of torch."
    if any(map(is_reading_submission_folder, texts)):
        message = "the command needs the path of the folder from which the job was submitted"
        name = next((one for one in ("PWD", *sorted(variables.HERE)) if one in script), "")
        give = f"Give it: --set {name}=FOLDER" if name else "Write it in its place"
        yield message, f"{give}; in a run it is the working folder."
    if name := _find_own_path(text):
        message = f"the command reads ${name}, the path of the batch script, which a run does not have"
        yield message, "Write the folder or the name in its place."
    for name in sorted(set(_READ.findall(text)) - env):
        message = f"a program in the script reads {name}, which a run does not set"
        yield message, f"Let it read what the run sets, or set it under env: {name}."
    for name in sorted(needed - set(given)):
        help = f"Give its value: --set {name}=VALUE; or set it under env:."
        yield f"the command needs {name}, which the script does not set", help
    found = [one[0] for piece in texts for one in _COUNTED.finditer(piece)]
    counted = {name for one in found for name in re.findall(r"[A-Z_]+", one)}
    for name in sorted(counted & variables.JOB_ID_VARIABLES & env):
        names = variables.list_names_of_source(name, script) or [name]
        message = f"the command needs {names[0]} as a number, but here it is the name of the run"
        yield message, f"Give a number: {' '.join(f'--set {one}=1' for one in names)}."


def _find_own_path(text: str) -> str:
    """Return how a script reads its own path, apart from quoted programs such as those of awk; empty if it does not."""
    try:
        commands = read_shell_commands(text)
    except UnreadableError:
        return ""
    words = [word for one in commands for word in (*one.sets, *one.words) if word.is_open]
    found = (_OWN_PATH.search(re.sub(r"'[^']*'", "", word.text)) for word in words)
    return next((one[1] for one in found if one is not None), "")
