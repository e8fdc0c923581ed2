"""Samples that real programs wrote, each with the program: tests/diagnose/recorded/.

Tests that need no such program read them (test_recorded.py). Tests that run the programs write them again
with `--update`: tests/reality/test_recorded.py and test_diagnose.py, tests/e2e/test_recorded.py.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "recorded"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gangplan"
#: The parts of an object's metadata that a sample keeps.
_KEPT = ("name", "namespace", "labels", "ownerReferences", "deletionTimestamp")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d([.,]\d+)?(Z?)")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: Longer logs are a program's own noise; the sample keeps both ends.
_LINES = 60


@dataclass(frozen=True)
class Sample:
    """What was written, the cause that must come first, the program and version, and how it was made."""

    name: str
    cause: str
    by: str
    how: str
    log: str = ""
    objects: list[dict[str, Any]] = field(default_factory=list)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines in block style."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def neutral(text: str, places: Mapping[Path, str] | None = None) -> str:
    """Return a log without traces of the machine: its folders, times and uids."""
    own = {**(places or {}), Path(sys.base_prefix): "/opt/python", Path(__file__).parents[2]: "/src"}
    for place, name in sorted(own.items(), key=lambda one: -len(str(one[0]))):
        if str(place) not in ("/", "/usr"):
            text = text.replace(str(place), name)
    text = re.sub(rf"{re.escape(str(CACHE))}/[^/\s]+/[^/\s]+/usr/local", "/usr/local", text)
    text = _UID.sub("00000000-0000-0000-0000-000000000000", _TIME.sub(r"2026-01-01\g<1>00:00:00\g<3>", text))
    lines = [re.sub(r"[^\x09\x20-\uffff]", "", line).rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES // 2], "...", *lines[-_LINES // 2 :]]
    return "\n".join(lines) + "\n"


def trimmed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a cluster's object that a diagnosis reads."""
    found = {key: body[key] for key in ("apiVersion", "kind")}
    found["metadata"] = {key: body["metadata"][key] for key in _KEPT if key in body["metadata"]}
    found |= {
        key: body[key] for key in ("involvedObject", "reason", "message", "type", "status") if key in body
    }
    spec = body.get("spec") or {}
    if body["kind"] == "Pod":
        kept = [
            {key: one[key] for key in ("name", "image", "resources") if key in one}
            for one in spec["containers"]
        ]
        found["spec"] = {"containers": kept, **{key: spec[key] for key in ("nodeName",) if key in spec}}
    elif "active" in spec or "suspend" in spec:
        found["spec"] = {key: spec[key] for key in ("active", "suspend") if key in spec}
    text = json.dumps(found, sort_keys=True)
    text = _UID.sub("00000000-0000-0000-0000-000000000000", _TIME.sub("2026-01-01T00:00:00Z", text))
    made: dict[str, Any] = json.loads(text)
    return made


def keep(group: str, sample: Sample) -> None:
    """Write a sample into its group, replacing an earlier one with the same name."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{group}.yaml"
    others = [one for one in read(path) if one.name != sample.name] if path.exists() else []
    rows = [asdict(one) for one in sorted([*others, sample], key=lambda one: one.name)]
    rows = [{key: value for key, value in row.items() if value} for row in rows]
    path.write_text(yaml.dump(rows, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True))


def read(path: Path) -> list[Sample]:
    """Return the samples of a file."""
    return [Sample(**row) for row in yaml.safe_load(path.read_text()) or ()]


def samples() -> list[tuple[str, Sample]]:
    """Return all samples, each with its group."""
    return [(path.stem, one) for path in sorted(FOLDER.glob("*.yaml")) for one in read(path)]


def save(folder: Path, sample: Sample) -> Path:
    """Write a sample as the files that a user would have saved."""
    if sample.objects:
        body = {"apiVersion": "v1", "kind": "List", "items": sample.objects}
        (folder / "objects.json").write_text(json.dumps(body, indent=4))
    if sample.log:
        (folder / "run.log").write_text(sample.log)
    return folder


def causes_of(many: Iterable[Sample]) -> set[str]:
    """Return the causes of samples."""
    return {one.cause for one in many}
