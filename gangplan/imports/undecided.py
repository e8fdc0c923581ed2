"""Find what is still open about the command of a source: with an open command, a run is not yet the same."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.imports.draft import SpecDraft

_Place = tuple[str, FieldPath]  # a file, and a path of its account


def explain_open_command(draft: SpecDraft) -> str:
    """Return the first question about the command of the ranks, or what the account asks there; else empty."""
    places, is_script = set(_list_places_of_commands(draft)), _is_script(draft)
    for question in draft.questions:
        if _is_inside(places, (question.node.account.file, question.node.path)):
            return question.message
    lines = {entry.where.line for entry in draft.work.entries() if (entry.where.file, entry.path) in places}
    for entry in draft.work.entries():
        is_there = is_script and entry.where.line in lines  # such as an option of the launcher
        if entry.state == "asked" and (is_there or _is_inside(places, (entry.where.file, entry.path))):
            return f"{entry.name}: {entry.why}"
    return ""


def _is_script(draft: SpecDraft) -> bool:
    return not isinstance(draft.work.account.root().value, dict)


def _list_places_of_commands(draft: SpecDraft) -> Iterator[_Place]:
    """Yield commands and arguments of the pods that become those of the run; a container without one.

    Of a script, all parts that become the command are meant.
    """
    for role in draft.work.roles:
        main = role.pod.main.node
        named = [node for node in (main["command"], main["args"]) if node]
        for node in named or [main]:
            if node.path and any(node.account.below(node.path)):
                yield node.account.file, node.path
    if _is_script(draft):
        for entry in draft.work.entries():
            if entry.state == "mapped" and entry.to == "command":
                yield entry.where.file, entry.path


def _is_inside(places: set[_Place], place: _Place) -> bool:
    """Return whether a place is one of others, or below a field of them.

    Fields below a container, such as its image, are none of its command.
    """
    file, path = place
    if place in places:
        return True
    return any((file, path[:length]) in places and path[length:] for length in range(1, len(path)))
