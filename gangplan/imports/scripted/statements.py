"""Split a shell script into its top-level statements: simple commands and pipes, or whole compounds.

gangplan.plan.launchers.shell reads the words; this module decides what belongs together.
"""

from __future__ import annotations

import re

from gangplan.imports.scripted.parts import Redirect, ScriptCommand, Statement, StatementForm
from gangplan.plan.launchers.shell import ShellReader, ShellWord, UnreadableError

_CLOSED_BY = {
    "if": "fi",
    "for": "done",
    "while": "done",
    "until": "done",
    "select": "done",
    "case": "esac",
    "{": "}",
}
_FORMS: dict[str, StatementForm] = {
    "if": "if",
    "for": "loop",
    "while": "loop",
    "until": "loop",
    "select": "loop",
    "case": "case",
    "{": "group",
    "(": "group",
}
_WORDS = frozenset({"then", "else", "elif", "do", "!", "time", "coproc"})
_OPERATORS = ("&&", "||", ";;&", ";;", ";&", "|&", "&", "|", ";", "\n")
_ASSIGN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^]\s]*\])?\+?=")
_REDIRECT = re.compile(r"(?:[0-9]+|\{\w+\})?(?:<<<|<<-?|<>|>>|>\||[<>]&|&>>|&>|<|>)")
# Commands whose arguments are assignments.
DECLARATION_COMMANDS = frozenset({"export", "declare", "typeset", "local", "readonly"})
_MOST = 20_000  # words of a script


def parse_shell_statements(text: str) -> list[Statement]:
    """Return the statements of a script.

    Raises UnreadableError for one that no shell would accept, or that is too long.
    """
    return _Top(text).read()


class _Top:
    def __init__(self, text: str) -> None:
        self.text, self.reader = text, ShellReader(text)
        self.found: list[Statement] = []
        self.stack: list[str] = []
        self.form: StatementForm = "plain"
        self.name = ""
        self.parts: list[ScriptCommand] = []
        self.begin = -1
        self.part: ScriptCommand | None = None
        self.words = 0
        self.marks: list[ShellWord] = []
        self.header = ""  # the compound command whose header is being read

    def read(self) -> list[Statement]:
        """Return all statements."""
        text, reader = self.text, self.reader
        while True:
            reader.blank()
            if reader.at >= len(text):
                break
            if self._arithmetic() or self._group() or self._operator():
                continue
            self._count()
            if self._redirection():
                continue
            self._word()
        if reader.documents:
            raise reader.build_open_document_error(reader.documents[0][0], len(text))
        self._end_part(len(text), "")
        if self.stack:
            raise UnreadableError(f"the {self.stack[0].removesuffix('()')}", self.begin)
        self._close(len(text))
        return self.found

    def _count(self) -> None:
        self.words += 1
        if self.words > _MOST:
            raise UnreadableError(f"a script of more than {_MOST} words, which")

    def _begun(self) -> None:
        if self.begin < 0:
            self.begin = self.reader.at

    def _is_start(self) -> bool:
        return self.part is None or not (self.part.words or self.part.sets)

    def _arithmetic(self) -> bool:
        """Read `((...))`, as a command or after `for`."""
        if not self.text.startswith("((", self.reader.at) or not (self._is_start() or self.header == "for"):
            return False
        self._begun()
        at = self.reader.at
        self.reader.at = self.reader.balanced(at + 1, "(", ")")
        self.header = ""
        self.part = self.part or ScriptCommand(at)
        self.part.arithmetic = self.text[at + 2 : self.reader.at - 2]
        return True

    def _group(self) -> bool:
        """Read parentheses: of a subshell, the pattern of a case, or a function."""
        text, at = self.text, self.reader.at
        mark = text[at]
        if mark == "(":
            self._begun()
            called = re.compile(r"\(\s*\)").match(text, at)
            if called and self.part is not None and len(self.part.words) == 1:
                self.name = self.part.words[0].text
                self.form, self.part = ("function" if not self.stack else self.form), None
                self.reader.at = called.end()
                return True
            if self._is_start() and not (self.stack and self.stack[-1] == "case"):
                self._mark(ShellWord("(", at, at + 1), 0)
                self._open("(")
            self.reader.at += 1
            return True
        if mark == ")":
            self._end_part(at, ";")
            self.reader.at += 1
            if self.stack and self.stack[-1] == "(":
                self.stack.pop()
                self._mark(ShellWord(")", at, at + 1), 0)
                self._after()
            return True
        return False

    def _operator(self) -> bool:
        text, reader = self.text, self.reader
        operator = next((mark for mark in _OPERATORS if text.startswith(mark, reader.at)), "")
        if not operator or text.startswith("&>", reader.at):
            return False
        at = reader.at
        reader.at += len(operator)
        if self.header in ("for", "words"):
            self.header = ""
        ends = operator in ("\n", ";", "&") and not self.stack and not self._goes_on()
        is_empty = self.part is None
        self._end_part(at, operator)
        if operator == "\n":
            reader.skip_documents()
            at = reader.at if ends and not is_empty else at
        if ends and self.begin >= 0 and not (self.form == "function" and not self._has_body()):
            self._close(at, operator == "&")
        return True

    def _goes_on(self) -> bool:
        """Return whether a list continues in the next line: it ends in `&&`, `||` or a pipe."""
        return self.part is None and bool(self.parts) and self.parts[-1].operator in ("&&", "||", "|", "|&")

    def _has_body(self) -> bool:
        return bool(self.parts) or self.part is not None

    def _open(self, keyword: str) -> None:
        if not self.stack and self.form != "function":
            self.form = _FORMS[keyword]
        self.stack.append(keyword)
        self.part = None

    def _mark(self, word: ShellWord, depth: int) -> None:
        if len(self.stack) == depth:
            self.marks.append(word)

    def _after(self) -> None:
        """Continue after a compound command: what follows on its last line belongs to it."""
        self.part = ScriptCommand(self.reader.at)

    def _redirection(self) -> bool:
        found = _REDIRECT.match(self.text, self.reader.at)
        if found is None:
            return False
        self._begun()
        self.part = self.part or ScriptCommand(self.reader.at)
        self.reader.at = found.end()
        operator = found[0]
        if self.text.startswith("(", self.reader.at):
            begin = self.reader.at
            self.reader.at = self.reader.balanced(begin + 1, "(", ")")
            self.part.redirects.append(Redirect(operator, self.text[begin : self.reader.at]))
            return True
        self.reader.blank()
        if self.reader.at < len(self.text) and self.text[self.reader.at] not in "\n;":
            target = self.reader.target()
            self.part.redirects.append(Redirect(operator, self.text[target.begin : target.end]))
            if operator.lstrip("0123456789") in ("<<", "<<-"):
                self.reader.documents.append((target.text, operator.endswith("-")))
        return True

    def _word(self) -> None:
        self._begun()
        word = self.reader.word()
        is_plain = self.text[word.begin : word.end] == word.text
        if self.header:
            behind = "words" if self.header == "for" else ""
            is_over = self.header == "function" or word.text in ("in", "do")
            self.header = self.header if not is_over else behind if word.text == "in" else ""
            if word.text != "do":
                self.name = word.text if self.form == "function" and not self.name else self.name
                return
        if is_plain and self._is_start():
            if word.text in _CLOSED_BY:
                self._mark(word, 0)
                self._open(word.text)
                self.header = word.text if word.text in ("for", "case", "select") else ""
                return
            if word.text == "function":
                self.form, self.header = ("function" if not self.stack else self.form), "function"
                return
            if word.text in _WORDS:
                self._mark(word, 1)
                if word.text == "!" and not self.stack:
                    self.part = self.part or ScriptCommand(word.begin)
                return
            if self.stack and word.text == _CLOSED_BY.get(self.stack[-1]):
                self.stack.pop()
                self._mark(word, 0)
                self._after()
                return
        self.part = self.part or ScriptCommand(word.begin)
        if is_plain and not self.part.words and word.text == "[[":
            self._condition(word)
        elif (not self.part.words or self.part.words[0].text in DECLARATION_COMMANDS) and _ASSIGN.match(
            self.text, word.begin
        ):
            self._assign(word)
        else:
            self.part.words.append(word)

    def _condition(self, first: ShellWord) -> None:
        """Read `[[ ... ]]`, which has its own operators."""
        found = re.compile(r"(?:[^\]\"']|\"[^\"]*\"|'[^']*'|\](?!\]))*\]\]").match(self.text, first.end)
        if found is None:
            raise UnreadableError("a [[", first.begin)
        assert self.part is not None
        self.part.words.append(ShellWord(self.text[first.begin : found.end()], first.begin, found.end()))
        self.reader.at = found.end()

    def _assign(self, word: ShellWord) -> None:
        assert self.part is not None
        if self.text[word.begin : word.end].endswith("=") and self.text.startswith("(", self.reader.at):
            self.reader.at += 1
            inside: list[ShellWord] = []
            while True:
                self.reader.blank()
                if self.reader.at >= len(self.text):
                    raise UnreadableError("an array", word.begin)
                mark = self.text[self.reader.at]
                if mark == ")":
                    self.reader.at += 1
                    break
                if mark == "\n":
                    self.reader.at += 1
                    continue
                self._count()
                inside.append(self.reader.word())
            self.part.arrays[len(self.part.sets)] = inside
            word = ShellWord(word.text, word.begin, self.reader.at, word.names, word.is_open)
        self.part.sets.append(word)

    def _end_part(self, at: int, operator: str) -> None:
        if self.part is not None:
            self.part.end, self.part.operator = at, operator
            self.parts.append(self.part)
        elif operator in ("&&", "||", "|", "|&") and self.parts:
            self.parts[-1].operator = operator
        self.part = None

    def _close(self, at: int, is_background: bool = False) -> None:
        if self.begin >= 0:
            end = len(self.text[:at].rstrip())
            one = Statement(self.form, self.begin, end, self.parts, is_background, self.name, self.marks)
            self.found.append(one)
        self.marks = []
        self.form, self.name, self.parts, self.begin, self.header = "plain", "", [], -1, ""
