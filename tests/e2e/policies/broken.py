"""Break policies and bindings at random: does the API server refuse the same ones as gangplan?"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from gangplan.objects import POLICY_KIND, walk_leaves
from gangplan.rules.model import Severity
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.lab.client import ApiError, Client

Object = dict[str, Any]
WRONG_VALUES = ("", "*", "nope", "a b", "Deny", "x" * 70, "UPPER", "-x", "a/b/c", "true", "\n")
# Careless authors' mistakes: a pattern, and what they write instead.
SLIPS = (
    (r"\bobject\b", "objekt"),
    (r"\bobject\.", "object"),
    (r"\.size\(\)", ".length()"),
    (r"\.size\(\)", ".size"),
    (r"==", "="),
    (r"==", "!=="),
    (r"&&", "and"),
    (r"\|\|", "|"),
    (r"\bhas\(", "exists("),
    (r'"', "'"),
    (r"\(", ""),
    (r"\)", ""),
    (r"\d+", "'1'"),
    (r"\bparams\.data\b", "params.date"),
    (r"\bparams\b", "param"),
    (r"variables\.\w+", "variables.nope"),
    (r"\.filter\(\w+, ", ".filter("),
    (r"\.all\((\w+),", r".every(\1,"),
    (r"\.map\(", ".collect("),
    (r"request\.operation", "request.operatoin"),
    (r"\.orValue\(\[\]\)", ""),
    (r"\.split\(", ".splitBy("),
    (r"\? ", "?? "),
    (r" : ", " ; "),
    (r"\bint\(", "integer("),
    (r"quantity\(", "Quantity("),
    (r"matches\(\"", 'matches("('),
    (r"\bdyn\(", "any("),
    (r"!", "not "),
    (r"$", " + 1"),
    (r"^", "1 + "),
    (r"$", " == null"),
)


@dataclass(slots=True)
class Result:
    """Counts, and the disagreements in words."""

    asked: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)


def broken(body: Object, random: Random) -> tuple[Object, str]:
    """Return a copy with one mistake, and a description of it."""
    result = copy.deepcopy(body)
    if body["kind"] == POLICY_KIND and random.random() < 0.7:
        found = list(_expressions(result))
        random.shuffle(found)
        for node, key in found:
            slips = [slip for slip in SLIPS if re.search(slip[0], node[key])]
            if slips:
                pattern, instead = random.choice(slips)
                node[key] = re.sub(pattern, instead, node[key], count=1)
                return result, f"{key}: {pattern} -> {instead}"
    paths = [path for path, _ in walk_leaves(result) if path[0] in ("spec", "metadata")]
    path = random.choice(paths)
    node: Any = result
    for step in path[:-1]:
        node = node[step]
    kind = random.randrange(3)
    if kind == 0:
        del node[path[-1]]
        return result, f"{path} dropped"
    if kind == 1 and isinstance(node, list):
        node.append(copy.deepcopy(node[-1]))
        return result, f"{path} twice"
    node[path[-1]] = random.choice(WRONG_VALUES)
    return result, f"{path} = {node[path[-1]]!r}"


def _expressions(body: Object) -> Iterator[tuple[Object, str]]:
    """Yield every expression of a policy, as its mapping and key."""
    spec = body["spec"]
    for name in ("matchConditions", "variables", "validations"):
        for one in spec.get(name) or ():
            for key in ("expression", "messageExpression"):
                if key in one:
                    yield one, key


def ours(body: Object, versions: SchemaVersions) -> str:
    """Return why gangplan refuses an object, or ''."""
    troubles = [
        one
        for one in read_policy_objects([PlacedObject(body)], versions).problems
        if one.severity is Severity.ERROR
    ]
    return troubles[0].message if troubles else ""


def ask(client: Client, bodies: list[Object], versions: SchemaVersions, seed: int, count: int) -> Result:
    """Break `count` objects and ask both sides."""
    result, random = Result(), Random(seed)
    for number in range(count):
        body, mistake = broken(random.choice(bodies), random)
        mine = ours(body, versions)
        sent = copy.deepcopy(body)
        if isinstance(sent.get("metadata"), dict) and sent["metadata"].get("name") in {
            b["metadata"]["name"] for b in bodies
        }:
            sent["metadata"]["name"] = f"{sent['metadata']['name']}-{number}"
        try:
            client.create(sent, dry_run=True)
            theirs = ""
        except ApiError as error:
            theirs = error.message
        except (LookupError, KeyError, TypeError) as error:
            theirs = f"cannot be sent: {error}"
        result.asked += 1
        result.refused += bool(theirs)
        if bool(mine) != bool(theirs):
            result.wrong.append(
                f"{body['metadata'].get('name')} ({mistake}): we say {mine!r}, the server {theirs[:300]!r}"
            )
    return result
