"""Results of a command's shards, as JSON and back, so that the whole does not make them again.

A result that would not read back the same, or that repeats a secret, is left out; the whole makes it again.
So is one whose text differs from the file in `rendered/` of that name: to say how, the text must be there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from gangplan.findings import Finding
from gangplan.pipeline.seen import file_digest
from gangplan.pipeline.stored import (
    Json,
    Rules,
    Shared,
    expanded_json,
    expanded_of,
    finding_json,
    finding_of,
    shared_of,
)
from gangplan.pipeline.worker import Expanded
from gangplan.records import dataclass
from gangplan.validate.secrets import hidden
from gangplan.workspace import RENDERED


@dataclass(slots=True)
class Told:
    """Results of specs by their files and of clusters by their names, as JSON, and what they have in common.

    `settled` are the files of `rendered/` that hold exactly what is rendered now; `opinions` are findings of
    the `judge`, if there was one, about texts.
    """

    rules: Rules
    specs: dict[str, tuple[Json, Mapping[str, list[Any]]]] = field(default_factory=dict)
    clusters: dict[str, Expanded] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    judge: str = ""
    opinions: list[Finding] = field(default_factory=list)

    def result(self, file: str) -> Expanded | None:
        """Return the result of a spec; None if no shard reported it."""
        held = self.specs.get(file)
        return expanded_of(file, held[0], self.rules, held[1]) if held else None


class Telling:
    """A collector of what a shard finds out, as JSON.

    Only the text of a spec's result is held, because the values of thousands would fill the memory.
    """

    __slots__ = ("clusters", "rules", "shared", "specs")

    def __init__(self, rules: Rules) -> None:
        self.rules, self.shared = rules, Shared({})
        self.specs: dict[str, str] = {}
        self.clusters: dict[str, Expanded] = {}

    def note(self, result: Expanded) -> None:
        """Note the result of a spec."""
        try:
            self.specs[result.file] = json.dumps(expanded_json(result, self.rules, self.shared))
        except ValueError:
            return

    def facts(self, secrets: Collection[str]) -> dict[str, Json]:
        """Return all results that repeat no secret."""
        standing: dict[str, Json] = {}
        for cluster, result in sorted(self.clusters.items()):
            shared = Shared({})
            try:
                told = [expanded_json(result, self.rules, shared), shared.values]
            except ValueError:
                continue
            if not _repeats(json.dumps(told), secrets):
                standing[cluster] = told
        specs = {file: json.loads(text) for file, text in self.specs.items() if not _repeats(text, secrets)}
        return {"shared": self.shared.values, "specs": specs, "clusters": standing}


def _repeats(text: str, secrets: Collection[str]) -> bool:
    """Return whether a text in JSON holds a secret."""
    written = {json.dumps(one)[1:-1] for one in secrets}
    return hidden(text, written) != text


def told_of(root: Path, facts: Iterable[Mapping[str, Json]], rules: Rules) -> Told:
    """Read what the shards reported. Raises ValueError, TypeError, KeyError or IndexError for what no
    shard writes."""
    told = Told(rules)
    for one in facts:
        shared = shared_of(one["shared"])
        for file, held in one["specs"].items():
            result = expanded_of(file, held, rules, shared)
            if _settle(root, result, told.settled):
                told.specs[file] = (held, shared)
        for cluster, (held, own) in one["clusters"].items():
            result = expanded_of("", held, rules, shared_of(own))
            if _settle(root, result, told.settled):
                told.clusters[cluster] = result
    return told


def _settle(root: Path, result: Expanded, settled: set[str]) -> bool:
    """Return whether no file of `rendered/` differs from a text of that name; add equal files to
    `settled`."""
    for change in result.changes:
        path = f"{RENDERED}/{change.path}"
        found = file_digest(root / path)
        if found not in ("", change.digest):
            return False
        if found:
            settled.add(path)
    return True


def findings_json(findings: Iterable[Finding], rules: Rules) -> Json:
    """Return findings as JSON, if their rules have names. Raises ValueError."""
    return [finding_json(one, rules) for one in findings]


def findings_of(held: Json, rules: Rules) -> list[Finding]:
    """Read findings. Raises ValueError."""
    return [finding_of(one, rules) for one in held]
