"""A position in the tokens of an expression, with the limits of the API server's parser."""

from __future__ import annotations

from gangplan.cel.errors import CompileError, Issue
from gangplan.cel.lexer import Token, split_cel_tokens

# How deep a rule of the grammar may nest, and how deep the tree may be (cel-go parser.go: maxRecursionDepth).
MAX_NESTING_DEPTH = 250


class Cursor:
    """The tokens of an expression and the position of the next one."""

    def __init__(self, text: str, minor: int) -> None:
        self.text = text
        self.minor = minor
        self.tokens = split_cel_tokens(text)
        self.at = 0
        self.open = {"expr": 0, "relation": 0, "calc": 0, "member": 0}

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def take(self, kind: str) -> Token | None:
        """Take the next token if it is of that kind; otherwise return None."""
        token = self.tokens[self.at]
        if token.kind != kind:
            return None
        self.at += 1
        return token

    def need(self, kind: str) -> Token:
        """Take the next token. Raises `CompileError` if it is not of that kind."""
        token = self.take(kind)
        if token is None:
            raise self.unexpected(self.token, f"'{kind}'" if len(kind) < 4 else kind)
        return token

    def optional_mark(self) -> bool:
        """Take a `?`, which marks what may be absent, and return whether there was one.

        Raises `CompileError` before Kubernetes 1.28.
        """
        mark = self.take("?")
        if mark and self.minor < 28:
            raise self.error(mark.offset, "unsupported syntax '?': optional values need Kubernetes 1.28")
        return mark is not None

    def field_name(self) -> Token:
        """Take a name after a dot; from 1.37 on, it may have `-`, `.`, `/` and spaces between back-quotes."""
        quoted = self.take("ESC_IDENTIFIER") if self.minor >= 37 else None
        return quoted or self.need("IDENTIFIER")

    def message_name(self) -> str | None:
        """Take `Name.of.type` if a brace follows, and return it; otherwise take nothing and return None."""
        start = at = self.at + (self.token.kind == ".")
        kinds = [token.kind for token in self.tokens[at : at + 2]]
        while kinds == ["IDENTIFIER", "."]:
            at += 2
            kinds = [token.kind for token in self.tokens[at : at + 2]]
        if kinds != ["IDENTIFIER", "{"]:
            return None
        self.at = at + 1
        return ".".join(token.text for token in self.tokens[start : at + 1 : 2])

    def error(self, offset: int, message: str) -> CompileError:
        """Return the error for a problem at an offset."""
        return CompileError(self.text, (Issue(offset, message),))

    def unexpected(self, token: Token, wanted: str) -> CompileError:
        """Return the error for a token that the grammar does not allow here."""
        message = f"Syntax error: mismatched input '{token.text}' expecting {wanted}"
        if token.kind == "ESC_IDENTIFIER":
            message = "unsupported syntax: '`'"
        return self.error(token.offset, message)

    def enter(self, rule: str) -> None:
        """Count one more open rule. Raises `CompileError` if it nests too deep."""
        self.open[rule] += 1
        if self.open[rule] > MAX_NESTING_DEPTH:
            raise self.error(0, f"expression recursion limit exceeded: {MAX_NESTING_DEPTH}")
