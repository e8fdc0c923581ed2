"""The target of a kustomize patch: its selectors, evaluated as kustomize evaluates them.

group, version, kind, name and namespace are Go regular expressions that must match the whole text (kustomize
api/types/selector.go, v5); the two label selectors are Kubernetes selectors.

The name of a run ends in a hash of its content, and patches are part of that content. While patches are
applied, eight fixed hexadecimal digits replace the hash: `<job>-.*` and `<job>-[0-9a-f]{8}` match, the names
of rendered files never do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gangplan.model.job import HASH_LENGTH, HASH_PLACEHOLDER
from gangplan.objects import Body
from gangplan.re2 import PatternError, Search, UnknownScriptError, compile_search
from gangplan.records import dataclass

# The digits that replace the hash of a run while targets are compared.
TARGET_HASH_DIGITS = "c9a4e7b1"
RUN_LABEL = "gangplan.dev/run"
_HASHED = re.compile(rf"(.+)-[0-9a-f]{{{HASH_LENGTH}}}")
_TERM = re.compile(
    r"^\s*(!?)\s*([A-Za-z0-9./_-]+)\s*(?:(==|=|!=)\s*([A-Za-z0-9._-]*)|\s(in|notin)\s*\(([^)]*)\))?\s*$"
)


class TargetError(ValueError):
    """An invalid target; `path` is the field inside it."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class Target:
    """Compiled selectors; an absent one matches everything.

    `name` is the name as it is written.
    """

    kind_patterns: tuple[tuple[str, Search], ...]
    name_patterns: tuple[tuple[str, Search], ...]
    labels: tuple[tuple[str, str, tuple[str, ...]], ...]
    annotations: tuple[tuple[str, str, tuple[str, ...]], ...]
    name: str = ""

    @property
    def is_by_value(self) -> bool:
        """Whether it selects by name, namespace, label or annotation, which differ from run to run."""
        return bool(self.name_patterns or self.labels or self.annotations)

    def matches_kind(self, body: Body) -> bool:
        """Return whether the target can select objects of this kind."""
        group, _, version = body["apiVersion"].rpartition("/")
        facts = {"group": group, "version": version, "kind": body["kind"]}
        return all(pattern(facts[field]) for field, pattern in self.kind_patterns)

    def matches(self, body: Body) -> bool:
        """Return whether the target selects the object."""
        if not self.matches_kind(body):
            return False
        meta = body["metadata"]
        if not all(pattern(replace_run_hash(meta.get(field, ""))) for field, pattern in self.name_patterns):
            return False
        return _matches_patch_target_selector(
            self.labels, meta.get("labels", {})
        ) and _matches_patch_target_selector(self.annotations, meta.get("annotations", {}))

    def job_of(self, jobs: Iterable[str]) -> str:
        """Return the job meant by a name that matches no run: the job's own name, or that and a hash."""
        written = [
            self.name,
            *(values[0] for label, _, values in self.labels if label == RUN_LABEL and values),
        ]
        known = set(jobs)
        for text in filter(None, written):
            hashed = _HASHED.fullmatch(text)
            if text in known:
                return text
            if hashed and hashed[1] in known:
                return hashed[1]
        return ""


def replace_run_hash(name: str) -> str:
    """Return the name of a run as targets see it; any other name is returned as it is."""
    return f"{name[:-HASH_LENGTH]}{TARGET_HASH_DIGITS}" if name.endswith(f"-{HASH_PLACEHOLDER}") else name


def parse_patch_target(value: Any) -> Target:
    """Parse the target of a patch. Raises TargetError."""
    if not isinstance(value, dict) or not value:
        raise TargetError("the patch has no target; it would have to carry the whole object's name")
    known = {"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"}
    for key, text in value.items():
        if key not in known:
            raise TargetError(f"unknown field '{key}' of a target", (key,))
        if not isinstance(text, str):
            raise TargetError(f"{key} of a target is text", (key,))
    return Target(
        tuple(
            (key, _compile_patch_target_pattern(key, value[key]))
            for key in ("group", "version", "kind")
            if value.get(key)
        ),
        tuple(
            (key, _compile_patch_target_pattern(key, value[key]))
            for key in ("name", "namespace")
            if value.get(key)
        ),
        _parse_patch_target_selector("labelSelector", value.get("labelSelector", "")),
        _parse_patch_target_selector("annotationSelector", value.get("annotationSelector", "")),
        value.get("name", ""),
    )


def _compile_patch_target_pattern(key: str, text: str) -> Search:
    try:
        return compile_search(f"^(?:{text})$")
    except (PatternError, UnknownScriptError) as bad:
        raise TargetError(
            f"{key} is not a regular expression that gangplan can read: {bad}", (key,)
        ) from None


def _parse_patch_target_selector(key: str, text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Parse the terms of a selector into (label, operator, values)."""
    terms: list[tuple[str, str, tuple[str, ...]]] = []
    for part in re.split(r",(?![^(]*\))", text):
        if not part.strip():
            continue
        match = _TERM.match(part)
        if match is None:
            raise TargetError(f"{key} has a part that is not a selector: '{part}'", (key,))
        negated, label, equality, value, membership, values = match.groups()
        if equality:
            terms.append((label, "notin" if equality == "!=" else "in", (value,)))
        elif membership:
            terms.append((label, membership, tuple(item.strip() for item in values.split(","))))
        else:
            terms.append((label, "absent" if negated else "exists", ()))
    return tuple(terms)


def _matches_patch_target_selector(
    terms: tuple[tuple[str, str, tuple[str, ...]], ...], labels: dict[str, str]
) -> bool:
    for label, operator, values in terms:
        if operator == "exists" and label not in labels:
            return False
        if operator == "absent" and label in labels:
            return False
        if operator == "in" and labels.get(label) not in values:
            return False
        if operator == "notin" and labels.get(label) in values:
            return False
    return True
