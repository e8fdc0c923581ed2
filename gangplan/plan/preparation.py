"""Read what a command prepares before it starts a launcher: the variables that it exports to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from gangplan.plan.launchers import FoundLauncher, strip_prefixes
from gangplan.plan.launchers.prefixes import ASSIGNMENT_PATTERN
from gangplan.plan.launchers.shell import DECLARING, ShellWord, SimpleCommand, read_shell_commands

# Shell words that export what they name if x is among their options; export itself needs no option.
_DECLARING = frozenset({"declare", "typeset", "local"})


def list_variables_exported_to_launcher(command: Sequence[str], launch: FoundLauncher) -> tuple[str, ...]:
    """Return the variables that a command adds to its launcher's environment, in the order of the command.

    What a branch or a function before the launcher exports counts, too: Open MPI only warns about a name that is
    not set (4.1.8 and 5.0.11).
    """
    names = dict.fromkeys(name for name, _ in strip_prefixes(command).sets)
    exports_all, script = False, launch.script
    if script is not None and script.is_direct:
        settings, places = _list_settings_of_script(script.text)
        own = places.get(script.words[0].begin)
        for one in settings:
            if own is not None and _find_begin(one) >= _find_begin(own):
                break
            if not one.words:
                names.update(_list_assigned_names(one.sets) if exports_all else ())
            elif one.texts[0] == "set":
                exports_all = is_exporting_all(one.texts, exports_all)
            else:
                _record_exported_variables(one, names)
        names.update(_list_assigned_names(own.sets) if own is not None else ())
    return tuple(names | dict.fromkeys(name for name, _ in launch.peeled.sets))


def read_commands_up_to_launcher(launch: FoundLauncher) -> Iterator[SimpleCommand]:
    """Yield the commands of a launcher's script up to the one that starts it; none without a script of its own."""
    if launch.script is None or not launch.script.is_direct:
        return
    for one in read_shell_commands(launch.script.text):
        yield one
        if _is_command_of_launcher(one, launch):
            return


def read_variables_before_launcher(launch: FoundLauncher) -> tuple[dict[str, str | None], set[str]]:
    """Return the variables that a script certainly sets before its launcher, and those that it removes.

    A value is None if it is only known when the script runs. What keeps a given value (`A=${A:-1}`) sets nothing.
    """
    given: dict[str, str | None] = {}
    removed: set[str] = set()
    script = launch.script
    if script is None or not script.is_direct:
        return (dict(script.sets) if script is not None else {}), removed
    settings, places = _list_settings_of_script(script.text)
    own = places.get(script.words[0].begin)
    if own is None:
        return dict(script.sets), removed
    before = (one for one in settings if _find_begin(one) < _find_begin(own))
    for one in (*before, own):
        if one.block != own.block[: len(one.block)]:
            continue
        for name in list_removed_variables(one):
            given.pop(name, None)
            removed.add(name)
        words: Sequence[ShellWord] = one.sets if not one.words or one is own else ()
        if one.texts[:1] and one.texts[0] in DECLARING:
            words = one.words[1:]
        for word in words:
            assigned = ASSIGNMENT_PATTERN.fullmatch(word.text)
            if assigned is not None and assigned[1] not in word.names:
                is_known = not word.is_open and word.items is None and word.text[len(assigned[1])] == "="
                given[assigned[1]] = assigned[2] if is_known else None
                removed.discard(assigned[1])
    return given, removed


@lru_cache(maxsize=4)  # asked for each launcher of a script
def _list_settings_of_script(text: str) -> tuple[tuple[SimpleCommand, ...], dict[int, SimpleCommand]]:
    """Return the commands of a script that set, export or remove variables, and all by the place of their first word."""
    found = read_shell_commands(text)
    changing = {*DECLARING, "set", "unset"}
    settings = tuple(one for one in found if not one.words or one.texts[0] in changing)
    return settings, {one.words[0].begin: one for one in found if one.words}


def _find_begin(command: SimpleCommand) -> int:
    return (*command.sets, *command.words)[0].begin


def list_removed_variables(command: SimpleCommand) -> tuple[str, ...]:
    """Return the variables that a command of a script takes from what runs later."""
    options = {text for text in command.texts[1:] if text[:1] in ("-", "+")}
    takes = command.texts[:1] == ("unset",) and "-f" not in options
    takes = takes or (command.texts[:1] == ("export",) and "-n" in options)
    return tuple(text for text in command.texts[1:] if text not in options) if takes else ()


def _is_command_of_launcher(one: SimpleCommand, launch: FoundLauncher) -> bool:
    """Return whether a command of a script starts a launcher, whose words may be those of a variable."""
    words = launch.script.words if launch.script is not None else ()
    return bool(one.words and words) and one.words[0].begin == words[0].begin


def _list_assigned_names(words: Iterable[ShellWord]) -> dict[str, None]:
    """Return the variables that words such as NAME=value or NAME are about."""
    found = (ASSIGNMENT_PATTERN.fullmatch(form) for one in words for form in (one.text, f"{one.text}="))
    return dict.fromkeys(one[1] for one in found if one is not None)


def is_exporting_all(texts: Sequence[str], before: bool) -> bool:
    """Return whether a shell exports what is assigned after these words: `set -a` or `set -o allexport`."""
    for option, name in zip(texts[1:], (*texts[2:], ""), strict=True):
        if option == "--":
            break
        if option[:1] in ("-", "+") and ("a" in option or (option[-1] == "o" and name == "allexport")):
            before = option[0] == "-"
    return before


def _record_exported_variables(command: SimpleCommand, names: dict[str, None]) -> None:
    """Add the variables that a command exports to the names, and remove those that it takes back."""
    head, options = command.texts[0], [text for text in command.texts[1:] if text[:1] in ("-", "+")]
    if any("f" in option for option in options):
        return  # functions
    adds = head == "export" or (head in _DECLARING and any("x" in one for one in options if one[0] == "-"))
    drops = head == "unset" or (head == "export" and any("n" in option for option in options))
    drops = drops or (head in _DECLARING and any("x" in one for one in options if one[0] == "+"))
    named = _list_assigned_names(command.words[1:])
    if drops:
        for name in named:
            names.pop(name, None)
    elif adds:
        names.update(named)
