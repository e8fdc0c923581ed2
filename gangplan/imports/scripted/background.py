"""Keep what a script starts in the background: `./monitor &`, then a launch, then `wait`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gangplan.imports.scripted.items import ScriptItem, ScriptRefusal

_ACTING = ("launch", "program", "keep")


def mark_background(items: Sequence[ScriptItem], is_grouped: bool = False) -> None:
    """Mark what the script does not wait for: the first launch of a group, or the last command of a list."""
    found = [
        number
        for number, item in enumerate(items)
        if item.kind == "launch" or (item.kind in _ACTING and not is_grouped)
    ]
    if found:
        number = found[0] if is_grouped else found[-1]
        items[number].is_background = True
        items[number].reach = len(items) - number if is_grouped else 1


def refuse_launches_at_once(items: Sequence[ScriptItem], launches: Sequence[int]) -> list[ScriptRefusal]:
    """Return the refusal of the second of two launches that run at the same time, if there are any."""
    message = "several steps run at the same time, each on a part of the nodes"
    help = "Import each as a job of its own."
    for number in (one for one in launches if items[one].is_background):
        reach = [one for one in _find_company(items, number) if one in launches]
        if reach:
            return [ScriptRefusal(items[reach[0]].begin, message, help)]
        inside = items[number : number + items[number].reach]
        is_part = bool(items[number].shells) or sum(item.kind in _ACTING for item in inside) > 1
        if is_part and _find_company(items, number):
            message = "a group of commands with a launch runs at the same time as others"
            help = "Write the launch without the group."
            return [ScriptRefusal(items[number].begin, message, help)]
    return []


def find_background_lines(
    items: Sequence[ScriptItem], launches: Collection[int], written: dict[int, str], text: str
) -> set[int]:
    """Return the lines of the run's script that it does not wait for, and add each `wait` behind them.

    A launch without company until then is waited for at once. `kill` goes with what it ends.
    """
    found = {
        number
        for number in written
        if items[number].is_background and (number not in launches or _find_company(items, number))
    }
    first = min({*found, *(one for one in written if items[one].has_background)}, default=len(items))
    for number, item in enumerate(items):
        if number > first and _waits(item):
            written[number] = text[item.begin : item.end]
        if number < first and number in written and _names_command(item, "kill") and not item.joined:
            del written[number]
    return found


def _find_company(items: Sequence[ScriptItem], number: int) -> list[int]:
    """Return the numbers of the items that run before the script waits for one in the background."""
    found = []
    for other in range(number + items[number].reach, len(items)):
        if _waits(items[other]):
            break
        if items[other].kind in _ACTING and not _names_command(items[other], "kill"):
            found.append(other)
    return found


def _waits(item: ScriptItem) -> bool:
    return (
        item.kind == "drop" and not item.is_skipped and any(part.texts[:1] == ["wait"] for part in item.parts)
    )


def _names_command(item: ScriptItem, name: str) -> bool:
    return bool(item.parts) and item.parts[0].texts[:1] == [name]
