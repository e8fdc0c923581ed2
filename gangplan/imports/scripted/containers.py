"""Recognise programs that start another one in a container: apptainer, enroot, shifter, docker and the like.

Options are those of Apptainer 1.4, Shifter 18.03, Podman 5.4 (podman-hpc), Docker 28 and Enroot 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.plan.launchers import program_name_of
from gangplan.records import dataclass

_APPTAINER = frozenset(
    str.split(
        "-B --bind --no-mount --mount --env --env-file --pwd --cwd -H --home -o --overlay -S --scratch -W --workdir "
        "--app --network --network-args --hostname --dns --security --add-caps --drop-caps --cpus "
        "--cpu-shares --cpuset-cpus --memory --memory-swap --pids-limit --apply-cgroups --fusemount "
        "--pem-path --docker-host"
    )
)
_DOCKER = frozenset(
    str.split(
        "-v --volume --mount -e --env --env-file --name --gpus --network --net --shm-size --ulimit "
        "--device -w --workdir -u --user --runtime --ipc --uts --pid --cap-add --cap-drop --security-opt "
        "-p --publish --entrypoint -m --memory --cpus --hostname -h -l --label --userns --cgroupns "
        "--log-driver --log-opt --restart --pull --platform --tmpfs --add-host --cpuset-cpus --group-add "
        "--cidfile"
    )
)
_ENROOT = frozenset(["-m", "--mount", "-e", "--env", "-c", "--conf"])
_SHIFTER = frozenset(
    str.split("-i --image -V --volume -e --env -m --module -w --workdir --entrypoint --env-file")
)
_CHARLIE = frozenset(["-b", "--bind", "-c", "--cd", "--set-env", "--unset-env", "-m", "--mount"])
_BINDS = frozenset(["-B", "--bind", "-v", "--volume", "-V", "-m", "--mount", "-b"])
_ENVS = frozenset(["-e", "--env", "--set-env"])
_FOLDERS = frozenset(["--pwd", "--cwd", "-w", "--workdir", "-c", "--cd"])
# Of Apptainer, these make the image writable, name a folder for temporary files, and contain the container.
_NO_FOLDERS = frozenset(["-w", "-W", "--workdir", "-c"])
_LISTS = frozenset({"apptainer", "singularity"})  # whose `--env A=1,B=2` sets two variables
# By program: the verbs after its name that start something, options with a value, whether an image follows.
_PROGRAMS: dict[str, tuple[tuple[str, ...], frozenset[str], bool]] = {
    "apptainer": (("exec", "run", "shell"), _APPTAINER, True),
    "singularity": (("exec", "run", "shell"), _APPTAINER, True),
    "docker": (("run", "exec"), _DOCKER, True),
    "podman": (("run",), _DOCKER, True),
    "podman-hpc": (("run", "shared-run"), _DOCKER, True),
    "nerdctl": (("run",), _DOCKER, True),
    "enroot": (("start",), _ENROOT, True),
    "shifter": ((), _SHIFTER, False),
    "ch-run": ((), _CHARLIE, True),
}


@dataclass(frozen=True, slots=True)
class ContainerStart:
    """The start of a container.

    It has the indices of its words, its image, folders, variables and working folder, and where the program
    begins; `is_entrypoint` is set if the image's own program runs, and `files` are those of variables.
    """

    begin: int
    end: int
    image: str
    mounts: tuple[str, ...]
    env: tuple[str, ...]
    workdir: str
    is_entrypoint: bool
    files: tuple[str, ...] = ()


def find_container_start_in_script(texts: Sequence[str], at: int) -> ContainerStart | None:
    """Return the container that starts at an index; None if something else starts there."""
    begin = at
    if at < len(texts) and program_name_of(texts[at]) == "sudo":
        at += 1
    found = _PROGRAMS.get(program_name_of(texts[at])) if at < len(texts) else None
    if found is None:
        return None
    verbs, takes, has_image = found
    index = at + 1
    verb = ""
    if verbs:
        while index < len(texts) and texts[index].startswith("-"):
            index += 1
        if index >= len(texts) or texts[index] not in verbs:
            return None
        verb = texts[index]
        index += 1
    mounts, env, files, workdir, image = list[str](), list[str](), list[str](), "", ""
    while index < len(texts) and texts[index].startswith("-") and texts[index] != "--":
        name, equals, value = texts[index].partition("=")
        index += 1
        if not equals and name in takes and index < len(texts):
            value, index = texts[index], index + 1
        is_apptainer = program_name_of(texts[at]) in _LISTS
        if name in _BINDS:
            mounts.append(value)
        elif name in _ENVS and not (is_apptainer and name == "-e"):  # its -e is --cleanenv
            env += re.split(r",(?=\w+=)", value) if is_apptainer else [value]
        elif name in _FOLDERS and not (is_apptainer and name in _NO_FOLDERS):
            workdir = value
        elif name == "--env-file":
            files.append(value)
        elif name in ("-i", "--image"):
            image = value
    if index < len(texts) and texts[index] == "--":
        index += 1
    if has_image and index < len(texts):
        image, index = texts[index], index + 1
        if index < len(texts) and texts[index] == "--":
            index += 1
    runs_own = verb in ("run", "shell") and "docker" not in texts[at] and "podman" not in texts[at]
    return ContainerStart(
        begin,
        index,
        image,
        tuple(mounts),
        tuple(env),
        workdir,
        runs_own or index >= len(texts),
        tuple(files),
    )


def convert_image_uri_to_reference(image: str) -> str:
    """Return an image reference as a registry names it; empty for a file.

    It may be written as `docker://USER@nvcr.io#nvidia/pytorch:24.01` for enroot, or with `docker://` for
    apptainer.
    """
    text = image
    for scheme in ("docker://", "dockerd://", "podman://", "docker:", "oras://", "library://", "registry:"):
        text = text.removeprefix(scheme)
    is_file = text.endswith((".sif", ".sqsh", ".simg", ".img", ".squashfs", ".SIF")) or text.startswith(
        ("/", ".", "~", "$")
    )
    if is_file or not text or any(mark in text for mark in " ;|&<>()'\"") or image.startswith("library://"):
        return ""
    host, hash_, rest = text.partition("#")
    if hash_:
        return f"{host.rpartition('@')[2]}/{rest}"
    return "" if "$" in text else text
