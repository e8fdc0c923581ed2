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
from gangplan.pipeline.seen import digest_file
from gangplan.pipeline.stored import (
    Json,
    RuleFinder,
    SharedValues,
    dump_expanded_task_result,
    dump_stored_finding,
    load_expanded,
    load_shared_result_values,
    load_stored_finding,
)
from gangplan.pipeline.worker import TaskResult
from gangplan.records import dataclass
from gangplan.validate.secrets import mask_secrets
from gangplan.workspace import RENDERED


@dataclass(slots=True)
class ShardRecords:
    """Results of specs by their files and of clusters by their names, as JSON, and what they have in common.

    `settled` are the files of `rendered/` that hold exactly what is rendered now; `opinions` are findings of
    the `judge`, if there was one, about texts.
    """

    rules: RuleFinder
    specs: dict[str, tuple[Json, Mapping[str, list[Any]]]] = field(default_factory=dict)
    clusters: dict[str, TaskResult] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    judge: str = ""
    opinions: list[Finding] = field(default_factory=list)

    def result(self, file: str) -> TaskResult | None:
        """Return the result of a spec; None if no shard reported it."""
        held = self.specs.get(file)
        return load_expanded(file, held[0], self.rules, held[1]) if held else None


class ShardRecorder:
    """A collector of what a shard finds out, as JSON.

    Only the text of a spec's result is held, because the values of thousands would fill the memory.
    """

    __slots__ = ("clusters", "rules", "shared", "specs")

    def __init__(self, rules: RuleFinder) -> None:
        self.rules, self.shared = rules, SharedValues({})
        self.specs: dict[str, str] = {}
        self.clusters: dict[str, TaskResult] = {}

    def note(self, result: TaskResult) -> None:
        """Note the result of a spec."""
        try:
            self.specs[result.file] = json.dumps(dump_expanded_task_result(result, self.rules, self.shared))
        except ValueError:
            return

    def facts(self, secrets: Collection[str]) -> dict[str, Json]:
        """Return all results that repeat no secret."""
        standing: dict[str, Json] = {}
        for cluster, result in sorted(self.clusters.items()):
            shared = SharedValues({})
            try:
                told = [dump_expanded_task_result(result, self.rules, shared), shared.values]
            except ValueError:
                continue
            if not _has_secret_in_json(json.dumps(told), secrets):
                standing[cluster] = told
        specs = {
            file: json.loads(text)
            for file, text in self.specs.items()
            if not _has_secret_in_json(text, secrets)
        }
        return {"shared": self.shared.values, "specs": specs, "clusters": standing}


def _has_secret_in_json(text: str, secrets: Collection[str]) -> bool:
    """Return whether a text in JSON holds a secret."""
    written = {json.dumps(one)[1:-1] for one in secrets}
    return mask_secrets(text, written) != text


def load_shard_records(root: Path, facts: Iterable[Mapping[str, Json]], rules: RuleFinder) -> ShardRecords:
    """Read what the shards reported. Raises ValueError, TypeError, KeyError or IndexError for what no
    shard writes."""
    told = ShardRecords(rules)
    for one in facts:
        shared = load_shared_result_values(one["shared"])
        for file, held in one["specs"].items():
            result = load_expanded(file, held, rules, shared)
            if _settle_unchanged_rendered_files(root, result, told.settled):
                told.specs[file] = (held, shared)
        for cluster, (held, own) in one["clusters"].items():
            result = load_expanded("", held, rules, load_shared_result_values(own))
            if _settle_unchanged_rendered_files(root, result, told.settled):
                told.clusters[cluster] = result
    return told


def _settle_unchanged_rendered_files(root: Path, result: TaskResult, settled: set[str]) -> bool:
    """Return whether no file of `rendered/` differs from a text of that name; add equal files to
    `settled`."""
    for change in result.changes:
        path = f"{RENDERED}/{change.path}"
        found = digest_file(root / path)
        if found not in ("", change.digest):
            return False
        if found:
            settled.add(path)
    return True


def dump_findings(findings: Iterable[Finding], rules: RuleFinder) -> Json:
    """Return findings as JSON, if their rules have names. Raises ValueError."""
    return [dump_stored_finding(one, rules) for one in findings]


def load_findings(held: Json, rules: RuleFinder) -> list[Finding]:
    """Read findings. Raises ValueError."""
    return [load_stored_finding(one, rules) for one in held]
