"""Index every field of every file format by its path, with its facts, inner fields and the rules about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from gangplan.records import dataclass
from gangplan.reference.formats import describe_format_field
from gangplan.reference.schemas import build_editor_schema_of_format, list_format_models
from gangplan.rulebook import find_rule_example, load_shipped_rules
from gangplan.rules.model import Rule

# The files of each format, by the name that people may put before a field of it.
FORMAT_FILES = {
    "spec": "specs/<team>/<job>.yaml",
    "sweep": "specs/<team>/<sweep>.yaml",
    "template": "jobtemplates/<name>.yaml",
    "team": "specs/<team>/team.yaml",
    "cluster": "overlays/<cluster>/cluster.yaml",
    "catalog": "images/catalog.yaml",
    "waiver": "policies/waivers/<name>.yaml",
    "workspace": "gangplan.yaml",
}
_OTHER_NAMES = {"job": "spec"}
_DEEPEST = 8
# An example that changes more keys than this is about a whole file, not one field.
_FEW_KEYS = 4
_KEY = re.compile(r"""(?:^|[{,\s\[-])["']?([A-Za-z_]\w*)["']?\s*:""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FormatField:
    """One field: its path from the top of its file (without the names in maps), the block that has it, and
    its facts.

    `facts` are type, default, example and meaning in words, as in docs/spec.md; `inner` are the fields of the
    block that it holds.
    """

    kind: str
    path: tuple[str, ...]
    block: str
    facts: dict[str, str]
    inner: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that `gangplan explain` takes: `cluster.nodePools.gpu`."""
        return ".".join((self.kind, *self.path))

    @property
    def names(self) -> set[str]:
        """Every name that means this field, in lower case."""
        own, title = self.path[-1], list_format_models()[self.kind].__name__
        tail = ".".join(self.path)
        every = {
            self.name,
            tail,
            own,
            f"{self.block}.{own}",
            f"{title}.{self.block}.{own}",
            f"{title}.{tail}",
        }
        every |= {f"{other}.{tail}" for other, kind in _OTHER_NAMES.items() if kind == self.kind}
        return {name.lower() for name in every}


@cache
def list_all_format_fields() -> tuple[FormatField, ...]:
    """Return every field, format by format, each file from the top."""
    return tuple(
        found
        for kind in list_format_models()
        for found in _list_format_fields(kind, build_editor_schema_of_format(kind))
    )


def find_fields(name: str) -> list[FormatField]:
    """Return the fields that a name means, those at exactly that path first."""
    wanted = name.strip().lower().removeprefix("<").removesuffix(">")
    found = [one for one in list_all_format_fields() if wanted in one.names]
    return sorted(found, key=lambda one: (wanted not in (one.name.lower(), ".".join(one.path).lower()),))


def list_field_names() -> list[str]:
    """Return the names that a suggestion can offer."""
    return [name for one in list_all_format_fields() for name in (one.name, ".".join(one.path))]


def find_rules_about(wanted: FormatField) -> list[Rule]:
    """Return the rules about a field: its example changes the field, or its summary or fix names it."""
    return [rule for rule in load_shipped_rules().values() if _is_rule_explained_with_field(rule, wanted)]


def _list_format_fields(kind: str, schema: dict[str, Any]) -> Iterator[FormatField]:
    yield from _list_block_fields(kind, (), list_format_models()[kind].__name__, schema, schema)


def _list_block_fields(
    kind: str, path: tuple[str, ...], block_name: str, block: dict[str, Any], schema: dict[str, Any]
) -> Iterator[FormatField]:
    for name, value in block.get("properties", {}).items():
        target = _find_field_block(value, schema)
        inner = schema["$defs"][target].get("properties", {}) if target else {}
        here = (*path, name)
        yield FormatField(
            kind, here, block_name, describe_format_field(name, value, block, schema), tuple(inner)
        )
        if target and len(here) < _DEEPEST:
            yield from _list_block_fields(kind, here, target, schema["$defs"][target], schema)


def _find_field_block(value: dict[str, Any], schema: dict[str, Any]) -> str:
    """Return the block that a field holds, directly, in a list or in a map; empty for plain values."""
    if "$ref" in value:
        name = str(value["$ref"].rsplit("/", 1)[-1])
        return name if "properties" in schema["$defs"][name] else ""
    nested = [
        *value.get("anyOf", ()),
        *value.get("oneOf", ()),
        value.get("items"),
        value.get("additionalProperties"),
    ]
    nested += value.get("patternProperties", {}).values()
    return next(
        (found for one in nested if isinstance(one, dict) and (found := _find_field_block(one, schema))), ""
    )


def _is_rule_explained_with_field(rule: Rule, wanted: FormatField) -> bool:
    name = wanted.path[-1]
    example = find_rule_example(rule)
    is_here = example is not None and _find_format_to_explain_by_path(example.place) == wanted.kind
    if is_here and example and not rule.startswith("yaml-"):  # those are about any key
        keys = _find_changed_keys(example.before or "", example.after or "")
        if name in keys and len(keys) <= _FEW_KEYS:
            return True
    # `memory` alone may mean anything; `memory:` and `nodePools` mean a field.
    end = "(?![\\w-])" if name != name.lower() else ":"
    is_named = re.search(rf"(?<![\w.-]){re.escape(name)}{end}", f"{rule.summary} {rule.fix}") is not None
    return is_named and (is_here or name != name.lower())


def _find_changed_keys(before: str, after: str) -> set[str]:
    """Return the keys on lines that only one of two texts has."""
    old, new = before.splitlines(), after.splitlines()
    lines = [line for line in old if line not in new] + [line for line in new if line not in old]
    return set(_KEY.findall("\n".join(lines)))


def _find_format_to_explain_by_path(place: str) -> str:
    """Return the format of a file by its path; empty for other files."""
    if place.endswith("/team.yaml"):
        return "team"
    if place.startswith("specs/"):
        return "spec"
    if place.endswith("/cluster.yaml"):
        return "cluster"
    if place.startswith("policies/waivers/"):
        return "waiver"
    return "catalog" if place == "images/catalog.yaml" else ""
