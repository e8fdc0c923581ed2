"""Split an expression into tokens by cel-go's grammar (parser/gen/CEL.g4, v0.26.0)."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from gangplan.cel.errors import CompileError, Issue

# The API server's parser refuses longer texts before reading them (cel-go parser/parser.go).
LONGEST = 100_000

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]""".*?"""',
        r"[rR]'''.*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
# ANTLR takes the longest match, so the alternatives, frequent ones first, exclude anything longer. `.5` is a
# number also after a name, therefore `a.5` is an error.
_TOKENS = "|".join(
    (
        r"""(?P<IDENTIFIER>(?!(?:[bB][rR]?|[rR])["'])[A-Za-z_][A-Za-z0-9_]*)""",
        r"(?P<space>[\t \r\n\f]+|//[^\n]*)",
        r"(?P<sign>==|!=|<=|>=|&&|\|\||\.(?![0-9])|[<>\[\]{}(),\-!?:+*/%])",
        rf"(?P<STRING>{_STRING})",
        r"(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
        r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
        r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
        rf"(?P<BYTES>[bB](?:{_STRING}))",
        r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)",
    )
)
_WORDS = frozenset(("in", "true", "false", "null"))
END_TOKEN = "<EOF>"

# Names that the grammar reads as names but the parser refuses as variables and functions.
_KEPT = "as break const continue else for function if import let loop package namespace return var void while"
CEL_RESERVED_WORDS = frozenset((*_KEPT.split(), "false", "in", "null", "true"))


class Token(NamedTuple):
    """A piece of the text. `kind` is the sign or word itself, or the grammar's name (`NUM_INT`)."""

    kind: str
    text: str
    offset: int


@cache
def _compile_token_pattern() -> re.Pattern[str]:
    return re.compile(_TOKENS, re.DOTALL)


def split_cel_tokens(text: str) -> list[Token]:
    """Return the tokens of an expression, an END token last; spaces and comments are left out.

    Raises `CompileError` for a text that is too long, or has something that is not a token.
    """
    if len(text) > LONGEST:
        message = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        raise CompileError(text, (Issue(0, message),))
    found = []
    match_at = _compile_token_pattern().match
    offset = 0
    while offset < len(text):
        match = match_at(text, offset)
        if match is None:
            raise CompileError(text, (Issue(offset, _describe_token_error(text, offset)),))
        kind = match.lastgroup
        if kind != "space":
            word = match.group()
            found.append(Token(word if kind == "sign" or word in _WORDS else str(kind), word, offset))
        offset = match.end()
    found.append(Token(END_TOKEN, END_TOKEN, len(text)))
    return found


def _describe_token_error(text: str, offset: int) -> str:
    """Return what is wrong where no token begins: most often a quote that is never closed."""
    rest = text[offset:]
    shown = rest if rest[0] in "\"'" else rest[0]
    return f"Syntax error: token recognition error at: '{shown}'"
