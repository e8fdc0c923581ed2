"""Recorded answers of API servers about built-in kinds, and where policies would see another object."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gangplan.validate.apiserver.defaulting.apply import build_admission_request_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.lab.client import Client

Object = dict[str, Any]
FILE = Path(__file__).parents[2] / "policy" / "builtin.answers.json"
# What the server generates, and what depends on the addresses and the clock of a cluster.
_OWN = frozenset(
    {
        *("managedFields", "uid", "creationTimestamp", "generation", "qosClass", "lastPhaseTransitionTime"),
        *("clusterIP", "clusterIPs", "ipFamilies", "nodePort"),
    }
)
_MADE_UP = re.compile(r"kube-api-access-.*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NOTHING = object()


def asked(client: Client, objects: list[Object]) -> list[list[Object]]:
    """Return each object and what the server would store, by dry run."""
    return [[one, known(client.create(one, dry_run=True, strict=False).object)] for one in objects]


def keep(minor: str, said: list[list[Object]]) -> None:
    """Write the answers of a minor, next to those of the others."""
    every = {**(json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}), minor: said}
    lines = [
        f"{json.dumps(name)}: [\n"
        + ",\n".join(json.dumps(pair, sort_keys=True) for pair in every[name])
        + "\n]"
        for name in sorted(every)
    ]
    FILE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


def kept(minor: str) -> list[list[Object]]:
    """Return the recorded answers of a minor."""
    found: list[list[Object]] = json.loads(FILE.read_text(encoding="utf-8"))[minor]
    return found


def known(value: Any) -> Any:
    """Return a value without what the server generates."""
    if isinstance(value, dict):
        return {name: known(inner) for name, inner in value.items() if name not in _OWN}
    if isinstance(value, list):
        return [known(one) for one in value]
    return "made up" if isinstance(value, str) and _MADE_UP.fullmatch(value) else value


def drift(versions: SchemaVersions, said: list[list[Object]]) -> list[str]:
    """Return every field that a policy would see differently; a null field differs from a missing one."""
    return [
        one
        for body, stored in said
        for one in _differences(
            known(build_admission_request_objects(body, None, versions)[0]),
            stored,
            f"{body['kind']}/{body['metadata']['name']}",
        )
    ]


def _differences(ours: Any, theirs: Any, path: str) -> list[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            one
            for name in sorted({*ours, *theirs})
            for one in _differences(ours.get(name, _NOTHING), theirs.get(name, _NOTHING), f"{path}.{name}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            one
            for mine, its in zip(ours, theirs, strict=True)
            for one in _differences(mine, its, f"{path}[]")
        ]
    if type(ours) is type(theirs) and ours == theirs:
        return []
    mine, its = ("nothing" if one is _NOTHING else repr(one) for one in (ours, theirs))
    return [f"{path}: ours {mine}, the server's {its}"]
