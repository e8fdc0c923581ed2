"""Clusters for people and machines: what is installed, and what other versions would change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gangplan.records import dataclass
from gangplan.report.upgrade import ABSENT_TEXT, Delta, Upgrade
from gangplan.resolve.inventory import InstalledComponent

# How many runs are listed by name; the rest is a number.
MOST_RUNS = 10
MOST_LETTERS = 60


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One cluster: its components, and for other versions the components then and what they change."""

    name: str
    components: tuple[InstalledComponent, ...]
    target: tuple[InstalledComponent, ...] = ()
    upgrade: Upgrade | None = None


def render_clusters(reports: Sequence[ClusterReport]) -> str:
    """Return a block of text per cluster."""
    return "\n".join(_render_cluster_block(report) for report in reports)


def build_clusters_json(reports: Sequence[ClusterReport]) -> list[dict[str, Any]]:
    """Return the clusters as data."""
    return [
        {
            "name": report.name,
            "components": [asdict(component) for component in report.components],
            "target": [asdict(component) for component in report.target],
            "upgrade": _build_cluster_upgrade_json(report.upgrade) if report.upgrade else None,
        }
        for report in reports
    ]


def _build_cluster_upgrade_json(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "objects": {
            "same": upgrade.same,
            "changed": upgrade.changed,
            "added": upgrade.added,
            "removed": upgrade.removed,
        },
        "differences": [asdict(delta) for delta in upgrade.deltas],
        "renamed": [asdict(run) for run in upgrade.renamed],
    }


def _render_cluster_block(report: ClusterReport) -> str:
    lines = [report.name, *_render_component_table(report.components)]
    if report.target:
        lines += ["", f"{report.name} with {_describe_component_changes(report)}"]
        lines += (
            _render_cluster_upgrade_lines(report.upgrade)
            if report.upgrade
            else ["  not compared: see the findings"]
        )
    return "\n".join(lines) + "\n"


def _render_component_table(components: Sequence[InstalledComponent]) -> list[str]:
    """Return a line per component, and one for each further thing that it decides."""
    rows = [("component", "version", "supported", "what it decides")]
    for one in components:
        first, *more = one.decides or ("",)
        rows.append((one.name, one.stated or "-", one.state, first))
        rows += [("", "", "", line) for line in more]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [
        "  " + "  ".join([*(row[column].ljust(widths[column]) for column in range(3)), row[3]]).rstrip()
        for row in rows
    ]


def _describe_component_changes(report: ClusterReport) -> str:
    """Return the components that differ: `Trainer 2.3 (was 2.2.1)`."""
    stated = {one.key: one.stated for one in report.components}
    found = [
        f"{one.name} {one.stated or 'as it comes'} (was {stated.get(one.key) or 'not stated'})"
        for one in report.target
        if one.stated != stated.get(one.key, "")
    ]
    return ", ".join(found) or "the same versions"


def _render_cluster_upgrade_lines(upgrade: Upgrade) -> list[str]:
    counts = [
        (upgrade.changed, "changed"),
        (upgrade.added, "added"),
        (upgrade.removed, "removed"),
        (upgrade.same, "the same"),
    ]
    lines = ["  objects: " + ", ".join(f"{count} {word}" for count, word in counts if count)]
    kind = ""
    for delta in upgrade.deltas:
        if delta.kind != kind:
            kind = delta.kind
            lines.append(f"  {kind}")
        lines.append("    " + _describe_object_delta(delta))
    return lines + _render_renamed_run_lines(upgrade)


def _describe_object_delta(delta: Delta) -> str:
    where = f"{delta.count} object{'s' if delta.count != 1 else ''}, {'first' if delta.count > 1 else 'in'} {delta.example}"
    if not delta.path:
        return f"{'added' if delta.new else 'removed'}  ({where})"
    if delta.values > 1:
        return f"{delta.path}: {delta.values} different changes, such as {format_value_on_one_line(delta.old)} -> {format_value_on_one_line(delta.new)}  ({where})"
    return f"{delta.path}: {format_value_on_one_line(delta.old)} -> {format_value_on_one_line(delta.new)}  ({where})"


def format_value_on_one_line(value: Any) -> str:
    """Return a value on one line, shortened."""
    if value == ABSENT_TEXT:
        return ABSENT_TEXT
    if isinstance(value, str) and "\n" in value:
        return f"a text of {value.count(chr(10))} lines"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."


def _render_renamed_run_lines(upgrade: Upgrade) -> list[str]:
    again = upgrade.trains_again
    if not again:
        return ["  no run gets a new name: nothing would train again"]
    count = f"{len(again)} run{'s get' if len(again) != 1 else ' gets'} a new name and would train again:"
    lines = [f"  {count}"]
    lines += [f"    {run.team}/{run.job}: {run.old} -> {run.new}" for run in again[:MOST_RUNS]]
    if len(again) > MOST_RUNS:
        lines.append(f"    and {len(again) - MOST_RUNS} more")
    return [
        *lines,
        "  To keep them as they were rendered, as far as these versions accept that: keepRuns: true in the cluster's file.",
    ]
