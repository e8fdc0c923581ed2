"""Random values that fit a structural schema, with words that the rules of CRDs use."""

from __future__ import annotations

from random import Random
from typing import Any

WORDS = (
    "",
    "a",
    "node",
    "Exists",
    "Equal",
    "Never",
    "InOrder",
    "TryNextFlavor",
    "NoExecute",
    "auto",
    "s3://b/x",
)
WORDS += ("kubernetes.io/hostname", "kueue.x-k8s.io/multikueue", "Aa", "x" * 64, "9a", "Any", "NoSchedule")


def some(schema: Any, random: Random, names: set[str], depth: int = 0) -> Any:
    """Return a value that fits a schema, with the fields that rules use in about half of the cases."""
    if "enum" in schema:
        return random.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return random.choice((0, 1, 4, "auto", "many"))
    kind = schema.get("type")
    if kind == "object":
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            keys = random.sample(WORDS[1:6], random.randint(0, 2))
            return {key: some(more, random, names, depth + 1) for key in keys}
        required = set(schema.get("required") or ())
        return {
            name: some(inner, random, names, depth + 1)
            for name, inner in sorted((schema.get("properties") or {}).items())
            if name in required or (name in names and random.random() < 0.6 and depth < 7)
        }
    if kind == "array":
        count = random.choice((0, 1, 1, 2, 3))
        return [some(schema["items"], random, names, depth + 1) for _ in range(count)]
    return {
        "string": random.choice(WORDS),
        "integer": random.choice((-1, 0, 1, 2, 60)),
        "boolean": random.random() < 0.5,
    }.get(str(kind), 1.5)


def node(schema: Any, path: tuple[str, ...]) -> Any:
    """Return the schema at a path."""
    for step in path:
        schema = schema["items"] if step.startswith("[") else schema["properties"][step]
    return schema
