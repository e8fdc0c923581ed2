"""Check a Containerfile for images that train with MPI on Kubernetes (docs/containerfiles.md)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from gangplan.containerfile.facts import ContainerfileFacts, read_containerfile_facts
from gangplan.containerfile.fips import check_fips_base_of_containerfile
from gangplan.containerfile.parse import ContainerfileError, Instruction
from gangplan.containerfile.requirements import check_copied_pip_requirements_files
from gangplan.containerfile.secrets import check_keys_in_containerfile, check_secrets_in_containerfile
from gangplan.containerfile.shell import find_ordered_patterns_in_command
from gangplan.containerfile.ssh import check_ssh_in_containerfile
from gangplan.containerfile.told import (
    build_instruction_finding,
    build_lint_finding,
    find_matching_instruction_lines,
)
from gangplan.containerfile.users import find_root_names, is_root_user
from gangplan.findings import Finding
from gangplan.rules.containerfiles import (
    CONTAINERFILE_BASE_OPEN,
    CONTAINERFILE_MPI_TWICE,
    CONTAINERFILE_MPI_VERSION,
    CONTAINERFILE_NO_MPI,
    CONTAINERFILE_NO_SSH,
    CONTAINERFILE_PASSWORD,
    CONTAINERFILE_PRIVILEGE,
    CONTAINERFILE_ROOT,
    CONTAINERFILE_RUN_AS_ROOT,
    CONTAINERFILE_SHELL_FORM,
    CONTAINERFILE_UID,
    CONTAINERFILE_UNCHECKED,
    CONTAINERFILE_UNREADABLE,
    CONTAINERFILE_WRITABLE,
)
from gangplan.rules.model import Rule
from gangplan.spec.catalog import Image

_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
_PASSWORD = re.compile(r"\bchpasswd\b|\bpasswd\s+(?!-[dl]\b|--delete|--lock)(?:-\S+\s+){0,9}\w+")
_ADDER = re.compile(r"\b(?:useradd|usermod)\b")
_ADDED_PASSWORD = re.compile(r"\s(?:-p|--password)[= ]")
_AS_ROOT = re.compile(r"OMPI_ALLOW_RUN_AS_ROOT\w*|--allow-run-as-root")
_PRIVILEGE = re.compile(
    r"(?<![\w/.-])sudo(?![\w.-])|\bsetcap\b|\bchmod\s+(?:-R\s+)?(?:[2467]\d{3}|\w*\+s)\b|NOPASSWD"
)
# Images of operating systems, of Python and of CUDA, which contain no MPI.
_BARE = re.compile(
    r"(?:^|/)(?:debian|ubuntu|fedora|centos|rockylinux|almalinux|alpine|python|cuda|ubi[0-9]*(?:-minimal|-init)?"
    r"|ubi[0-9]+/(?:ubi|ubi-minimal|python-[0-9]+)|amazonlinux|photon|leap)(?::[\w.-]+)?$"
)
_MENTIONED = re.compile(
    r"(?i)open-?mpi|\bompi|mpich|\bimpi|oneapi|mvapich|mpirun|mpiexec|hpcx|\bspack\b|\bmamba\b"
)
_WRITABLE = re.compile(r"\bchmod\s+(?:-\w+\s+){0,9}(?:0?777|[ao]*[ao]\+\w*w\w*)\b")
_DOWNLOAD = re.compile(r"\b(?:curl|wget)\b")
_PIPE = re.compile(r"\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b")
_RUN_DOWNLOAD = re.compile(r"\b(?:ba)?sh\s+(?:-c\s+)?[\"']?(?:\$|<)\((?:curl|wget)\b")


def lint_containerfile(
    file: str, text: str, read: Callable[[str], str | None], image: Image | None, name: str
) -> Iterator[Finding]:
    """Check a Containerfile; `image` is its entry in the catalog, called `name`, if it has one."""
    try:
        facts = read_containerfile_facts(text, read)
    except ContainerfileError as error:
        yield build_lint_finding(CONTAINERFILE_UNREADABLE, file, error.line, 1, error.message)
        return
    for check in (
        _check_user_instruction,
        _check_digests_in_from_instructions,
        check_secrets_in_containerfile,
        check_keys_in_containerfile,
        _check_commands_of_instructions,
        _check_entrypoint_instruction_form,
    ):
        yield from check(file, facts)
    yield from check_ssh_in_containerfile(file, facts)
    yield from check_copied_pip_requirements_files(file, facts, read)
    yield from check_fips_base_of_containerfile(file, facts, image, name)
    yield from _check_mpi_installed_by_containerfile(file, facts, image, name)


def _check_user_instruction(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    if facts.user_by is not None:
        if is_root_user(facts.user, find_root_names(facts.instructions)):
            yield build_instruction_finding(CONTAINERFILE_ROOT, file, facts.user_by, "the image ends as root")
    elif not facts.is_base_given:
        begin = next(one for one in reversed(facts.everything) if one.name == "FROM")
        yield build_instruction_finding(
            CONTAINERFILE_ROOT,
            file,
            begin,
            f"no USER: the image runs as the user of {facts.base}, mostly root",
        )


def _check_digests_in_from_instructions(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    named = set()
    for stage in facts.stages:
        base = stage.base
        if base != "scratch" and "$" not in base and base.lower() not in named and not _DIGEST.search(base):
            yield build_instruction_finding(
                CONTAINERFILE_BASE_OPEN, file, stage.begin, f"{base} has no digest"
            )
        named.add(stage.name.lower())


def _check_commands_of_instructions(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    for one in facts.instructions:
        if one.name in ("RUN", "ENV", "ENTRYPOINT", "CMD"):
            yield from find_matching_instruction_lines(
                CONTAINERFILE_RUN_AS_ROOT, file, one, _AS_ROOT, lambda match: f"{match[0]} is set"
            )
        words = one.text.split()
        is_checked = any(word.startswith("--checksum=") for word in words)
        if (
            one.name == "ADD"
            and not is_checked
            and any(word.startswith(("http://", "https://")) for word in words)
        ):
            yield build_instruction_finding(
                CONTAINERFILE_UNCHECKED,
                file,
                one,
                "ADD takes a file of the internet without --checksum",
            )
        if one.name != "RUN":
            continue
        places = _list_places_in_instruction(one, _PASSWORD, "&|;", _ADDER, _ADDED_PASSWORD)
        yield from _report_instruction_lines(CONTAINERFILE_PASSWORD, file, places, "a user gets a password")
        yield from find_matching_instruction_lines(
            CONTAINERFILE_PRIVILEGE,
            file,
            one,
            _PRIVILEGE,
            lambda match: f"{match[0].strip()}: the rights are of no use in a pod",
        )
        yield from find_matching_instruction_lines(
            CONTAINERFILE_WRITABLE,
            file,
            one,
            _WRITABLE,
            lambda match: f"{match[0]}: everybody may write there",
        )
        places = _list_places_in_instruction(one, _RUN_DOWNLOAD, "&;", _DOWNLOAD, _PIPE)
        says = "a script of the internet is run as it comes"
        yield from _report_instruction_lines(CONTAINERFILE_UNCHECKED, file, places, says)


def _list_places_in_instruction(
    one: Instruction, pattern: re.Pattern[str], ends: str, *ordered: re.Pattern[str]
) -> Iterator[tuple[int, int]]:
    """Yield where a pattern matches, and where others do in their order before one of the `ends`."""
    for piece in one.pieces:
        for match in pattern.finditer(piece.text):
            yield piece.line, piece.column + match.start()
        for begin, _ in find_ordered_patterns_in_command(piece.text, *ordered, ends=ends):
            yield piece.line, piece.column + begin


def _report_instruction_lines(
    rule: Rule, file: str, places: Iterable[tuple[int, int]], message: str
) -> Iterator[Finding]:
    """Yield a finding for the first place on each line."""
    for line, column in {line: (line, column) for line, column in sorted(places, reverse=True)}.values():
        yield build_lint_finding(rule, file, line, column, message)


def _check_entrypoint_instruction_form(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    """Check that the last ENTRYPOINT and CMD, which take effect, are not in the shell form."""
    for name in ("ENTRYPOINT", "CMD"):
        found = [one for one in facts.instructions if one.name == name]
        if found and found[-1].text and not found[-1].text.startswith("["):
            yield build_instruction_finding(
                CONTAINERFILE_SHELL_FORM, file, found[-1], f"{name} is in the shell form"
            )


def _check_mpi_installed_by_containerfile(
    file: str, facts: ContainerfileFacts, image: Image | None, name: str
) -> Iterator[Finding]:
    families = {one.family: one for one in facts.mpis}
    if len(families) > 1:
        second = list(families.values())[1]
        message = f"{' and '.join(sorted(families))} are both installed"
        yield build_lint_finding(CONTAINERFILE_MPI_TWICE, file, second.line, second.column, message)
    if facts.mpis:
        first = facts.mpis[0]
        missing = [
            word for word, there in (("server", facts.has_server), ("client", facts.has_client)) if not there
        ]
        if missing and not facts.is_base_given:
            message = f"the SSH {' and the SSH '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
            yield build_lint_finding(CONTAINERFILE_NO_SSH, file, first.line, first.column, message)
    if image is None:
        return
    for uid in facts.uids[-1:]:
        if uid != image.user.uid:
            one, line, column = _find_run_instruction_with_uid(facts)
            message = f"the user has the number {uid}, and {name} of the catalog says {image.user.uid}"
            yield (
                build_lint_finding(CONTAINERFILE_UID, file, line, column, message)
                if one
                else build_lint_finding(CONTAINERFILE_UID, file, 1, 1, message)
            )
    stated = image.mpi
    if stated is None or len(families) > 1:
        return
    if not facts.mpis and _has_bare_base(facts) and not _may_containerfile_install_unknown_mpi(facts):
        begin = next(one for one in reversed(facts.everything) if one.name == "FROM")
        what = f"{stated.implementation} {stated.version}"
        message = f"nothing installs an MPI in {facts.base}, and {name} of the catalog says {what}"
        yield build_instruction_finding(CONTAINERFILE_NO_MPI, file, begin, message)
    for mpi in facts.mpis:
        line_of = ".".join(str(stated.version).split(".")[:2])
        if mpi.family != stated.implementation or (
            mpi.version and not f"{mpi.version}.".startswith(f"{line_of}.")
        ):
            here = f"{mpi.family} {mpi.version}".strip()
            message = f"{here} is installed, and {name} of the catalog says {stated.implementation} {stated.version}"
            yield build_lint_finding(CONTAINERFILE_MPI_VERSION, file, mpi.line, mpi.column, message)
            return


def _has_bare_base(facts: ContainerfileFacts) -> bool:
    """Return whether the base is known to have no MPI: an operating system, Python or CUDA alone."""
    repository = facts.base.partition("@")[0]
    return _BARE.search(repository) is not None and not facts.is_base_given


def _may_containerfile_install_unknown_mpi(facts: ContainerfileFacts) -> bool:
    """Return whether a command or copy may install an MPI in a way that gangplan does not know."""
    return any(
        _MENTIONED.search(one.text) or "--from=" in one.text
        for one in facts.instructions
        if one.name in ("RUN", "COPY", "ADD")
    )


def _find_run_instruction_with_uid(facts: ContainerfileFacts) -> tuple[Instruction | None, int, int]:
    pattern = re.compile(r"(?:--uid|-u)[= ]\d+")
    for one in reversed(facts.instructions):
        if one.name == "RUN":
            for line, column, _ in one.find(pattern):
                return one, line, column
    return None, 1, 1
