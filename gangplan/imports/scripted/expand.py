"""Expand the words of a shell as far as they are known before the script runs, as bash 5.2 does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from gangplan.imports.scripted.arithmetic import evaluate_shell_arithmetic
from gangplan.imports.scripted.idioms import ALL_HOSTS, FIRST_HOST
from gangplan.imports.scripted.pieces import (
    ExpandedWord,
    PartialText,
    ShellValue,
    WordPiece,
    apply_shell_expansion,
    build_text_of_submission_folder,
)
from gangplan.plan.launchers.shell import ShellReader, UnreadableError
from gangplan.records import dataclass

_MOST_PIECES, _DEEPEST = 200_000, 40

_ARGUMENTS = ("$@", "${@}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]|[@*#?$!-]")
_OPERATION = re.compile(
    r"(?P<length>#?)(?P<name>[A-Za-z_]\w*|[0-9]+|[@*#])(?P<index>\[[^]]*\])?(?P<how>:?[-=+?]|%%?|##?|//?|:|\^\^?|,,?)?(?P<rest>.*)",
    re.DOTALL,
)
# Braces of bash that make several words of one, as far as no other expansion is in them.
_BRACES = re.compile(r"\{(?:[^\s{}'\"$`\\]*,[^\s{}'\"$`\\]*|[\w-]+\.\.[\w-]+(?:\.\.[\w-]+)?)\}")
_FILES = re.compile(r"[\w./*?=,:@%+-]*[*?][\w./*?=,:@%+-]*")  # a pattern of files in a variable
_MOST_TEXT = 100_000
_PLAIN = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")


@dataclass(slots=True)
class ScriptScope:
    """The variables of a script as far as it has been read.

    `values` were set by it, or are known before it runs; a name that is absent comes from outside. `output`
    returns what a command in `$(...)` prints, None if unknown; `exported` are names that programs see;
    `present` are names that surely have a value when the script runs, although it is not known before;
    `set_inside` are names that only subshells set; `given` are values of a user, which take the place of what
    only running the script would tell.
    """

    values: dict[str, ShellValue] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    output: Callable[[str], ShellValue] = lambda command: None
    used: set[str] = field(default_factory=set)
    present: set[str] = field(default_factory=set)
    set_inside: set[str] = field(default_factory=set)
    length: int = 0
    exports_all: bool = False  # set -a
    integers: set[str] = field(default_factory=set)  # declare -i
    given: Mapping[str, str] = field(default_factory=dict)

    def set_open_values(self, names: Iterable[str]) -> None:
        """Set variables whose values only running the script would tell to what the user gives, if anything."""
        self.values |= {name: self.given.get(name) for name in names}

    def fields(self, raw: str) -> list[ExpandedWord]:
        """Return the words to which a word of the script expands.

        Raises UnreadableError for one that never ends.
        """
        return list(_Word(self, raw).fields())

    def text(self, raw: str) -> str | None:
        """Return the value of an assignment; None if only a shell can determine it."""
        pieces = [piece for one in _Word(self, raw, splits=False).fields() for piece in one.pieces]
        if any(piece.is_open for piece in pieces):
            return None
        return "".join(piece.text for piece in pieces)

    def value(self, raw: str) -> str | PartialText:
        """Return the value of an assignment, as far as it is known."""
        pieces = [piece for one in _Word(self, raw, splits=False).fields() for piece in one.pieces]
        if any(piece.is_open for piece in pieces):
            return PartialText(tuple(pieces))
        return "".join(piece.text for piece in pieces)

    def is_empty(self, raw: str) -> bool | None:
        """Return whether a word expands to nothing; None if only a shell can determine it."""
        value = self.value(raw)
        if isinstance(value, str):
            return value == ""
        names = [_PLAIN.fullmatch(piece.text) for piece in value.pieces if piece.is_open]
        is_filled = any(piece.text for piece in value.pieces if not piece.is_open) or any(
            name is not None and self.is_present(name[1]) for name in names
        )
        return False if is_filled else None

    def is_present(self, name: str) -> bool:
        """Return whether a variable surely has a value that is not known before the script runs."""
        return name in self.present and name in self.values and self.values[name] is None

    def can_be_given(self, name: str) -> bool:
        """Return whether nothing before the run tells the value of a variable, and no scheduler sets it."""
        return name not in self.present and not isinstance(self.values.get(name), str | tuple)

    def calculate(self, text: str) -> int | None:
        """Return the value of an arithmetic expression with `$NAME` in it; None if it is not known."""
        filled = self.text(f'"{text}"') if "$" in text else text
        return self.number(filled) if filled is not None else None

    def number(self, text: str) -> int | None:
        """Return the value of an arithmetic expression; None if it is not known or not an integer."""
        return evaluate_shell_arithmetic(
            text, {name: one for name, one in self.values.items() if isinstance(one, str)}
        )


class _Word:
    def __init__(self, scope: ScriptScope, raw: str, splits: bool = True) -> None:
        self.scope, self.raw, self.splits = scope, raw, splits
        self.done: list[ExpandedWord] = []
        self.pieces: list[WordPiece] = []
        self.has_field = False
        self.depth = 0

    def fields(self) -> Iterator[ExpandedWord]:
        self._read(self.raw, False)
        self._end()
        return iter(self.done)

    def _add(self, text: str, is_open: bool = False, is_quoted: bool = False) -> None:
        self.scope.length += len(text)
        if self.scope.length > 50 * _MOST_TEXT or len(self.pieces) > _MOST_PIECES:
            raise UnreadableError("a variable that grows without end, which")
        if text or is_quoted:
            self.pieces.append(WordPiece(text, is_open, is_quoted))
            self.has_field = True

    def _end(self) -> None:
        if self.has_field:
            self.done.append(ExpandedWord(tuple(self.pieces)))
        self.pieces, self.has_field = [], False

    def _read(self, text: str, is_quoted: bool, is_inside: bool = False) -> None:
        """Read a stretch; `is_inside` is set within an expansion, where blanks end words."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnreadableError("an expansion in an expansion in another, which")
        at = 0
        while at < len(text):
            mark = text[at]
            if mark == "\\":
                at = self._escaped(text, at, is_quoted)
            elif mark == "'" and not is_quoted:
                end = text.find("'", at + 1)
                end = len(text) if end < 0 else end
                self._add(text[at + 1 : end], is_quoted=True)
                at = end + 1
            elif mark == '"' and not is_quoted:
                end = _find_closing_shell_quote(text, at + 1)
                if text[at + 1 : end] in _ARGUMENTS and self.scope.values.get("@") == "":
                    at = end + 1  # no arguments make no word, rather than an empty one
                    continue
                self._add("", is_quoted=True)
                self._read(text[at + 1 : end], True)
                at = end + 1
            elif mark in "$`":
                at = self._dollar(text, at, is_quoted)
            elif is_inside and not is_quoted and self.splits and mark.isspace():
                self._end()
                at += 1
            else:
                end = at + 1
                is_pattern = not is_quoted and (mark in "*?[" or (mark == "~" and at == 0)) and self.splits
                if mark == "{" and not is_quoted and self.splits and (found := _BRACES.match(text, at)):
                    is_pattern, end = True, found.end()
                self._add(text[at:end], is_open=is_pattern, is_quoted=is_quoted)
                at = end
        self.depth -= 1

    def _escaped(self, text: str, at: int, is_quoted: bool) -> int:
        following = text[at + 1 : at + 2]
        if following != "\n":
            keeps = is_quoted and following not in ('"', "\\", "$", "`")
            self._add(f"\\{following}" if keeps else following, is_quoted=True)
        return at + 2

    def _dollar(self, text: str, at: int, is_quoted: bool) -> int:
        reader = ShellReader(text)
        if text[at] == "`":
            end = text.find("`", at + 1)
            end = len(text) if end < 0 else end
            self._printed(text[at : end + 1], text[at + 1 : end], is_quoted)
            return end + 1
        if text.startswith("$((", at) and (end := reader.balanced(at + 2, "(", ")")) and text[end - 2] == ")":
            number = self.scope.number(self._inner(text[at + 3 : end - 2]))
            self._known(str(number) if number is not None else None, text[at:end], is_quoted)
            return end
        if text.startswith("$(", at):
            end = reader.balanced(at + 2, "(", ")")
            self._printed(text[at:end], text[at + 2 : end - 1], is_quoted)
            return end
        if text.startswith("${", at):
            end = reader.balanced(at + 2, "{", "}")
            self._operation(text[at:end], text[at + 2 : end - 1], is_quoted)
            return end
        if text.startswith("$'", at) and not is_quoted:
            end = text.find("'", at + 2)
            end = len(text) if end < 0 else end
            self._add(text[at + 2 : end].replace("\\n", "\n").replace("\\t", "\t"), is_quoted=True)
            return end + 1
        found = _NAME.match(text, at + 1)
        if found is None:
            self._add("$", is_quoted=is_quoted)
            return at + 1
        self._variable(found[0], text[at : found.end()], is_quoted)
        return found.end()

    def _inner(self, text: str) -> str:
        """Fill in `$NAME` and `${NAME}` in an arithmetic expression."""
        return self.scope.text(f'"{text}"') or text if "$" in text else text

    def _printed(self, raw: str, command: str, is_quoted: bool) -> None:
        self._known(self.scope.output(command), raw, is_quoted)

    def _variable(self, name: str, raw: str, is_quoted: bool) -> None:
        self.scope.used.add(name)
        self._named(name, raw, is_quoted)

    def _named(self, name: str, raw: str, is_quoted: bool) -> None:
        """Add the value of a variable, or all arguments."""
        value = self._value(name)
        if name not in ("@", "*") or not isinstance(value, tuple):
            self._known(value, raw, is_quoted)
        elif not self.splits or (is_quoted and name == "*"):
            is_usual = name == "@" or "IFS" not in self.scope.values
            self._known(" ".join(one.text for one in value) if is_usual else None, raw, is_quoted)
        else:
            self._all(value, raw, is_quoted)

    def _known(self, value: ShellValue, raw: str, is_quoted: bool) -> None:
        """Add a value in place of the expansion, split into words as a shell does."""
        if isinstance(value, tuple):
            value = PartialText(value[0].pieces) if value else ""
        if isinstance(value, PartialText):
            for piece in value.pieces:
                if piece.is_open:
                    self._add(piece.text, True, is_quoted or piece.is_quoted)
                elif is_quoted or not self.splits:
                    self._add(piece.text, is_quoted=True)
                else:
                    self._split(piece.text)
        elif value is None:
            self._add(raw, is_open=True, is_quoted=is_quoted)
        elif is_quoted or not self.splits:
            self._add(value, is_quoted=True)
        else:
            self._split(value)

    def _split(self, value: str) -> None:
        words = value.split()
        if value[:1].isspace():
            self._end()
        for number, word in enumerate(words):
            if number:
                self._end()
            self._add(word, is_open=_FILES.fullmatch(word) is not None)
        if words and value[-1:].isspace():
            self._end()

    def _operation(self, raw: str, inner: str, is_quoted: bool) -> None:
        found = _OPERATION.fullmatch(inner)
        if found is None:
            self._add(raw, is_open=True, is_quoted=is_quoted)
            return
        name, index, how = found["name"], found["index"] or "", found["how"] or ""
        if not how.endswith("="):
            self.scope.used.add(name)
        value = self._value(name)
        if name in ("@", "*"):
            self._arguments(found, raw, is_quoted)
            return
        if index in ("[@]", "[*]") and not found["length"] and not how:
            self._all(value, raw, is_quoted)
            return
        value = self._entry(value, index)
        if found["length"]:
            whole = self.scope.values.get(name)
            is_all = index in ("[@]", "[*]") and isinstance(whole, tuple)
            hosts = self.scope.values.get("SLURM_NNODES") if is_all and _is_host_list(whole) else None
            count = (
                hosts
                if isinstance(hosts, str)
                else len(whole)
                if is_all and isinstance(whole, tuple)
                else len(value)
                if isinstance(value, str)
                else None
            )
            self._known(str(count) if count is not None else None, raw, is_quoted)
        elif how.endswith(("-", "=")):
            is_there = self._is_set(name) and (value != "" or ":" not in how)
            if is_there:
                shown = f"${{{name}}}" if self.scope.is_present(name) else raw
                self._known(value, shown, is_quoted)
            else:
                self._read(found["rest"], is_quoted, is_inside=True)
                if how.endswith("="):
                    self.scope.values[name] = self.scope.value(found["rest"])
        elif how.endswith("+"):
            if self._is_set(name) and value is None and not self.scope.is_present(name):
                self._add(raw, is_open=True, is_quoted=is_quoted)
            elif self._is_set(name) and (value != "" or ":" not in how):
                self._read(found["rest"], is_quoted, is_inside=True)
        else:
            self._known(self._changed(value, how, found["rest"]), raw, is_quoted)

    def _value(self, name: str) -> ShellValue:
        """Return the value of a variable; that of an argument behind those that the script sets is empty."""
        is_behind = name.isdigit() and "9" in self.scope.values and not self._is_set(name)
        return (
            "" if is_behind and isinstance(self.scope.values.get("#"), str) else self.scope.values.get(name)
        )

    def _is_set(self, name: str) -> bool:
        """Return whether a variable is set, if only to nothing; arguments behind the last are not."""
        count = self.scope.values.get("#")
        is_behind = name.isdigit() and isinstance(count, str) and int(name) > int(count)
        return name in self.scope.values and not is_behind

    def _arguments(self, found: re.Match[str], raw: str, is_quoted: bool) -> None:
        """Add all arguments, their number, or a part of them."""
        value, how, rest = self.scope.values.get(found["name"]), found["how"] or "", found["rest"]
        words = () if value == "" else value
        if found["length"] and isinstance(words, tuple):
            self._known(str(len(words)), raw, is_quoted)
        elif not how and not rest:
            self._named(found["name"], raw, is_quoted)
        elif how == ":" and isinstance(words, tuple) and self.splits and rest.isdigit() and int(rest):
            if part := words[int(rest) - 1 :]:
                self._all(part, raw, is_quoted)
        else:
            self._add(raw, is_open=True, is_quoted=is_quoted)

    def _all(self, value: ShellValue, raw: str, is_quoted: bool) -> None:
        if not isinstance(value, tuple):
            self._known(value, raw, is_quoted)
            return
        for number, one in enumerate(value):
            if number:
                self._end()
            self._known(PartialText(one.pieces), raw, is_quoted)

    def _entry(self, value: ShellValue, index: str) -> str | PartialText | None:
        if not isinstance(value, tuple):
            return value if not index or index in ("[0]", "[@]", "[*]") else None
        number = self.scope.number(self._inner(index[1:-1])) if index else 0
        if number is None or not 0 <= number < len(value):
            return None
        entry = value[number]
        if entry.text == ALL_HOSTS and number == 0:
            return FIRST_HOST
        return PartialText(entry.pieces) if entry.is_open else entry.text

    def _changed(self, value: str | PartialText | None, how: str, rest: str) -> str | PartialText | None:
        if how in ("", ":?", "?"):
            return value
        pattern = self.scope.text(rest)
        if not isinstance(value, str) or pattern is None:
            return None
        if value == "." and how[:1] in "#%" and rest in ("*/", "/*"):
            return build_text_of_submission_folder(f"${{PWD{how}{rest}}}")
        if how in ("^^", ",,"):
            return value.upper() if how == "^^" else value.lower()
        return apply_shell_expansion(value, how, pattern)


def _is_host_list(value: ShellValue) -> bool:
    return isinstance(value, tuple) and [one.text for one in value] == [ALL_HOSTS]


def _find_closing_shell_quote(text: str, at: int) -> int:
    """Return the place of the quote that ends a double-quoted text."""
    reader = ShellReader(text)
    while at < len(text):
        mark = text[at]
        if mark == '"':
            return at
        if mark == "\\":
            at += 1
        elif text.startswith(("$(", "${"), at):
            closing = ")" if text[at + 1] == "(" else "}"
            at = reader.balanced(at + 2, text[at + 1], closing) - 1
        at += 1
    return at
