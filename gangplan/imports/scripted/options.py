"""Options of the shell that decide how a script goes on: `set -e`, `set -o pipefail`, `shopt -s nullglob`.

Read from the manual of bash 5.2 ("The Set Builtin", "The Shopt Builtin"); `sh` and `ksh` have the same letters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.items import ScriptItem

_REASON = "it is about the shell of the batch script"
# Options that change what a script does; others trace it or are for people at a terminal.
_LETTERS = frozenset("aefu")
_NAMES = frozenset({"allexport", "errexit", "noglob", "nounset", "pipefail"})
_PATTERNS = frozenset(
    str.split("dotglob extglob failglob globstar inherit_errexit lastpipe nocaseglob nocasematch nullglob")
)
_SHELL = re.compile(
    r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?(?:ba|da|k|z)?sh((?:[ \t]+\S+)+)[ \t]*$", re.MULTILINE
)
_GLOBS = re.compile(r"[*?\[]")


def _list_set_options(texts: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the letters and names that `set` is given, and whether each is set."""
    found = []
    words = list(texts[1:])
    while words and words[0][:1] in ("-", "+") and words[0] not in ("-", "--"):
        word = words.pop(0)
        for letter in word[1:]:
            name = words.pop(0) if letter == "o" and words else letter
            found.append((name, word[0] == "-"))
    return found


def is_shell_option_command(texts: Sequence[str]) -> bool:
    """Return whether a command sets an option that changes what the commands behind it do."""
    if texts[:1] == ["shopt"]:
        return not _PATTERNS.isdisjoint(texts[2:]) or bool(_NAMES.intersection(texts[2:]))
    return texts[:1] == ["set"] and any(name in _LETTERS | _NAMES for name, _ in _list_set_options(texts))


def set_shell_options(texts: Sequence[str], scope: ScriptScope) -> None:
    """Record whether assignments behind `set -a` are exported."""
    for name, is_set in _list_set_options(texts) if texts[:1] == ["set"] else ():
        if name in ("a", "allexport"):
            scope.exports_all = is_set


def find_options_of_first_line(text: str) -> ScriptItem | None:
    """Return the options that the first line of a script gives its shell, as `set` gives them."""
    line = text.partition("\n")[0]
    found = _SHELL.match(line)
    if found is None:
        return None
    options = [
        f"-o {name}" if len(name) > 1 else f"-{name}"
        for name, is_set in _list_set_options(["set", *found[1].split()])
        if is_set and name in _LETTERS | _NAMES
    ]
    if not options:
        return None
    return ScriptItem("option", 0, len(line), [], _REASON, text=f"set {' '.join(options)}")


def is_shell_option_needed(lines: Collection[str]) -> bool:
    """Return whether options change what a script of these lines does.

    The status of its only line is that of the script, whatever its options; patterns in it may mean others.
    """
    return len(lines) > 1 or any("\n" in line or _GLOBS.search(line) for line in lines)
