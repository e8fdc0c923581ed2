"""What the variables of a script hold where a command runs, as far as its text tells.

A shell splits the value of `$OPTIONS` at blanks, and gives each word of an array to `"${OPTIONS[@]}"` (POSIX.1-2024,
2.6.5; bash 5.2). Launch scripts keep the options of their launcher so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gangplan.plan.launchers.shell import DECLARING, ShellWord, SimpleCommand
from gangplan.records import dataclass

_ASSIGNED = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_SPLIT = re.compile(r"\$(?:(\w+)|\{(\w+)\})")  # without quotes
_ITEMS = re.compile(r'(")?\$\{(\w+)\[(?:@|(?(1)@|\*))\]\}(?(1)")')
# A variable that may be several words, by the form in which it is written.
UNQUOTED_VARIABLE = re.compile(rf'{_SPLIT.pattern}|"?\$\{{(\w+)\[[@*]\]\}}"?')
_ARGUMENTS = frozenset({'"$@"', "$@", '"${@}"', "${@}", "$*"})
_NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)")
# Parts of a value that only a shell can work out: commands, and what changes a variable's value.
_WORKED_OUT = re.compile(r"`|\$\(|\$\{(?!\w+\})")
_KEYED = re.compile(r"\[[^]]*\]=")
# A larger value is not read: `A="$A $A"` doubles it, so a short script could make any length.
_LONGEST, _MOST_WORDS = 16_384, 2_000


@dataclass(frozen=True, slots=True)
class _Value:
    """The value that a command in `block` assigned: the words of an array, or a text; neither if it is unknown."""

    block: tuple[int, ...]
    text: str | None = None
    names: tuple[str, ...] = ()
    items: tuple[ShellWord, ...] | None = None


class ScriptValues:
    """The values of a script's variables; `given` are those that the script starts with, `arguments` its words."""

    def __init__(
        self, given: Mapping[str, str] | None = None, arguments: Sequence[str] | None = None
    ) -> None:
        self.given = given or {}
        self._values = {name: _build_value((), value) for name, value in self.given.items()}
        if arguments is not None:
            self._values["@"] = _Value((), items=tuple(ShellWord(one, 0, 0) for one in arguments))

    def record(self, command: SimpleCommand, script: str) -> None:
        """Record what a command assigns to variables of the script itself."""
        words: Sequence[ShellWord] = command.sets if not command.words else ()
        if command.texts[:1] and command.texts[0] in DECLARING:
            words = command.words[1:]
        elif command.texts[:1] and command.texts[0] in ("read", "unset", "mapfile", "readarray"):
            for word in command.words[1:]:
                self._values[word.text] = _Value(command.block)
        for word in words:
            if found := _ASSIGNED.fullmatch(word.text):
                value = self._read_value(word, found[3], command.block, script)
                if found[2]:
                    value = self._append(self._find(found[1], command.block), value)
                self._values[found[1]] = value

    def expand(self, command: SimpleCommand, script: str) -> SimpleCommand:
        """Return a command in which several words, none, or options take the place of variables with such
        values."""
        words: list[ShellWord] = []
        for word in command.words:
            parts = self._list_parts(word, command.block, script)
            words += [word] if len(words) > _MOST_WORDS else parts
        return command if words == [*command.words] else replace(command, words=tuple(words))

    def fill(self, word: ShellWord, block: tuple[int, ...]) -> str:
        """Return the text of a word in quotes, with the known values of its variables."""
        if not word.is_open:
            return word.text
        text = word.text
        for name in dict.fromkeys(word.names):
            value = self._find(name, block)
            known = value.text if value.items is None else " ".join(one.text for one in value.items)
            if known is not None and len(known) * word.names.count(name) + len(text) <= _LONGEST:
                text = re.sub(rf"\$(?:{name}\b|\{{{name}(?:\[[@*]\])?\}})", lambda _: known, text)  # noqa: B023
        return text

    def _read_value(self, word: ShellWord, text: str, block: tuple[int, ...], script: str) -> _Value:
        if word.items is not None:
            items = tuple(part for one in word.items for part in self._list_parts(one, block, script))
            is_plain = not any(_KEYED.match(one.text) for one in items)
            return _Value(block, items=items if is_plain and len(items) <= _MOST_WORDS else None)
        if not word.is_open:
            return _build_value(block, text)
        filled = self.fill(replace(word, text=text), block)
        return _Value(block) if _WORKED_OUT.search(filled) else _build_value(block, filled, word.names)

    def _append(self, old: _Value, new: _Value) -> _Value:
        if old.items is not None and new.items is not None:
            items = old.items + new.items
            return _Value(new.block, items=items if len(items) <= _MOST_WORDS else None)
        if old.text is not None and new.text is not None:
            return _build_value(new.block, old.text + new.text, (*old.names, *new.names))
        return _Value(new.block)

    def _find(self, name: str, block: tuple[int, ...]) -> _Value:
        """Return the last value, which is unknown if it is not sure that its command ran."""
        value = self._values.get(name)
        if value is None or value.block != block[: len(value.block)]:
            return _Value(block)
        return value

    def _list_parts(self, word: ShellWord, block: tuple[int, ...], script: str) -> Iterator[ShellWord]:
        raw = script[word.begin : word.end]
        if not word.is_open or word.is_part:
            yield word
        elif raw in _ARGUMENTS:
            parts = self._find("@", block).items
            yield from (word,) if parts is None else _place_parts(parts, word)
        elif found := _ITEMS.fullmatch(raw):
            value = self._find(found[2], block)
            parts = value.items
            if parts is None and value.text is not None and not found[1]:
                parts = tuple(_split_text(value))
            yield from (word,) if parts is None else _place_parts(parts, word)
        elif found := _SPLIT.fullmatch(raw):
            value = self._find(found[1] or found[2], block)
            parts = value.items[:1] if value.items is not None else None
            if value.text is not None:
                parts = tuple(_split_text(value))
            is_plain = parts is not None and len(parts) == 1 and not parts[0].text.startswith("-")
            yield from (word,) if parts is None or is_plain else _place_parts(parts, word)
        else:
            yield word


def _build_value(block: tuple[int, ...], text: str, names: Sequence[str] = ()) -> _Value:
    return _Value(block, text, tuple(dict.fromkeys(names))) if len(text) <= _LONGEST else _Value(block)


def _split_text(value: _Value) -> Iterator[ShellWord]:
    for text in (value.text or "").split():
        names = tuple(name for name in _NAMES.findall(text) if name in value.names)
        yield ShellWord(text, 0, 0, names, bool(names))


def _place_parts(parts: Sequence[ShellWord], word: ShellWord) -> Iterator[ShellWord]:
    for part in parts:
        yield replace(part, begin=word.begin, end=word.end, is_part=True)
