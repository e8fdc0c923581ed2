"""The specs that depend on another file: on a cluster, a team, the catalog, a template or a waiver."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from gangplan.records import dataclass
from gangplan.source import MAX_DOCUMENT_BYTES, load_document
from gangplan.spec.listing import FILES_FOLDER
from gangplan.workspace import OVERLAYS, SPECS

# That many specs are judged within two seconds on one core, before and after a change.
MOST = 500


@dataclass(frozen=True, slots=True)
class DependentSpecs:
    """Specs to judge with a file, by their paths, and the number of others that are not looked at."""

    files: tuple[str, ...] = ()
    left: int = 0


def find_dependent_specs(root: Path, file: str, format: str, before: str, after: str) -> DependentSpecs:
    """Find the specs that may depend on what changes in a file; in a large workspace, some of each team."""
    found = _read_team_specs(root, file, before, after)
    if format == "template":
        found = {one: data for one, data in found.items() if b"template:" in data}
    elif format == "catalog" and len(found) > MOST:
        names = "|".join(map(re.escape, _find_changed_entries(file, before, after, "images")))
        # Without an image in the file, a template or the team's defaults name it.
        named = re.compile(rf"\b(?:{names})\b|\btemplate:".encode())
        found = {one: data for one, data in found.items() if named.search(data) or b"image:" not in data}
    seen: Counter[str] = Counter()
    ranked = []
    for one in sorted(found):
        team = one.split("/")[1]
        seen[team] += 1
        ranked.append((seen[team], one))
    files = tuple(sorted(one for _, one in sorted(ranked)[:MOST]))
    return DependentSpecs(files, len(ranked) - len(files))


def _read_team_specs(root: Path, file: str, before: str, after: str) -> dict[str, bytes]:
    """Read the spec files of the teams that a file is for, except links and files that are too large."""
    parts = file.split("/")
    teams = [path.name for path in sorted((root / SPECS).glob("*")) if path.is_dir()]
    if parts[0] == SPECS:
        teams = [parts[1]]
    elif parts[0] == OVERLAYS:
        mine = {*_read_yaml_block(file, before, "teams"), *_read_yaml_block(file, after, "teams")}
        teams = [one for one in teams if one in mine]
    found = {}
    for team in teams:
        for path in sorted((root / SPECS / team).rglob("*.yaml")):
            inner = path.relative_to(root / SPECS / team).parts
            if inner == ("team.yaml",) or FILES_FOLDER in inner[:-1] or path.relative_to(root) == Path(file):
                continue
            if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_DOCUMENT_BYTES:
                continue
            data = path.read_bytes()
            if not re.search(rb"^kind:[ \t]*[\"']?JobTemplate\b", data, re.MULTILINE):
                found[path.relative_to(root).as_posix()] = data
    return found


def _find_changed_entries(file: str, before: str, after: str, block: str) -> list[str]:
    """Return the entries of a block that differ between two texts of a file."""
    old, new = _read_yaml_block(file, before, block), _read_yaml_block(file, after, block)
    return sorted(str(name) for name in {*old, *new} if old.get(name) != new.get(name))


def _read_yaml_block(file: str, text: str, name: str) -> dict[str, Any]:
    document, _ = load_document(text.encode(), file)
    value = document.value.get(name) if document is not None and isinstance(document.value, dict) else None
    return value if isinstance(value, dict) else {}
