"""Say which users of a Containerfile are root: uid 0 has many names and many spellings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gangplan.containerfile.parse import Instruction
from gangplan.containerfile.shell import list_commands_of_instruction

_ADDERS = frozenset(("useradd", "adduser", "usermod"))
# Options of useradd and usermod (shadow 4.17) that have a value.
_VALUED = re.compile(r"-[A-Za-z]*[bcdefgGkKlpsRP]|--(?!uid)[a-z-]+")
# Long options without a value, of shadow's and Debian's programs.
_SWITCHES = frozenset(
    (
        *(
            "--create-home",
            "--no-create-home",
            "--no-log-init",
            "--no-user-group",
            "--non-unique",
            "--system",
        ),
        *(
            "--user-group",
            "--disabled-password",
            "--disabled-login",
            "--append",
            "--lock",
            "--unlock",
            "--move-home",
        ),
        *("--quiet", "--debug", "--allow-bad-names", "--force-badname", "--allow-all-names", "--group"),
    )
)
_UID = re.compile(r"(?:-[A-Za-z]*u|--uid)=?(?P<uid>.*)")
# runc reads the number with Go's strconv.Atoi, which takes signs and leading zeros.
_ZERO = re.compile(r"[+-]?0+")
_NAME = re.compile(r"[A-Za-z_][\w.-]*\$?")
_ENTRY = re.compile(r"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]*):[^:\s]*:0+:\d")


def is_root_user(user: str, names: frozenset[str]) -> bool:
    """Return whether USER names root: by name, by number, by an own name with uid 0, or by a group alone."""
    name = user.strip("\"'").partition(":")[0]
    return name == "root" or name in names or bool(_ZERO.fullmatch(name)) or user.startswith(":")


def find_root_names(instructions: Sequence[Instruction]) -> frozenset[str]:
    """Return the names that commands give to uid 0."""
    return frozenset(
        name
        for one in instructions
        if one.name == "RUN"
        for name in _list_root_users_made_by_instruction(one)
    )


def _list_root_users_made_by_instruction(one: Instruction) -> Iterator[str]:
    for _, program, words in list_commands_of_instruction(one):
        if program in _ADDERS:
            yield from _list_useradd_names_with_uid_zero(words)
    if "/etc/passwd" in one.text:
        yield from (match["name"] for *_, match in one.find(_ENTRY))


def _list_useradd_names_with_uid_zero(words: Sequence[str]) -> Iterator[str]:
    """Yield the names among the words of useradd if they give uid 0."""
    names: list[str] = []
    is_zero, option = False, ""
    for word in words:
        if option:
            is_zero = is_zero or (option == "uid" and _ZERO.fullmatch(word) is not None)
            option = ""
        elif found := _UID.fullmatch(word):
            is_zero = is_zero or _ZERO.fullmatch(found["uid"]) is not None
            option = "" if found["uid"] else "uid"
        elif word.startswith("-"):
            option = "other" if _VALUED.fullmatch(word) and word not in _SWITCHES else ""
        elif _NAME.fullmatch(word):
            names.append(word)
    if is_zero:
        yield from names
