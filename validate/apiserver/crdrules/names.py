"""Property names as CEL identifiers (apiserver v0.34, pkg/cel/escaping.go)."""

from __future__ import annotations

import re

from gangplan.cel.lexer import CEL_RESERVED_WORDS

_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ALLOWED = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)


def escape_crd_property_name(name: str) -> str | None:
    """Return the identifier of a property, or None for a name that no expression can use.

    `a-b` -> `a__dash__b`, `namespace` -> `__namespace__`, `a__b` -> `a__underscores__b`.
    """
    if name in CEL_RESERVED_WORDS:
        return f"__{name}__"
    if not _ALLOWED.fullmatch(name):
        return None
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found[0]], name)


def list_crd_property_spellings(name: str) -> tuple[str, ...]:
    """Return every identifier that reads a property: after a dot, a reserved word may stay unescaped."""
    identifier = escape_crd_property_name(name)
    if identifier is None:
        return (name,)
    return (identifier, name) if name in CEL_RESERVED_WORDS else (identifier,)
