"""Keep what `&&` and `||` join: which commands of a list run, and how the run's script says so."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gangplan.imports.scripted.conditions import evaluate_shell_condition
from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.guards import is_script_guard
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand, Statement, StatementForm
from gangplan.imports.scripted.pieces import fill_script_variables
from gangplan.imports.scripted.subshells import write_subshell_ends
from gangplan.records import dataclass

PIPES, JOINS = ("|", "|&"), ("&&", "||")
# Words that open a compound command, and what the reader calls it.
_FORMS: dict[str, StatementForm] = {
    **dict.fromkeys(("for", "while", "until", "select"), "loop"),
    **dict.fromkeys(("{", "("), "group"),
    "if": "if",
    "case": "case",
}
# Commands that are dropped by themselves, but whose status decides whether what follows them runs.
_LEAVING = frozenset({"exit", "return", "break", "continue"})
_ASKING = _LEAVING | set(str.split("[ [[ test grep which type command ls cat hash jq ldd id groups read let"))


@dataclass(frozen=True, slots=True)
class ListUnit:
    """A pipeline of a list: its form (plain without a compound command), its place and the operator after it."""

    form: StatementForm
    begin: int
    end: int
    parts: list[ScriptCommand]
    operator: str


def split_shell_list(one: Statement, text: str) -> list[ListUnit]:
    """Return the pipelines that `&&` and `||` join in a statement."""
    spans = list(_find_compound_spans(one))
    found: list[ListUnit] = []
    group: list[ScriptCommand] = []
    form: StatementForm = "plain"
    begin = -1
    for number, part in enumerate(one.parts):
        inside = next((span for span in spans if span[0] <= part.begin <= span[1]), None)
        if begin < 0:
            begin = inside[0] if inside else part.begin
        form = inside[2] if inside else form
        group.append(part)
        is_last = number + 1 == len(one.parts)
        if not is_last and (part.operator in PIPES or (inside and part.begin < inside[1])):
            continue
        end = one.end if is_last else len(text[: part.end].rstrip())
        found.append(ListUnit(form, begin, end, group, part.operator))
        group, form, begin = [], "plain", -1
    return found


def _find_compound_spans(one: Statement) -> Iterator[tuple[int, int, StatementForm]]:
    """Yield where each compound command of a statement's own level begins and ends, and its form."""
    begin, form = -1, one.form
    for mark in one.marks:
        if begin < 0 and mark.text in _FORMS:
            begin, form = mark.begin, _FORMS[mark.text]
        elif begin >= 0 and mark.text in ("fi", "done", "esac", "}", ")"):
            yield begin, mark.end, form
            begin = -1


class ListStatus:
    """The status of a list as far as it is known before the script runs.

    Commands whose success only the script shows leave it open.
    """

    __slots__ = ("_status",)

    def __init__(self) -> None:
        self._status: bool | None = True

    def runs(self, was: str) -> bool | None:
        """Return whether what follows an operator runs; None if only the script decides that."""
        if was not in JOINS or self._status is None:
            return None if was in JOINS else True
        return self._status == (was == "&&")

    def add(self, was: str, held: bool | None) -> None:
        """Take in the status of a command that follows an operator."""
        runs = self.runs(was)
        if runs:
            self._status = held
        elif runs is None:
            # A command that did not run leaves the status that kept it from running.
            self._status = held if held is (was == "||") else None


def has_here_document(parts: Sequence[ScriptCommand]) -> bool:
    """Return whether lines behind a statement belong to it, so that it cannot be taken apart."""
    redirects = [entry for part in parts for entry in part.redirects]
    return any(entry.operator.lstrip("0123456789") in ("<<", "<<-") for entry in redirects)


def find_item_status(item: ScriptItem, text: str, scope: ScriptScope) -> bool | None:
    """Return whether an item surely succeeds or fails; None if its command has to stay, to show it."""
    if item.kind in ("keep", "launch", "program"):
        return None
    texts = item.parts[0].texts if item.parts else []
    if item.kind == "drop" and item.parts and item.parts[0].arithmetic:
        return evaluate_shell_condition(text[item.begin : item.end], scope)
    if item.kind != "drop" or not texts:
        return True
    if len(item.parts) > 1 and any(part.texts[:1] and part.texts[0] in _LEAVING for part in item.parts):
        return None
    negates = text.startswith("! ", item.begin)
    if texts[0] in ("[", "test") or texts[0].startswith("[[ "):
        return evaluate_shell_condition(text[item.begin : item.end], scope)
    if negates or texts[0] in _ASKING:
        return None
    return True


def add_list_conditions(
    items: Sequence[ScriptItem], written: dict[int, str], text: str, values: Mapping[str, str]
) -> None:
    """Add the commands of a list that decide whether others of it run, to what is written of it.

    What is known to succeed or fail becomes `true` or `false`, where that is needed at all.
    """
    last = max(written, default=-1)
    for first, end in _find_lists(items):
        numbers = range(first, end)
        raw = text[items[first].begin : items[end - 1].end]
        is_guard = end <= last and is_script_guard(_list_open_parts(items[first:end]), raw)
        if written.keys().isdisjoint(numbers) and not is_guard:
            continue
        is_written = False
        for number in numbers:
            item = items[number]
            if number not in written and not item.is_skipped:
                if item.kind == "drop" and item.status is None:
                    written[number] = fill_script_variables(text[item.begin : item.end], values)
                elif is_written and item.status is (item.joined == "||"):
                    written[number] = "true" if item.status else "false"
            is_written |= number in written
        if last < end:  # nothing follows: the run's state is the program's
            for number in reversed(numbers):
                if number > last and number in written and _ends(items[number], written[number]):
                    del written[number]
                elif number in written:
                    break


def _list_open_parts(items: Sequence[ScriptItem]) -> list[ScriptCommand]:
    return [part for item in items if not item.is_skipped for part in item.parts]


def _ends(item: ScriptItem, line: str) -> bool:
    return line in ("true", "false") or (item.kind == "drop" and item.parts[0].texts[:1] == ["exit"])


def _find_lists(items: Sequence[ScriptItem]) -> Iterator[tuple[int, int]]:
    """Yield where lists of several items begin and end."""
    first = 0
    for number in range(1, len(items) + 1):
        if number == len(items) or not items[number].joined:
            if number - first > 1:
                yield first, number
            first = number


def join_script_lines(
    items: Sequence[ScriptItem], written: Mapping[int, str], behind: Collection[int]
) -> str:
    """Return the script of the lines that are written, with the operators between those of one list.

    Those `behind` run in the background.
    """
    found = ""
    before = -1
    for number in sorted(written):
        item = items[number]
        is_joined = before >= 0 and all(items[one].joined for one in range(before + 1, number + 1))
        between = write_subshell_ends(items[before] if before >= 0 else None, item)
        found += (f" {item.joined} " if is_joined else between) + written[number]
        found += " &" if number in behind else ""
        before = number
    return found + write_subshell_ends(items[before], None) if found else found
