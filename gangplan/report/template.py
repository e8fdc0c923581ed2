"""The template that a run is made from, and what was measured elsewhere for runs like it: rows of a plan,
and data."""

from __future__ import annotations

from typing import Any

from gangplan.model.trial import FromTemplate


def build_template_plan_rows(template: FromTemplate, workers: int) -> list[tuple[str, str]]:
    """Return `horovod-large@2 (size=8)`, and the efficiency to expect with this number of workers."""
    values = " ".join(f"{name}={text}" for name, text in template.values)
    rows = [("template", f"{template.label} ({values})" if values else template.label)]
    if expected := template.expected_of(workers):
        rows.append(("expected", f"scaling efficiency {expected.efficiency}: {expected.source}"))
    return rows


def build_template_json(template: FromTemplate, workers: int) -> dict[str, Any]:
    """Return the template as data."""
    name, _, version = template.label.partition("@")
    found: dict[str, Any] = {
        "name": name,
        "version": int(version),
        "file": template.file,
        "parameters": dict(template.values),
    }
    if expected := template.expected_of(workers):
        found["expected"] = {"efficiency": expected.efficiency, "source": expected.source}
    return found
