"""Read the simple commands of a shell script, each with its words and their positions.

This is a careful reader, not a shell: it knows quotes, comments, here-documents, lists, pipes, compound
commands, functions, assignments and redirections as POSIX.1-2024 (2.2 to 2.10) and bash 5.2 write them. It
does not expand words: one that a shell would expand keeps its text and is marked.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache

from gangplan.records import dataclass

# Words that open or continue a compound command; a command follows each.
_OPENERS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "coproc"})
_CLOSERS = frozenset({"fi", "done", "esac", "}"})
_OPERATORS = ("&&", "||", ";;&", ";;", ";&", "|&", "&", "|", ";", "(", ")", "\n")
_REDIRECT = re.compile(r"[0-9]*(?:<<<|<<-?|<>|>>|>\||[<>]&|&>>|&>|<|>)")
# A here-document in a substitution: whether tabs go, and its mark as it is written; `<<<` has no lines behind it.
_DOCUMENT = re.compile(r"<<(?:<|(-?)[ \t]*((?:[^\s;&|()<>'\"\\]|'[^'\n]*'|\"[^\"\n]*\"|\\.)+))")
_BACKQUOTED = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL)  # an inner one has backslashes
_SUBSTITUTION = re.compile(r"`|\$\((?!\()")
_MARKS = re.compile(r"['\"\\]")
_DEEPEST = 40
_BREAKS = frozenset(" \t\n;&|()<>")


class UnreadableError(Exception):
    """A script that no shell could read; the message names what is left open at its end, and `at` is its place."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word: its text without quotes, its begin and end in the script, and the variables in it.

    `is_open` marks a word whose value is only known when the script runs. `items` are the words of an array,
    if it assigns one. `is_part` marks a word that the value of a variable has; its place is the variable's.
    """

    text: str
    begin: int
    end: int
    names: tuple[str, ...] = ()
    is_open: bool = False
    items: tuple[ShellWord, ...] | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A simple command: its assignments, its words, and the operator after it (such as `&`).

    `block` are the branches, loops, functions, subshells and `&&` lists around it, outermost first: what an
    enclosing one does has happened when the command runs, what another one does may not have. `tested_by` is
    the keyword of the compound command that it is the condition of, such as `if`. `document` is what a
    here-document gives the last command of its line to read.
    """

    words: tuple[ShellWord, ...]
    sets: tuple[ShellWord, ...] = ()
    after: str = ""
    block: tuple[int, ...] = ()
    tested_by: str = ""
    document: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the words."""
        return tuple(word.text for word in self.words)


@dataclass(slots=True)
class _Open:
    """A command that is still being read."""

    words: list[ShellWord] = field(default_factory=list)
    sets: list[ShellWord] = field(default_factory=list)


# Builtins that assign what is in their words.
DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly"})
# What begins a block, and what ends one and begins the next.
_BLOCKS = frozenset({"if", "while", "until", "for", "case", "select", "{"})
_CONDITIONS = frozenset({"if", "while", "until"})
_BRANCHES = frozenset({"then", "elif", "else", "do", ";;", ";&", ";;&"})

_ASSIGN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^]]*\])?\+?=")


def list_substitutions(text: str) -> Iterator[str]:
    """Yield the scripts in the substitutions of a word, as `$(script)` or between backquotes, without inner ones."""
    reader, at = ShellReader(text), 0
    while found := _SUBSTITUTION.search(text, at):
        if found[0] == "`":
            inside = _BACKQUOTED.match(text, found.end())
            at = inside.end() if inside else len(text)
        else:
            at = reader.balanced(found.end(), "(", ")")
        yield text[found.end() : at - 1]


def read_shell_commands(script: str) -> list[SimpleCommand]:
    """Return the simple commands in written order, including those of functions and branches.

    Raises UnreadableError if a quote, a substitution or a here-document is left open.
    """
    return list(_read_script(script))


@lru_cache(maxsize=8)  # asked again and again about the script of a command
def _read_script(script: str) -> tuple[SimpleCommand, ...]:
    return tuple(ShellReader(script).read())


class ShellReader:
    """The reader used by `read_shell_commands`, also for callers that need more of a script than its simple commands."""

    def __init__(self, script: str) -> None:
        self.text = script
        self.at = 0
        self.documents: list[tuple[str, bool]] = []
        # What began each, its number, and if it is past its condition.
        self._blocks: list[tuple[str, int, bool]] = []
        self._list = 0  # the number of the `&&` list
        self._count = 0
        self._is_timed = False  # behind `time`, whose only option is -p

    def read(self) -> Iterator[SimpleCommand]:
        """Yield the commands one by one."""
        now, skips = _Open(), ""
        while self.at < len(self.text):
            self.blank()
            if self.at >= len(self.text):
                break
            operator = next((mark for mark in _OPERATORS if self.text.startswith(mark, self.at)), "")
            if operator and not self.text.startswith("&>", self.at):
                self.at += len(operator)
                document = self.skip_documents() if operator == "\n" else ""
                if now.words or now.sets:
                    yield self._end(now, operator, document)
                self._pass_operator(operator)
                now, skips = _Open(), ""
                continue
            if self._redirection():
                continue
            word = self.word()
            skips = self._take(word, now, skips)
        if self.documents:
            raise self.build_open_document_error(self.documents[0][0], len(self.text))
        if now.words or now.sets:
            yield self._end(now, "")
        if self._blocks:
            begun = self._blocks[-1][0]
            raise UnreadableError(f"{'an' if begun == 'if' else 'a'} {begun}", len(self.text))

    def _end(self, now: _Open, operator: str, document: str = "") -> SimpleCommand:
        """Return a command that is read; the next one belongs to its list if the operator says so."""
        block = (*(number for _, number, _ in self._blocks), *([self._list] if self._list else ()))
        begun, _, is_past = self._blocks[-1] if self._blocks else ("", 0, True)
        tested_by = "" if is_past else begun
        if operator not in ("&&", "||"):
            self._list = 0
        elif operator == "||" or not self._list:
            self._list = self._new_number()
        return SimpleCommand(tuple(now.words), tuple(now.sets), operator, block, tested_by, document)

    def _new_number(self) -> int:
        self._count += 1
        return self._count

    def _pass_operator(self, operator: str) -> None:
        if operator == "(":
            self._blocks.append((operator, self._new_number(), True))
        elif operator == ")" and self._blocks and self._blocks[-1][0] == "(":
            self._blocks.pop()
        elif operator in _BRANCHES or operator == ")":  # of a case
            self._pass_keyword(operator)

    def _pass_keyword(self, word: str) -> None:
        if word in _BLOCKS:
            self._blocks.append((word, self._new_number(), word not in _CONDITIONS))
        elif word in _CLOSERS:
            del self._blocks[-1:]
        elif self._blocks and (word in _BRANCHES or word == ")"):
            self._blocks[-1] = self._blocks[-1][0], self._new_number(), word != "elif"

    def _take(self, word: ShellWord, now: _Open, skips: str) -> str:
        """Add a word to the command; return the keyword of an unfinished header, such as `for x in a b`."""
        is_plain = self.text[word.begin : word.end] == word.text
        if skips:
            return "" if skips == "function" or (skips == "case" and word.text == "in") else skips
        if not now.words and is_plain and word.text in ("for", "case", "select", "function"):
            self._pass_keyword(word.text)
            return word.text
        if self._is_timed and not now.words and word.text == "-p":
            return ""
        self._is_timed = not now.words and is_plain and word.text == "time"
        if not now.words and is_plain and (word.text in _OPENERS or word.text in _CLOSERS):
            self._pass_keyword(word.text)
            return ""
        assigns = _ASSIGN.match(self.text, word.begin) is not None
        assigns = assigns and (not now.words or now.words[0].text in DECLARING)
        if assigns and word.text.endswith("=") and self.text.startswith("(", self.at):
            word = self._array(word)
        (now.sets if assigns and not now.words else now.words).append(word)
        return ""

    def _array(self, word: ShellWord) -> ShellWord:
        """Return the word of an array's assignment with the words in its parentheses."""
        begin, self.at = self.at + 1, self.balanced(self.at + 1, "(", ")")
        inner, items = ShellReader(self.text[: self.at - 1]), list[ShellWord]()
        inner.at = begin
        while inner.at < len(inner.text):
            inner.blank()
            if inner.text.startswith("\n", inner.at):
                inner.at += 1
            elif inner.at < len(inner.text):
                items.append(inner.word())
        return dataclasses.replace(word, items=tuple(items))

    def blank(self) -> None:
        """Skip blanks, continued lines and comments."""
        while self.at < len(self.text):
            if self.text[self.at] in " \t\r":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _redirection(self) -> bool:
        found = _REDIRECT.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        if self.text.startswith("(", self.at):  # <(command): a file name
            self.at = self.balanced(self.at + 1, "(", ")")
            return True
        self.blank()
        target = self.target() if self.at < len(self.text) and self.text[self.at] != "\n" else None
        if found[0].lstrip("0123456789") in ("<<", "<<-") and target is not None:
            self.documents.append((target.text, found[0].endswith("-")))
        return True

    def skip_documents(self) -> str:
        """Skip the here-documents that began on the line before; return the last one."""
        begin, document = self.at, ""
        for mark, strips in self.documents:
            first = self.at
            while True:
                last = self.at
                if last >= len(self.text):
                    raise self.build_open_document_error(mark, begin)
                end = self.text.find("\n", last)
                line = self.text[last : end if end >= 0 else len(self.text)]
                self.at = end + 1 if end >= 0 else len(self.text)
                if (line.lstrip("\t") if strips else line) == mark:
                    break
            document = self.text[first:last]
        self.documents.clear()
        return document

    def build_open_document_error(self, mark: str, end: int) -> UnreadableError:
        """Return the error of a here-document that began on the line before a place, and does not end."""
        return UnreadableError(f"the here-document up to {mark}", max(0, self.text.rfind("<<", 0, end)))

    def word(self) -> ShellWord:
        """Read the word at the current position."""
        begin, parts, names, is_open = self.at, [], list[str](), False
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS:
            mark = self.text[self.at]
            if mark == "\\":
                parts.append(
                    "" if self.text.startswith("\\\n", self.at) else self.text[self.at + 1 : self.at + 2]
                )
                self.at += 2
            elif mark == "'":
                parts.append(self._until("'", self.at + 1))
            elif mark == '"':
                self.at += 1
                is_open |= self._double(parts, names)
            elif mark in "$`":
                is_open |= self._dollar(parts, names)
            else:
                parts.append(mark)
                self.at += 1
        if self.at == begin:  # a stray character that begins no word
            parts.append(self.text[self.at])
            self.at += 1
        return ShellWord("".join(parts), begin, min(self.at, len(self.text)), tuple(names), is_open)

    def _until(self, mark: str, begin: int) -> str:
        end = self.text.find(mark, begin)
        if end < 0:
            raise UnreadableError(f"a {mark} quote", begin - 1)
        self.at = end + 1
        return self.text[begin:end]

    def _double(self, parts: list[str], names: list[str]) -> bool:
        begin, is_open = self.at - 1, False
        while self.at < len(self.text):
            mark = self.text[self.at]
            if mark == '"':
                self.at += 1
                return is_open
            if mark == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                parts.append("" if self.text[self.at + 1] == "\n" else self.text[self.at + 1])
                self.at += 2
            elif mark in "$`":
                is_open |= self._dollar(parts, names)
            else:
                parts.append(mark)
                self.at += 1
        raise UnreadableError('a " quote', begin)

    def _dollar(self, parts: list[str], names: list[str]) -> bool:
        """Read a variable or a substitution and keep its text; return whether its value is open."""
        begin = self.at
        if self.text[begin] == "`":
            inside = _BACKQUOTED.match(self.text, begin + 1)
            if inside is None:
                raise UnreadableError("a `", begin)
            self.at = inside.end()
        elif self.text.startswith("$(", begin):
            self.at = self.balanced(begin + 2, "(", ")")
        elif self.text.startswith("${", begin):
            self.at = self.balanced(begin + 2, "{", "}")
            inner = re.match(r"[#!]?([A-Za-z_][A-Za-z0-9_]*)", self.text[begin + 2 : self.at])
            names.extend([inner[1]] if inner else [])
        else:
            found = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])").match(self.text, begin)
            if found is None:
                parts.append("$")
                self.at += 1
                return False
            self.at = found.end()
            names.append(found[1])
        parts.append(self.text[begin : self.at])
        return True

    def balanced(self, at: int, opening: str, closing: str, level: int = 0) -> int:
        """Return the index after the mark that closes what was opened before `at`.

        Between parentheses, here-documents and comments have no marks, and neither have quotes in a substitution
        inside of quotes.
        """
        if level > _DEEPEST:
            raise UnreadableError(f"a {opening} inside of many others, which")
        begin, depth, quote, is_code = at, 1, "", opening == "(" and not self.text.startswith("(", at)
        documents: list[tuple[str, bool]] = []
        while at < len(self.text):
            mark = self.text[at]
            if mark == "\\" and quote != "'":
                at += 1
            elif quote:
                if quote == '"' and self.text.startswith("$(", at):
                    at = self.balanced(at + 2, "(", ")", level + 1) - 1
                quote = "" if mark == quote else quote
            elif mark in "'\"":
                quote = mark
            elif is_code and self.text.startswith("((", at):
                at = self.balanced(at + 1, "(", ")", level + 1) - 1
            elif is_code and mark == "<" and (found := _DOCUMENT.match(self.text, at)):
                documents += [(_MARKS.sub("", found[2]), bool(found[1]))] if found[2] else []
                at = found.end() - 1
            elif is_code and mark == "\n" and documents:
                inner = ShellReader(self.text)
                inner.at, inner.documents = at + 1, documents
                inner.skip_documents()
                documents, at = [], inner.at - 1
            elif is_code and mark == "#" and self.text[at - 1] in " \t\n;&|(":
                end = self.text.find("\n", at)
                at = (len(self.text) if end < 0 else end) - 1
            elif mark == opening:
                depth += 1
            elif mark == closing:
                depth -= 1
                if not depth:
                    return at + 1
            at += 1
        raise UnreadableError(f"a {opening}", begin - 1)

    def target(self) -> ShellWord:
        """Read the target of a redirection, which a process substitution may be: `< <(command)`."""
        if not self.text.startswith(("<(", ">("), self.at):
            return self.word()
        begin = self.at
        self.at = self.balanced(begin + 2, "(", ")")
        return ShellWord(self.text[begin : self.at], begin, self.at, (), True)
