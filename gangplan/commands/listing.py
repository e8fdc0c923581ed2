"""`gangplan list`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.contents.allowed import TableRow
from gangplan.contents.files import WorkspaceFiles
from gangplan.contents.tables import LISTING_TABLES
from gangplan.errors import Exit, UserError
from gangplan.report.escape import escape_own_line
from gangplan.spec.near import suggest_nearest

POLICIES = "policies"
NAMES = (*LISTING_TABLES, POLICIES)
_FORMATS = ("table", "json")
# What a job of one team may name, in the order in which people need it.
_OF_TEAM = ("images", "claims", "secrets", "pools", "queues", "endpoints", "limits")
# The most characters of a cell, except the last one of its line.
_WIDEST = 40


def print_listing(
    root: Path, what: str | None, teams: Sequence[str], clusters: Sequence[str], format: str
) -> Exit:
    """Print what a workspace has of one kind; without a kind, counts of all, or everything that one team may
    use.

    Raises UserError.
    """
    if format not in _FORMATS:
        raise UserError(f"there is no format '{format}'", "Formats: table, json.")
    if what is not None and what not in NAMES:
        raise UserError(f"there is nothing to list by the name '{what}'", suggest_nearest(what, NAMES))
    files = WorkspaceFiles(root, tuple(teams), tuple(clusters))
    if what is None and len(teams) == 1:
        _print_listing_tables({name: _list_table_rows(name, files) for name in _OF_TEAM}, format)
        return _print_note_about_unread_files(files)
    if what is None:
        rows: list[TableRow] = [{"list": name, "count": len(_list_table_rows(name, files))} for name in NAMES]
    else:
        rows = _list_table_rows(what, files)
    if format == "json":
        sys.stdout.write(json.dumps({what or "lists": rows}, indent=2, ensure_ascii=False) + "\n")
    elif rows:
        sys.stdout.write(format_terminal_table(rows))
    else:
        more = "; gangplan render makes them of specs" if what == "runs" else ""
        sys.stderr.write(f"there are no {what}{_describe_listing_scope(teams, clusters)}{more}\n")
    return _print_note_about_unread_files(files)


def _print_listing_tables(tables: Mapping[str, list[TableRow]], format: str) -> None:
    """Print several tables, each below its name, and name those without rows in one line at the end."""
    if format == "json":
        sys.stdout.write(json.dumps(tables, indent=2, ensure_ascii=False) + "\n")
        return
    found = [
        f"{name}\n{_indent_table_lines(format_terminal_table(rows))}" for name, rows in tables.items() if rows
    ]
    none = [name for name, rows in tables.items() if not rows]
    sys.stdout.write("\n".join([*found, *([f"no {', '.join(none)}\n"] if none else [])]))


def _indent_table_lines(text: str) -> str:
    """Indent lines by two columns."""
    return "".join(f"  {line}\n" for line in text.splitlines())


def _print_note_about_unread_files(files: WorkspaceFiles) -> Exit:
    """Print a note if a file could not be read."""
    if files.unread:
        first = escape_own_line(files.unread[0])
        count = len(files.unread) - 1
        more = f" and {count} other file{'' if count == 1 else 's'}" if count else ""
        sys.stderr.write(f"note: {first}{more} cannot be read; `gangplan validate` says why\n")
    return Exit.CLEAN


def _list_table_rows(what: str, files: WorkspaceFiles) -> list[TableRow]:
    return _list_policies_in_force(files) if what == POLICIES else list(LISTING_TABLES[what](files))


def _list_policies_in_force(files: WorkspaceFiles) -> list[TableRow]:
    """Return the policies in force on the selected clusters: their packs decide, not only their files."""
    from gangplan.commands.policy import format_policy_action_column, list_policy_rows, resolve_policy_actions
    from gangplan.workspace import load_workspace

    workspace = load_workspace(files.root)
    names = [name for name in files.clusters if name in workspace.clusters]
    actions, _ = resolve_policy_actions(workspace, names)
    return [
        {
            "policy": row["policy"],
            "pack": row["pack"] or "(own)",
            **{name: format_policy_action_column(row, name) or None for name in names},
            "title": row["title"],
        }
        for row in list_policy_rows(workspace, actions)
        if row["actions"] or not row["pack"]
    ]


def _describe_listing_scope(teams: Sequence[str], clusters: Sequence[str]) -> str:
    words = [f"of {' and '.join(teams)}"] if teams else []
    words += [f"on {' and '.join(clusters)}"] if clusters else []
    return f" {' '.join(words)}" if words else ""


def format_terminal_table(rows: Sequence[TableRow], widest: int = _WIDEST) -> str:
    """Format rows as columns below their names, without columns that are empty everywhere.

    A cell has at most `widest` letters, except the last one of a line.
    """
    names = [name for name in rows[0] if any(row[name] not in (None, "", [], False) for row in rows)]
    lines = [
        names,
        *(
            [_format_list_command_cell(row[name], name == names[-1], widest) for name in names]
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = [
        all(isinstance(row[name], int | None) and row[name] is not True for row in rows) for name in names
    ]
    text = []
    for line in lines:
        cells = (
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numbers, strict=True)
        )
        text.append(escape_own_line("  ".join(cells).rstrip()) + "\n")
    return "".join(text)


def _format_list_command_cell(value: Any, is_last: bool, widest: int) -> str:
    if value is None or value == [] or value is False:
        return "-"
    if value is True:
        return "yes"
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if is_last or len(text) <= widest else f"{text[: widest - 3]}..."
