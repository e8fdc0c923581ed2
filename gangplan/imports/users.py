"""Take away what starts a command as another user: a run has one user from its beginning, and may not change it."""

from __future__ import annotations

from collections.abc import Sequence

# Options with a value of each program (su and runuser of util-linux 2.38; sudo(8), doas(1)).
_VALUES = {
    "su": "-c --command -g --group -G --supp-group -s --shell -w --whitelist-environment",
    "runuser": "-c --command -u --user -g --group -G --supp-group -s --shell -w --whitelist-environment",
    "sudo": "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -T -r -t",
    "doas": "-u -C",
    "gosu": "",
    "su-exec": "",
}
_LOGIN = frozenset({"-", "-l", "--login", "-i"})
_COMMAND, _USER, _FOLDER = ("-c", "--command"), ("-u", "--user"), ("-D", "--chdir")
# Programs whose first plain word is a user.
_NAMED = frozenset({"su", "runuser", "gosu", "su-exec"})


def drop_user_change(words: Sequence[str]) -> tuple[tuple[str, ...], str, bool]:
    """Return a command without a leading change of user, what was dropped, and whether it was a login.

    A login starts in the user's home, with the user's settings. What is dropped is empty for other commands, and
    for a form without a command.
    """
    program = words[0].rpartition("/")[2] if words else ""
    if program not in _VALUES:
        return tuple(words), "", False
    valued = _VALUES[program].split()
    text, is_login, has_user, at = None, False, program not in _NAMED, 1
    stays: tuple[str, ...] = ()
    while at < len(words):
        word = words[at]
        name, equals, value = word.partition("=")
        if word == "--":
            at += 1
            break
        if not word.startswith("-") and has_user:
            break
        if word in _LOGIN:
            is_login = True
        elif name in _COMMAND and name in valued:
            text = value if equals else "".join(words[at + 1 : at + 2])
        elif name in _FOLDER and name in valued:
            stays = ("-C", value if equals else "".join(words[at + 1 : at + 2]))
        elif name in _USER or not word.startswith("-"):
            has_user = True
        at += 1 + (name in valued and not equals)
    rest = tuple(words[at:])
    if text is not None:
        rest = ("bash", "-c", text, *(("bash", *rest) if rest else ()))
    if not rest or rest[0].startswith("-"):
        return tuple(words), "", False
    if stays or "=" in rest[0]:  # sudo -D FOLDER NAME=VALUE program
        rest = ("env", *stays, *rest)
    return rest, " ".join(words[: at if text is None else 1]), is_login
