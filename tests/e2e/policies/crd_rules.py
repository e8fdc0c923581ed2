"""Compare what gangplan and the API server say about random values by the rules of the lab's own CRDs.

The values are those of new objects and of changes.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

from gangplan.validate.apiserver.crdrules.imported import compile_crd_schema_rules
from gangplan.validate.apiserver.crdrules.registry import reduce_crd
from gangplan.validate.apiserver.crdrules.rules import CompiledRule, find_crd_rule_breaches
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.schema import SchemaVersions
from tests.lab.client import ApiError, Client
from tests.policy.crd_values import WORDS, node, some

Object = dict[str, Any]
Said = frozenset[tuple[str, str]]
INVALID = re.compile(r'^Invalid value: "[a-z]*": ')
MUTATING = re.compile(r'admission webhook "m[a-z]*\.kb\.io"')
GROUPS = ("trainer.kubeflow.org", "jobset.x-k8s.io", "kueue.x-k8s.io")


@dataclass(slots=True)
class Result:
    """Counts, and the disagreements in words."""

    judged: int = 0
    broken: int = 0
    changes: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind with its schema, its rules, and an object to start from."""

    schema: Any
    rules: list[CompiledRule]
    body: Object


def kinds(client: Client, objects: list[Object]) -> list[Kind]:
    """Return the kinds that have rules, with one object each, by the CRDs that the lab has."""
    crds = {}
    for crd in client.list("CustomResourceDefinition"):
        if crd["spec"]["group"] in GROUPS:
            taken = reduce_crd(crd)
            for version, schema in taken["versions"].items():
                crds[f"{taken['group']}/{version}", taken["kind"]] = schema
    found: dict[tuple[str, str], Kind] = {}
    for body in objects:
        key = body["apiVersion"], body["kind"]
        if key in crds and key not in found:
            rules = [
                one for one in compile_crd_schema_rules(crds[key], 34) if one.rule.path[:1] != ("status",)
            ]
            if rules:
                found[key] = Kind(crds[key], rules, body)
    return list(found.values())


def ask(client: Client, objects: list[Object], versions: SchemaVersions, seed: int, count: int) -> Result:
    """Ask about `count` random values, some of them as a change of an existing object."""
    result, random = Result(), Random(seed)
    known = kinds(client, objects)
    there = [kind for kind in known if kind.body["kind"] not in ("TrainJob",)]
    old = {id(kind): client.apply(kind.body).object for kind in there}
    for _ in range(count):
        kind = random.choice(known)
        before = old.get(id(kind)) if random.random() < 0.4 else None
        body = _changed(kind, before or kind.body, random)
        if before is None and "name" in body["metadata"]:
            body["metadata"]["name"] = f"x{random.randrange(10**6)}-{body['metadata']['name']}"[:60].rstrip(
                "-."
            )
        _one(client, kind, body, before, versions, result)
    return result


def _changed(kind: Kind, start: Object, random: Random) -> Object:
    """Return the object with a random value in a field that a rule reads."""
    body = copy.deepcopy(start)
    rule = random.choice(kind.rules).rule
    names = {
        word
        for one in kind.rules
        if one.rule.path == rule.path
        for word in re.findall(r"[A-Za-z]+", one.rule.text)
    }
    if not rule.path:
        body["metadata"]["name"] = random.choice(WORDS) or "a"
        return body
    value = some(node(kind.schema, rule.path), random, names)
    _put(body, rule.path, value)
    return body


def _put(body: Any, path: tuple[str, ...], value: Any) -> None:
    for step, after in pairwise(path):
        if step.startswith("["):
            if not body or not isinstance(body[0], dict | list):
                body[:] = [{}]
            body = body[0]
        else:
            body = body.setdefault(step, [] if after.startswith("[") else {})
    if path[-1].startswith("["):
        body[:1] = [value]
    else:
        body[path[-1]] = value


def _one(
    client: Client, kind: Kind, body: Object, before: Object | None, versions: SchemaVersions, result: Result
) -> None:
    resource = client.resource(f"{body['apiVersion']}/{body['kind']}")
    space, query = body["metadata"].get("namespace"), {"dryRun": "All", "fieldValidation": "Ignore"}
    theirs: Said | None = frozenset()
    try:
        if before is None:
            client.request("POST", resource.path(space), body, query=query)
        else:
            client.request("PUT", resource.path(space, body["metadata"]["name"]), body, query=query)
    except ApiError as error:
        theirs = _said(error, kind.rules)
    if theirs is None:
        result.lost += 1
        return
    defaulted = fill_api_server_defaults(body, versions)
    ours = frozenset(
        (_field(one.path), one.message) for one in find_crd_rule_breaches(kind.rules, defaulted, before)
    )
    result.judged += 1
    result.changes += before is not None
    result.broken += bool(theirs)
    if ours != theirs:
        said = f"only we {sorted(ours - theirs)}, only the server {sorted(theirs - ours)}"
        result.wrong.append(f"{body['kind']}{' changed' if before else ''}: {said}")


def _said(error: ApiError, rules: list[CompiledRule]) -> Said | None:
    """Return the violated rules and their fields by the server's words, or None if something else was
    wrong."""
    if MUTATING.search(error.message):
        return None  # it comes before the rules
    if "admission webhook" in error.message or error.status == 403:
        return frozenset()
    texts = {one.rule.message.strip() or f"failed rule: {one.rule.text.strip()}" for one in rules}
    found = set()
    for cause in error.details.get("causes") or ():
        if not any(cause["message"].endswith(f": {text}") for text in texts):
            return None
        found.add((cause["field"], INVALID.sub("", cause["message"])))
    return frozenset(found) if found else None


def _field(path: tuple[str | int, ...]) -> str:
    out = ""
    for step in path:
        out += f"[{step}]" if isinstance(step, int) else f".{step}" if out else str(step)
    return out or "<nil>"


def lines(result: Result, title: str) -> list[str]:
    """Return the lines of the report."""
    asked = f"{result.judged} objects judged, {result.changes} of them changes"
    outcome = f"{result.broken} break a rule, {len(result.wrong)} disagreements"
    return [
        f"rules of CRDs, {title}: {asked}, {result.lost} refused for other reasons; {outcome}",
        *(f"  {text}" for text in result.wrong[:20]),
    ]
