"""Checked trees as plain data, in the form of the recorded answers of the API server."""

from __future__ import annotations

import base64
import math
from typing import Any

from gangplan.cel import ast
from gangplan.cel.checked import Checked
from gangplan.cel.values import Uint


def dump(checked: Checked, text: str) -> Any:
    """Return every node with its type, its overloads (sorted) and its place (line from 1, column from 0)."""

    def place(offset: int) -> list[int]:
        before = text[:offset]
        return [before.count("\n") + 1, offset - (before.rfind("\n") + 1)]

    def many(nodes: tuple[ast.AstNode, ...]) -> list[Any]:
        return [walk(node) for node in nodes]

    def walk(node: ast.AstNode) -> Any:
        found: dict[str, Any] = {"type": str(checked.types[node.id]), "at": place(node.offset)}
        if node.id in checked.overloads:
            found["overloads"] = sorted(checked.overloads[node.id])
        match node:
            case ast.Literal(value=value):
                found["literal"] = constant(value)
            case ast.Ident(name=name):
                found["ident"] = name
            case ast.Select(operand=operand, field=field, test=test):
                found |= {"select": field, "of": walk(operand), "test": test}
            case ast.Call(function=function, target=target, arguments=arguments):
                found |= {"call": function, "args": many(arguments)}
                if target is not None:
                    found["target"] = walk(target)
            case ast.ListNode(elements=elements, optional=optional):
                found |= {"list": many(elements), "optional": sorted(optional)}
            case ast.MapNode(entries=entries):
                found["map"] = [[walk(entry.key), walk(entry.value), entry.optional] for entry in entries]
            case ast.Comprehension() as loop:
                found["loop"] = [loop.variable, loop.variable2, loop.accumulator]
                parts = (loop.range, loop.initial, loop.condition, loop.step, loop.result)
                found["parts"] = many(parts)
        return found

    return walk(checked.node)


def constant(value: object) -> Any:
    """Return a constant as JSON, tagged if JSON has no such value."""
    if isinstance(value, Uint):
        return {"$uint": str(int(value))}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return {"$double": "-0"}
    return value
