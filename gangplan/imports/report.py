"""Report the outcome of an import as text, data and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gangplan.imports.account import LEAF_STATES
from gangplan.imports.batch import Batch, ImportedSource
from gangplan.imports.equivalence import ComparedFact, Equivalence
from gangplan.report.escape import escape_markdown, escape_own_line, shorten_text

VERSION = 1
_MOST = 120


def render_import_as_text(batch: Batch, with_account: bool, is_applied: bool) -> str:
    """Return the report for people: each source, how far its run matches, differences; then suggestions."""
    lines: list[str] = []
    for one in batch.imported:
        lines += _format_imported_source(one, with_account)
    if batch.suggestions:
        lines.append(
            "added to the workspace:" if is_applied else "the workspace must gain (--apply writes it):"
        )
        for suggestion in batch.suggestions:
            lines.append(f"  {suggestion.file} ({suggestion.owner}; {suggestion.where}): {suggestion.why}")
            lines += [f"    {line}" for line in suggestion.text().splitlines()]
    if len(batch.imported) + batch.refused > 1:
        lines.append(_summarize_import(batch))
    return "".join(f"{escape_own_line(line)}\n" for line in lines)


def _summarize_import(batch: Batch) -> str:
    """Return one line about all sources: how many, how many need a person, and the run that matches least."""
    count = len(batch.imported)
    asking = sum(bool(one.draft.questions) for one in batch.imported)
    parts = [f"{count} imported", f"{asking} with questions", f"{batch.refused} refused"]
    runs = [
        (same.percent, one.draft.file, cluster)
        for one in batch.imported
        for cluster, same in one.runs.items()
    ]
    if runs:
        percent, file, cluster = min(runs)
        parts.append(f"lowest match {percent}% ({file} on {cluster})")
    return f"{count + batch.refused} sources: {', '.join(parts)}"


def _format_imported_source(one: ImportedSource, with_account: bool) -> Iterator[str]:
    work = one.draft.work
    yield f"{one.draft.file}: from {work.kind} {work.name}, {work.place()}"
    counts = Counter(entry.state for entry in work.entries())
    yield "  fields: " + ", ".join(f"{counts[state]} {state}" for state in LEAF_STATES)
    if with_account:
        for entry in work.entries():
            what = entry.to if entry.state == "mapped" else entry.why
            yield f"    {entry.where}: {entry.state}: {shorten_text(f'{entry.name}: {entry.value!r}', _MOST)}: {what}"
        for note in work.notes:
            yield f"    dropped from the command: {shorten_text(note, _MOST)}"
    for cluster, same in one.runs.items():
        yield f"  on {cluster}: {same.percent}% of what the source says is so in the run"
        for row in same.differences:
            yield f"    {row.area}: {row.what}: {_format_compared_value(row.source)} -> {_format_compared_value(row.run)}{f' ({row.why})' if row.why else ''}"
        if same.added:
            yield f"    the run also has: {', '.join(f'{row.what} {_format_compared_value(row.run)}' for row in same.added)}"


def _format_compared_value(value: str | None) -> str:
    return "nothing" if value is None else shorten_text(value, _MOST) if value else "''"


def build_import_document(batch: Batch) -> dict[str, Any]:
    """Return the report as data, in the form of gangplan.report.import_schema."""
    return {
        "version": VERSION,
        "command": "import",
        "imported": [_convert_imported_source_to_data(one) for one in batch.imported],
        "suggestions": [
            {
                "file": one.file,
                "owner": one.owner,
                "path": list(one.path),
                "value": list(one.value) if isinstance(one.value, tuple) else one.value,
                "why": one.why,
                "where": str(one.where),
                **({"open": True} if one.is_open else {}),
            }
            for one in batch.suggestions
        ],
    }


def _convert_imported_source_to_data(one: ImportedSource) -> dict[str, Any]:
    work = one.draft.work
    return {
        "spec": one.draft.file,
        "kind": work.kind,
        "name": work.name,
        "where": str(work.place()),
        "text": one.text,
        "isRight": one.is_right,
        "account": [
            {
                "path": entry.name,
                "file": entry.where.file,
                "line": entry.where.line,
                "column": entry.where.column,
                "value": entry.value
                if isinstance(entry.value, str | int | bool | None)
                else str(entry.value),
                "state": entry.state,
                "to": entry.to,
                "why": entry.why,
            }
            for entry in work.entries()
        ],
        "commandNotes": work.notes,
        "runs": {
            name: {"percent": same.percent, "rows": list(map(_convert_compared_fact_to_data, same.rows))}
            for name, same in one.runs.items()
        },
    }


def _convert_compared_fact_to_data(row: ComparedFact) -> dict[str, Any]:
    return {
        "area": row.area,
        "what": row.what,
        "source": row.source,
        "run": row.run,
        "isSame": row.is_same,
        "why": row.why,
    }


def render_import_as_markdown(batch: Batch) -> str:
    """Return the report for a pull request: a table of sources, and the differences of each."""
    lines = ["## Imported jobs", "", "| source | spec | same | asked |", "|---|---|---|---|"]
    for one in batch.imported:
        asked = sum(entry.state == "asked" for entry in one.draft.work.entries())
        share = ", ".join(f"{same.percent} % on {name}" for name, same in one.runs.items()) or "not rendered"
        source = f"{one.draft.work.kind} {one.draft.work.name}"
        lines.append(
            f"| {escape_markdown(source)} | {escape_markdown(one.draft.file)} | {escape_markdown(share)} | {asked} |"
        )
    for one in batch.imported:
        for cluster, same in one.runs.items():
            lines += _render_table_of_import_differences(f"{one.draft.name} on {cluster}", same)
    if batch.suggestions:
        lines += ["", "### The workspace must gain", ""]
        for suggestion in batch.suggestions:
            lines += [
                f"{escape_markdown(suggestion.file)} ({suggestion.owner}): {escape_markdown(suggestion.why)}",
                "",
                "```yaml",
            ]
            lines += [*suggestion.text().rstrip().splitlines(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _render_table_of_import_differences(title: str, same: Equivalence) -> list[str]:
    lines = ["", f"### {escape_markdown(title)}: {same.percent} % the same", ""]
    if not same.differences:
        return [*lines, "Nothing of the source differs."]
    lines += ["| what | source | run | why |", "|---|---|---|---|"]
    for row in same.differences:
        cells = (
            f"{row.area}: {row.what}",
            _format_compared_value(row.source),
            _format_compared_value(row.run),
            row.why,
        )
        lines.append("| " + " | ".join(map(escape_markdown, cells)) + " |")
    return lines
