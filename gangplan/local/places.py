"""Map the paths of a container to this machine: mounts, the program, the files of the launch."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from gangplan.errors import UserError
from gangplan.generators.scripts import SCRIPTS_FOLDER, hash_launch_scripts
from gangplan.model.job import Job, Mount
from gangplan.plan.launchers import (
    SHELL_NAMES,
    UnreadableError,
    find_launcher_at,
    find_script_index,
    is_python,
    program_name_of,
    strip_prefixes,
)
from gangplan.plan.launchers.shell import read_shell_commands
from gangplan.plan.names import HOSTFILE_PATH
from gangplan.records import dataclass

# The home folder of the user in this project's images, which contains the code (images/README.md).
MPI_USER_HOME = "/home/mpiuser"
# File names of programs.
_PROGRAM = re.compile(r"\.(?:py|sh|pl|jl|R)$")
# Builtins of shells that start the program after them, or read its file.
_STARTERS = frozenset({"exec", "command", ".", "source"})
_END = r"(?![A-Za-z0-9_.-])"


@dataclass(frozen=True, slots=True)
class LocalPlaces:
    """Paths of the container, each with its place here, and the folder that the program starts in."""

    moved: Mapping[str, str]
    folder: Path
    notes: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Replace paths of the container by those here, in a command word, script or value."""
        return _build_local_path_replacer(self.moved)(text)


def _build_local_path_replacer(moved: Mapping[str, str]) -> Callable[[str], str]:
    longest = sorted(moved, key=lambda path: -len(path))
    # A path of the launch is a prefix of file names; any other path must match as a whole.
    parts = [re.escape(path) + ("" if path.endswith("/gangplan") else _END) for path in longest]
    pattern = re.compile(rf"(?<![A-Za-z0-9_./-])(?:{'|'.join(parts)})")
    return lambda text: pattern.sub(lambda found: moved[found.group()], text)


def parse_local_folder_flags(given: Sequence[str], flag: str) -> dict[str, Path]:
    """Parse the `NAME=FOLDER` values of a repeated flag. Raises UserError for a path that does not exist."""
    found = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals or not name or not folder:
            raise UserError(f"{flag} {one} is not NAME=PATH", f"Write {flag} {name or 'NAME'}=./path.")
        path = Path(folder).expanduser().resolve()
        if not path.exists():
            raise UserError(f"{flag} {one}: there is no {folder}", "Make it, or name one that is there.")
        found[name] = path
    return found


def map_mounts_to_local_folders(
    job: Job, root: Path, given: Mapping[str, Path]
) -> tuple[dict[str, str], list[str]]:
    """Return the place of each mount, which is the one given or an empty folder, and notes about them.

    Raises UserError for a mount of a secret that was not given, and for a name that is not a mount.
    """
    names = {mount.name: mount for mount in job.mounts}
    for name in given:
        if name not in names and name not in {mount.path for mount in job.mounts}:
            known = ", ".join(sorted(names)) or "none"
            raise UserError(f"the job mounts no '{name}'", f"It mounts: {known}.")
    moved, notes = {}, []
    for mount in job.mounts:
        real = given.get(mount.name) or given.get(mount.path)
        if real is None and mount.secret:
            help = f"Put what it needs into files, and add --mount {mount.name}=./folder."
            raise UserError(f"the job reads secret '{mount.name}' at {mount.path}, which is not here", help)
        if real is None and mount.file:
            moved[mount.path] = str(_write_local_config_map_file(job, mount, root))
            continue
        if real is None:
            place = root / "mounts" / mount.volume
            place.mkdir(parents=True, exist_ok=True)
            notes.append(f"{mount.path} ({mount.name}) is an empty folder")
            real = place
        moved[mount.path] = str(real)
    return moved, notes


def _write_local_config_map_file(job: Job, mount: Mount, root: Path) -> Path:
    """Write a file that comes with the spec, as the run's ConfigMap contains it; return its place."""
    place = root / "mounts" / mount.volume / (mount.key or "files")
    place.parent.mkdir(parents=True, exist_ok=True)
    for one in job.files:
        if mount.key in ("", one.key):
            target = place if mount.key else place / one.key
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(one.data)
    return place


def create_local_launch_paths(root: Path) -> dict[str, str]:
    """Return the places here of the launch's files, which are private to each container."""
    for folder in ("etc", "tmp", "shm"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    return {
        HOSTFILE_PATH: str(root / "etc/hostfile"),
        "/tmp/gangplan": str(root / "tmp/gangplan"),
        "/dev/shm/gangplan": str(root / "shm/gangplan"),
        SCRIPTS_FOLDER: str(root / "launch"),
    }


def write_local_launch_scripts(places: LocalPlaces, scripts: Mapping[str, str]) -> LocalPlaces:
    """Write the launch scripts with the paths that they need here; return the places for commands.

    A command states the digest of its scripts, so the digest of what was written takes its place.
    """
    folder = Path(places.text(SCRIPTS_FOLDER))
    folder.mkdir(parents=True)
    texts = {name: places.text(text) for name, text in scripts.items()}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return replace(places, moved={**places.moved, hash_launch_scripts(scripts): hash_launch_scripts(texts)})


def list_local_program_files_in_command(words: Sequence[str]) -> list[str]:
    """Return the program files that a command names: what an interpreter starts, or a program with a path.

    A shell's script (`-c`) names what its commands start, up to the first that changes the folder.
    """
    start = strip_prefixes(words).at
    at = next(
        (one for one in range(start, len(words)) if program_name_of(words[one]) in SHELL_NAMES), len(words)
    )
    script = find_script_index(words, at)
    found = []
    for index, word in enumerate(words if script < 0 else words[:at]):
        if is_python(program_name_of(word)) or program_name_of(word) in SHELL_NAMES:
            rest = [one for one in words[index + 1 : index + 3] if not one.startswith("-")]
            found += [one for one in rest[:1] if _PROGRAM.search(one)]
        elif _PROGRAM.search(word) or (word.startswith("./") and index == start):
            found.append(word)
    return list(dict.fromkeys([*found, *(_list_script_files(words[script]) if script >= 0 else ())]))


def _list_script_files(script: str) -> list[str]:
    """Return the program files that the commands of a script start; none if no shell could read it."""
    try:
        commands = read_shell_commands(script)
    except UnreadableError:
        return []
    found: list[str] = []
    for command in commands:
        words = ["" if word.is_open else word.text for word in command.words]
        if words[:1] in (["cd"], ["pushd"]):
            break
        words = words[1:] if words and words[0] in _STARTERS else words
        start = strip_prefixes(words).at
        # Of other programs, such as cp and test, the words may be files that are made or looked for here.
        starts_program = find_launcher_at(words, start, None) or (
            words[start:] and (is_python(words[start]) or program_name_of(words[start]) in SHELL_NAMES)
        )
        found += list_local_program_files_in_command(
            words[start:] if starts_program else words[start : start + 1]
        )
    return found


def find_local_program_folder(
    words: Sequence[str], workdir: str, given: Mapping[str, Path], root: Path, here: Path
) -> tuple[Path, str]:
    """Return the folder that replaces the container's working directory, and the reason.

    It is the one given with --path; otherwise the current folder, or the only one under images/, that
    contains the files that the command names. Raises UserError if the program cannot be found.
    """
    if workdir in given:
        if not given[workdir].is_dir():
            raise UserError(
                f"--path {workdir}={given[workdir]}: this is not a folder", "Name the folder of the program."
            )
        return given[workdir], "as --path says"
    files = [one for one in list_local_program_files_in_command(words) if not one.startswith("/")]
    for name in (one for one in list_local_program_files_in_command(words) if one.startswith("/")):
        inside = (path for path in given if PurePosixPath(name).is_relative_to(path))
        in_home = name.startswith(f"{workdir}/")
        if not in_home and next(inside, None) is None and not Path(name).exists():
            help = f"Say where it is: --path {PurePosixPath(name).parent}=./folder."
            raise UserError(f"{name} is in the image, not on this machine", help)
        if in_home:
            files.append(name[len(workdir) + 1 :])
    if not files:
        return here, "the current folder"
    candidates = [here, *sorted(place for place in (root / "images").glob("*/") if place.is_dir())]
    having = [folder for folder in candidates if all((folder / name).is_file() for name in files)]
    if not having:
        help = f"Say where the code is: --path {workdir}=./folder, or start in the folder that has it."
        raise UserError(f"{files[0]} is in the image, not on this machine", help)
    if having[0] != here and len(having) > 1:
        shown = ", ".join(folder.relative_to(root).as_posix() for folder in having)
        raise UserError(f"{files[0]} is in several folders: {shown}", f"Choose: --path {workdir}=./folder.")
    return having[0], f"it has {files[0]}"


def remove_marked_folder(root: Path, mark: str) -> None:
    """Remove a folder only if this program created it: `mark` is the file that it put there."""
    if (root / mark).is_file() and not root.is_symlink():
        shutil.rmtree(root, ignore_errors=True)
