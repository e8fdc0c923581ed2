"""Reads RE2 patterns as Go 1.24 does (`regexp/syntax`).

Syntax that RE2 lacks (look-around, back references) is refused in Go's words; syntax that Python reads
differently (`$`, `\\d`, `\\b`, `{,2}`, flags in the middle) is written out.
"""

from __future__ import annotations

from dataclasses import replace

from gangplan.re2.classes import (
    PERL_CLASSES,
    POSIX_CLASSES,
    ClassItem,
    format_re2_character_class,
    is_unicode_category,
    is_unicode_script,
    list_category_ranges,
)
from gangplan.re2.escapes import ALPHANUMERIC, build_pattern_error, read_re2_escape, read_re2_repeat_counts
from gangplan.re2.groups import GroupFlags, OpenGroup
from gangplan.re2.tree import Anchor, Letter, PatternNode, Repeat

# Go's limits on the count of a repetition, nested ones multiplied, and on nesting.
_MOST = 1000


def parse_re2_pattern(pattern: str) -> tuple[PatternNode, str]:
    """Parse a pattern to a tree and the Unicode script it uses, or "".

    Raises `PatternError` where Go does.
    """
    reader = _Reader(pattern)
    return reader.read(), reader.script


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.script = ""
        self.flags = GroupFlags()
        self.groups = [OpenGroup(self.flags)]

    def read(self) -> PatternNode:
        last_repeat = -1
        while self.at < len(self.pattern):
            start = self.at
            repeated = self._one(last_repeat)
            last_repeat = start if repeated else -1
        if len(self.groups) > 1:
            raise build_pattern_error("missing closing )", self.pattern)
        return self.groups[0].node()

    # Elements

    def _one(self, last_repeat: int) -> bool:
        """Read one element and return whether it was a repetition."""
        letter = self.pattern[self.at]
        if letter in "*+?":
            low, high = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[letter]
            return self._repeat(low, high, self.at + 1, last_repeat)
        if letter == "{":
            return self._braces(last_repeat)
        if letter == "(":
            self._open()
        elif letter == ")":
            self._close()
        elif letter == "|":
            self.groups[-1].alternatives.append([])
            self.at += 1
        elif letter in "^$.":
            self._add(self._anchor(letter))
            self.at += 1
        elif letter == "[":
            self._class()
        elif letter == "\\":
            self._escape()
        else:
            self._literal(letter)
            self.at += 1
        return False

    def _anchor(self, letter: str) -> PatternNode:
        if letter == ".":
            return Letter(r"[\x00-\U0010ffff]" if self.flags.dot_all else r"[^\n]")
        if letter == "^":
            return Anchor("(?m:^)" if self.flags.multi_line else r"\A")
        return Anchor("(?m:$)" if self.flags.multi_line else r"\Z")

    def _add(self, node: PatternNode, load: int = 1) -> None:
        self.groups[-1].items.append((node, load))

    def _literal(self, letter: str) -> None:
        text = letter if letter in ALPHANUMERIC or ord(letter) >= 0x80 else f"\\x{ord(letter):02x}"
        self._add(Letter(f"(?i:{text})" if self.flags.fold and letter.lower() != letter.upper() else text))

    # Groups

    def _open(self) -> None:
        if self.pattern.startswith("(?", self.at):
            self._perl_group()
            return
        self._push(self.at + 1)

    def _push(self, at: int) -> None:
        if len(self.groups) > _MOST:
            raise build_pattern_error("expression nests too deeply", self.pattern)
        self.groups.append(OpenGroup(self.flags))
        self.at = at

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise build_pattern_error("unexpected )", self.pattern)
        group = self.groups.pop()
        self.flags = group.flags
        self._add(group.node(), group.load())
        self.at += 1

    def _perl_group(self) -> None:
        rest = self.pattern[self.at :]
        for opening in ("(?P<", "(?<"):
            if rest.startswith(opening) and len(rest) > len(opening):
                end = rest.find(">")
                if end < 0:
                    raise build_pattern_error("invalid named capture", rest)
                name = rest[len(opening) : end]
                if not name or not set(name) <= ALPHANUMERIC | {"_"}:
                    raise build_pattern_error("invalid named capture", rest[: end + 1])
                self._push(self.at + end + 1)
                return
        self._set_flags(rest)

    def _set_flags(self, rest: str) -> None:
        """Read flags such as `(?i)` and `(?i-s:`."""
        names = {"i": "fold", "m": "multi_line", "s": "dot_all", "U": "lazy"}
        flags, value, seen = self.flags, True, False
        for size, letter in enumerate(rest[2:], start=3):
            if letter in names:
                flags = replace(flags, **{names[letter]: value})
                seen = True
            elif letter == "-" and value:
                value, seen = False, False
            elif letter in ":)" and (value or seen):
                if letter == ":":
                    self._push(self.at + size)
                else:
                    self.at += size
                self.flags = flags
                return
            else:
                raise build_pattern_error("invalid or unsupported Perl syntax", rest[:size])
        raise build_pattern_error("invalid or unsupported Perl syntax", rest)

    # Repetitions

    def _braces(self, last_repeat: int) -> bool:
        found = read_re2_repeat_counts(self.pattern, self.at)
        if found is None:
            self._literal("{")
            self.at += 1
            return False
        low, high, end = found
        if low < 0 or low > _MOST or high > _MOST or 0 <= high < low:
            raise build_pattern_error("invalid repeat count", self.pattern[self.at : end])
        return self._repeat(low, high, end, last_repeat)

    def _repeat(self, low: int, high: int, end: int, last_repeat: int) -> bool:
        is_counted = self.pattern[self.at] == "{"
        lazy = self.flags.lazy
        if self.pattern[end : end + 1] == "?":
            end, lazy = end + 1, not lazy
        if last_repeat >= 0:
            raise build_pattern_error("invalid nested repetition operator", self.pattern[last_repeat:end])
        if not self.groups[-1].items:
            raise build_pattern_error("missing argument to repetition operator", self.pattern[self.at : end])
        node, load = self.groups[-1].items.pop()
        if is_counted:
            load = 1 if not high else load * max(high if high > 0 else low, 1)
            if max(low, high) >= 2 and load > _MOST:
                raise build_pattern_error("invalid repeat count", self.pattern[self.at : end])
        self._add(Repeat(node, low, high, lazy), load)
        self.at = end
        return True

    # Escapes and classes

    def _escape(self) -> None:
        letter = self.pattern[self.at + 1 : self.at + 2]
        simple = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:(?!\b))"}
        if letter in simple and letter:
            self._add(Anchor(simple[letter]))
            self.at += 2
        elif letter == "C":
            raise build_pattern_error("invalid escape sequence", r"\C")
        elif letter == "Q":
            literal, _, _ = self.pattern[self.at + 2 :].partition("\\E")
            for each in literal:
                self._literal(each)
            self.at = min(self.at + 2 + len(literal) + 2, len(self.pattern))
        else:
            item = self._class_escape()
            if item is not None:
                self._add(self._folded(format_re2_character_class([item])))
            else:
                self._literal(self._escaped_letter())

    def _folded(self, text: str) -> PatternNode:
        return Letter(f"(?i:{text})" if self.flags.fold else text)

    def _class_escape(self) -> ClassItem | None:
        """Read a class such as `\\d` or `\\pL`; return None for anything else."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if not letter or letter not in "dDsSwWpP" or self.pattern[self.at] != "\\":
            return None
        if letter in "pP":
            return self._unicode_class()
        self.at += 2
        return PERL_CLASSES[letter.lower()], letter.isupper()

    def _unicode_class(self) -> ClassItem:
        rest = self.pattern[self.at :]
        size = min(3, len(rest))
        name = rest[2:3]
        if name == "{":
            size = rest.find("}") + 1
            if not size:
                raise build_pattern_error("invalid character class range", rest)
            name = rest[3 : size - 1]
        bare = name.removeprefix("^")
        if not is_unicode_category(bare) and not is_unicode_script(bare):
            raise build_pattern_error("invalid character class range", rest[:size])
        self.at += size
        if is_unicode_script(bare):
            self.script = bare
            return [], False
        return list(list_category_ranges(bare)), (rest[1] == "P") != (bare != name)

    def _class(self) -> None:
        whole = self.pattern[self.at :]
        self.at += 1
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        items: list[ClassItem] = []
        first = True
        while first or not self.pattern.startswith("]", self.at):
            first = False
            items.append(self._class_item(whole))
        self.at += 1
        self._add(self._folded(format_re2_character_class(items, negated)))

    def _class_item(self, whole: str) -> ClassItem:
        rest = self.pattern[self.at :]
        if rest.startswith("[:") and ":]" in rest[2:]:
            return self._named_class(rest[: rest.index(":]", 2) + 2])
        if rest.startswith("\\"):
            item = self._class_escape()
            if item is not None:
                return item
        start = self.at
        low = self._class_letter(whole)
        if not self.pattern.startswith("-", self.at) or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return [(low, low)], False
        self.at += 1
        high = self._class_letter(whole)
        if high < low:
            raise build_pattern_error("invalid character class range", self.pattern[start : self.at])
        return [(low, high)], False

    def _named_class(self, written_name: str) -> ClassItem:
        name = written_name[2:-2]
        bare = name.removeprefix("^")
        if bare not in POSIX_CLASSES:
            raise build_pattern_error("invalid character class range", written_name)
        self.at += len(written_name)
        return POSIX_CLASSES[bare], bare != name

    def _class_letter(self, whole: str) -> int:
        if self.at >= len(self.pattern):
            raise build_pattern_error("missing closing ]", whole)
        if self.pattern[self.at] == "\\":
            return ord(self._escaped_letter())
        self.at += 1
        return ord(self.pattern[self.at - 1])

    def _escaped_letter(self) -> str:
        start = self.at
        letter, self.at = read_re2_escape(self.pattern, start)
        return letter
