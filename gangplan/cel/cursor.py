"""A place in the tokens of an expression, with the limits that the API server's parser counts on the way."""

from __future__ import annotations

from gangplan.cel.errors import CompileError, Issue
from gangplan.cel.lexer import Token, tokens

# How deep a rule of the grammar may nest, and how deep the tree may be (cel-go parser.go: maxRecursionDepth).
DEEPEST = 250


class Cursor:
    """Tokens and the next one of them."""

    def __init__(self, text: str, minor: int) -> None:
        self.text = text
        self.minor = minor
        self.tokens = tokens(text)
        self.at = 0
        self.open = {"expr": 0, "relation": 0, "calc": 0, "member": 0}

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def take(self, kind: str) -> Token | None:
        """The next token if it is of that kind."""
        token = self.tokens[self.at]
        if token.kind != kind:
            return None
        self.at += 1
        return token

    def need(self, kind: str) -> Token:
        """The next token, which must be of that kind."""
        token = self.take(kind)
        if token is None:
            raise self.unexpected(self.token, f"'{kind}'" if len(kind) < 4 else kind)
        return token

    def optional_mark(self) -> bool:
        """Whether a `?` stands here, which marks what may be absent."""
        mark = self.take("?")
        if mark and self.minor < 28:
            raise self.error(mark.offset, "unsupported syntax '?': optional values need Kubernetes 1.28")
        return mark is not None

    def field_name(self) -> Token:
        """A name after a dot; between back-quotes it may have `-`, `.`, `/` and spaces, from 1.37 on."""
        quoted = self.take("ESC_IDENTIFIER") if self.minor >= 37 else None
        return quoted or self.need("IDENTIFIER")

    def message_name(self) -> str | None:
        """`Name.of.type` where a brace follows, taken with its dots; else None and nothing is taken."""
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
        """Something is wrong at a place."""
        return CompileError(self.text, (Issue(offset, message),))

    def unexpected(self, token: Token, wanted: str) -> CompileError:
        """The grammar allows something else where this token stands."""
        message = f"Syntax error: mismatched input '{token.text}' expecting {wanted}"
        if token.kind == "ESC_IDENTIFIER":
            message = "unsupported syntax: '`'"
        return self.error(token.offset, message)

    def enter(self, rule: str) -> None:
        """One more of a rule is open."""
        self.open[rule] += 1
        if self.open[rule] > DEEPEST:
            raise self.error(0, f"expression recursion limit exceeded: {DEEPEST}")
