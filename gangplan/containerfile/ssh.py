"""Check how a Containerfile sets up SSH, in its commands and in the configuration files that it copies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gangplan.containerfile.facts import ContainerfileFacts, CopiedFile
from gangplan.containerfile.parse import Instruction
from gangplan.containerfile.shell import find_ordered_patterns_in_command, hide_text_read_by_instruction
from gangplan.containerfile.told import build_lint_finding, find_matching_instruction_lines
from gangplan.findings import Finding
from gangplan.rules.containerfiles import (
    CONTAINERFILE_HOST_KEYS,
    CONTAINERFILE_PASSWORD,
    CONTAINERFILE_ROOT_LOGIN,
    CONTAINERFILE_SSH_PORT,
    CONTAINERFILE_SSHD,
)

_ALLOWS = re.compile(
    r"(?i)\b(?P<option>PasswordAuthentication|PermitEmptyPasswords|KbdInteractiveAuthentication)[ =]+yes\b"
)
_ROOT_LOGIN = re.compile(r"(?i)\bPermitRootLogin[ =]+(?:yes|prohibit-password|without-password)\b")
_PORT = re.compile(r"(?i)(?<![\w.-])Port[ =]+(?P<port>\d{1,9})\b")
_SSHD = re.compile(r"\bsshd\b")
_SSHD_PORT = re.compile(r"\s-p[ =]?(?P<port>\d{1,9})\b")
_EXPOSED = re.compile(r"(?<![\d.])(?P<port>\d+)(?:/tcp)?(?![\d.])")
_STRICT_MODES = re.compile(r"(?im)^[ \t]*StrictModes[ =]+no\b")
_PAM = re.compile(r"(?i)\bUsePAM[ =]+yes\b")
_HOST_KEYS = re.compile(r"(?i)\bStrictHostKeyChecking[ =]+(?:no|off|accept-new)\b")
# sed 's/#\(.*StrictHostKeyChecking \).*/\1no/': the name is in what sed looks for, and comes back as a group.
_HOST_KEYS_NAME = re.compile(r"(?i)\bStrictHostKeyChecking\b")
_GROUP_AND_NO = re.compile(r"(?i)\\\d ?(?:no|off|accept-new)\b")


def check_ssh_in_containerfile(file: str, facts: ContainerfileFacts) -> Iterator[Finding]:
    """Check the SSH settings in copied files, at their own lines, and in instructions."""
    folder = file.rpartition("/")[0]
    accepts = False
    for copied in facts.copied:
        if copied.text is None:
            accepts = accepts or "ssh_config" in copied.source
            continue
        beside = file if not copied.source else f"{folder}/{copied.source}" if folder else copied.source
        accepts = accepts or bool(_HOST_KEYS.search(copied.text))
        yield from _check_ssh_config_copied_into_image(beside, copied)
    for whole in facts.instructions:
        one = hide_text_read_by_instruction(whole) if whole.name == "RUN" else whole
        accepts = accepts or any(True for _ in one.find(_HOST_KEYS)) or _accepts_by_sed(whole)
        if one.name == "RUN":
            yield from find_matching_instruction_lines(
                CONTAINERFILE_PASSWORD,
                file,
                one,
                _ALLOWS,
                lambda match: f"{match['option']} is switched on",
            )
            yield from find_matching_instruction_lines(
                CONTAINERFILE_ROOT_LOGIN,
                file,
                one,
                _ROOT_LOGIN,
                lambda match: f"{match[0]} is written into a configuration",
            )
            if "ssh" in whole.text:
                yield from _check_sshd_ports_in_containerfile(file, one.find(_PORT))
        if one.name in ("RUN", "CMD", "ENTRYPOINT"):
            yield from _check_sshd_ports_in_containerfile(file, _list_sshd_ports(one))
        elif one.name == "EXPOSE":
            for line, column, match in one.find(_EXPOSED):
                if match["port"] == "22":
                    yield build_lint_finding(CONTAINERFILE_SSH_PORT, file, line, column, "port 22 needs root")
    if facts.mpis and facts.has_client and not accepts:
        first = facts.mpis[0]
        message = "no StrictHostKeyChecking no: ssh asks about each worker's host key"
        yield build_lint_finding(CONTAINERFILE_HOST_KEYS, file, first.line, first.column, message)


def _accepts_by_sed(one: Instruction) -> bool:
    return any(
        True
        for piece in one.pieces
        for _ in find_ordered_patterns_in_command(piece.text, _HOST_KEYS_NAME, _GROUP_AND_NO)
    )


def _check_sshd_ports_in_containerfile(
    file: str, found: Iterable[tuple[int, int, re.Match[str]]]
) -> Iterator[Finding]:
    for line, column, match in found:
        if int(match["port"]) < 1024:
            yield build_lint_finding(
                CONTAINERFILE_SSH_PORT, file, line, column, f"port {match['port']} needs root"
            )


def _list_sshd_ports(one: Instruction) -> Iterator[tuple[int, int, re.Match[str]]]:
    for piece in one.pieces:
        for begin, match in find_ordered_patterns_in_command(piece.text, _SSHD, _SSHD_PORT):
            yield piece.line, piece.column + begin, match


def _check_ssh_config_copied_into_image(file: str, copied: CopiedFile) -> Iterator[Finding]:
    """Check the lines of a configuration file of sshd or ssh (sshd_config(5))."""
    text = copied.text or ""
    is_server = "sshd" in copied.source or "sshd" in copied.target
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.lstrip()
        column = len(line) - len(bare) + 1
        if not bare or bare.startswith("#"):
            continue
        if is_server and (match := _ALLOWS.match(bare)):
            yield build_lint_finding(
                CONTAINERFILE_PASSWORD, file, number, column, f"{match['option']} is switched on"
            )
        if is_server and (match := _ROOT_LOGIN.match(bare)):
            yield build_lint_finding(CONTAINERFILE_ROOT_LOGIN, file, number, column, match[0])
        if is_server and _PAM.match(bare):
            yield build_lint_finding(CONTAINERFILE_SSHD, file, number, column, "PAM needs root")
        if (match := _PORT.match(bare)) and int(match["port"]) < 1024:
            yield build_lint_finding(
                CONTAINERFILE_SSH_PORT, file, number, column, f"port {match['port']} needs root"
            )
    if is_server and not _STRICT_MODES.search(text):
        yield build_lint_finding(
            CONTAINERFILE_SSHD,
            file,
            1 if copied.source else copied.by.line,
            1,
            "StrictModes is not switched off, and the mounted key may be read by a group",
        )
