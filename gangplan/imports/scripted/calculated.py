"""Read the arithmetic commands of a script: `((N += 1))`, `let N=M*2`, `(( N > 4 ))`, `declare -i N`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gangplan.imports.scripted.expand import ScriptScope
from gangplan.imports.scripted.items import ScriptItem
from gangplan.imports.scripted.parts import ScriptCommand
from gangplan.imports.scripted.pieces import ShellValue

_CHANGED = re.compile(
    r"(?<![\w$])([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)
_SIMPLE = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)\s*(?:(?P<how>[-+*/%]?)=(?!=)(?P<value>[^=].*)|(?P<step>\+\+|--))"
    r"|(?P<first>\+\+|--)(?P<other>[A-Za-z_]\w*))\s*",
    re.DOTALL,
)


def find_calculated_names(parts: Iterable[ScriptCommand]) -> set[str]:
    """Return the variables that arithmetic commands set."""
    texts = [one for part in parts for one in _list_expressions(part, part.texts)]
    return {one for text in texts for found in _CHANGED.findall(text) for one in found if one}


def read_shell_arithmetic(
    part: ScriptCommand, texts: Sequence[str], scope: ScriptScope, end: int, is_sure: bool
) -> ScriptItem | None:
    """Return the item of an arithmetic command that sets variables; None for any other.

    Where only the script tells whether it runs, or with what, its variables are open.
    """
    expressions = _list_expressions(part, texts)
    names = {one for text in expressions for found in _CHANGED.findall(text) for one in found if one}
    if not names:
        return None
    for text in expressions:
        changed = {one for found in _CHANGED.findall(text) for one in found if one}
        found = _SIMPLE.fullmatch(text)
        value = _calculate(found, scope) if found and is_sure and len(changed) == 1 else None
        scope.set_open_values(changed)
        if value is not None:
            scope.values[changed.pop()] = str(value)
    item = ScriptItem("set", part.begin, end, [part], names=names)
    item.extends = names - {name for name in names if isinstance(scope.values.get(name), str)}
    if not part.arithmetic:
        item.text = f"(({', '.join(expressions)}))"
    return item


def _list_expressions(part: ScriptCommand, texts: Sequence[str]) -> list[str]:
    if part.arithmetic:
        return part.arithmetic.split(",")
    return list(texts[1:]) if texts[:1] == ["let"] else []


def _calculate(found: re.Match[str], scope: ScriptScope) -> int | None:
    name, how = found["name"] or found["other"], found["how"] or ""
    if found["value"] is not None:
        return scope.calculate(f"{name} {how} ({found['value']})" if how else found["value"])
    return scope.calculate(f"{name} {(found['step'] or found['first'])[0]} 1")


def compute_integer(scope: ScriptScope, before: ShellValue, value: ShellValue) -> str | None:
    """Return the value that a variable of `declare -i` gets; `before` is what `+=` adds to, else empty."""
    if not isinstance(value, str) or not isinstance(before, str):
        return None
    number = scope.calculate(f"({before or 0}) + ({value or 0})")
    return str(number) if number is not None else None
