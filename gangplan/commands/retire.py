"""`gangplan retire`."""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from gangplan.api.checks import resolve_day
from gangplan.commands.common import choose_exit_code, format_plural, print_findings_to_stderr
from gangplan.emit.lock import lock_state_folder
from gangplan.emit.tree import STATE_FOLDER
from gangplan.errors import Exit, ToolError, UserError
from gangplan.fixes.file import FixedFile
from gangplan.fixes.states import set_state_fields, set_sweep_lists
from gangplan.fixes.write import read_fixable, write_fixed
from gangplan.model.duration import parse_duration_to_seconds
from gangplan.model.statuses import read_statuses
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.pipeline.retire import DAY_S, Retirement, Retirements, SpecChange, plan_retirements
from gangplan.pipeline.retire_choice import RunSelection
from gangplan.workspace import RENDERED

_WORDS = {
    "record": "{run} on {cluster}: {why}; becomes a record, by {source}",
    "remove": "{run} on {cluster}: {why}; leaves the cluster, by {source}",
    "delete": "{run} on {cluster}: {why}; kubectl delete trainjob -n {namespace} {name}",
    "left": "{run} on {cluster}: {why}; nothing is done",
}


def run_retire_command(
    request: Request,
    is_superseded: bool,
    finished: Path | None,
    older_than: str | None,
    today: str | None,
    format: str,
    is_written: bool,
) -> Exit:
    """Print the next step of every run that is over, and with `is_written` write it into the specs.

    Without any selection, superseded runs are over. Raises UserError.
    """
    if format not in ("text", "json"):
        raise UserError(f"there is no format '{format}'", "Formats: text, json.")
    chosen = _build_retire_selection_from_flags(request, is_superseded, finished, older_than, today)
    # A spec's state applies to all of its clusters, so the runs of all are considered.
    result = preview_render(replace(request, clusters=(), is_brief=True))
    if result.has_errors:
        print_findings_to_stderr(result.findings)
        return choose_exit_code(result.findings)
    if finished and not chosen.cluster:
        chosen = _select_only_cluster(chosen, sorted(result.workspace.clusters))
    found = plan_retirements(request, result, chosen)
    if result.workspace.sweeps:
        from gangplan.pipeline.retire_sweeps import add_sweep_retirements  # few workspaces have sweeps

        add_sweep_retirements(request, result, chosen, found)
    if chosen.statuses is not None and any(run.unit.job.is_dated for run in result.runs):
        from gangplan.pipeline.repeat import add_dated_runs_to_retire  # few workspaces have schedules

        add_dated_runs_to_retire(result.runs, chosen, found)
    texts = {one.source: _build_spec_for_retire_command(request.root, one) for one in found.changes.values()}
    if format == "json":
        sys.stdout.write(json.dumps(_build_document_for_retire_command(found), indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{_describe_step_of_retire_command(step)}\n" for step in found.steps))
    if is_written:
        _write_specs_for_retire_command(request.root, found.changes.values(), texts)
    sys.stderr.write(_describe_retire_outcome(found, is_written))
    return Exit.CLEAN


def _build_retire_selection_from_flags(
    request: Request, is_superseded: bool, finished: Path | None, older_than: str | None, today: str | None
) -> RunSelection:
    day = datetime.datetime.combine(resolve_day(today), datetime.time(23, 59, 59), datetime.UTC)
    older_s = None
    if older_than is not None:
        older_s = _parse_older_than_flag(older_than)
    statuses = read_statuses(finished) if finished else None
    if statuses is not None and len(request.clusters) > 1:
        raise UserError("statuses cover one cluster, but several are named", "Name one with --cluster NAME.")
    return RunSelection(
        is_superseded or (finished is None and older_than is None),
        statuses,
        request.clusters[0] if len(request.clusters) == 1 else "",
        older_s,
        int(day.timestamp()),
        request.clusters,
    )


def _parse_older_than_flag(text: str) -> int:
    if text.endswith("d") and text[:-1].isdigit():
        return int(text[:-1]) * DAY_S
    try:
        return parse_duration_to_seconds(text)
    except ValueError:
        raise UserError(f"--older-than: '{text}' is not a duration", "Write --older-than 30d.") from None


def _select_only_cluster(chosen: RunSelection, clusters: list[str]) -> RunSelection:
    if len(clusters) != 1:
        raise UserError(
            f"statuses cover one cluster, but there are {len(clusters)}", "Name it with --cluster NAME."
        )
    return replace(chosen, cluster=clusters[0])


def _build_spec_for_retire_command(root: Path, change: SpecChange) -> FixedFile | None:
    """Return the spec's new text; None if it is removed. Raises UserError if only a person can change it."""
    if change.is_removed:
        return None
    before = read_fixable(root, change.source)
    after = None
    if before is not None and change.lists:
        after = set_sweep_lists(before.decode("utf-8"), change.lists)
    elif before is not None:
        after = set_state_fields(before.decode("utf-8"), change.state, change.retired)
    if before is None or after is None:
        state = f"state: {change.state}, " if change.state else ""
        lists = change.lists or {"retired": change.retired}
        told = ", ".join(f"{name}: [{', '.join(names)}]" for name, names in lists.items())
        raise UserError(f"{change.source} cannot be changed automatically", f"Write {state}{told} into it.")
    return FixedFile(change.source, before, after.encode("utf-8"))


def _write_specs_for_retire_command(
    root: Path, changes: Iterable[SpecChange], texts: dict[str, FixedFile | None]
) -> None:
    """Write the specs, remove those whose runs are gone, and restore the files of runs that become records.

    Raises ToolError at the first spec that cannot be written, UserError for links.
    """
    for change in changes:
        text = texts[change.source]
        _restore_rendered_files_for_retire_command(root, change.files)
        if text is not None:
            if why := write_fixed(root, text):
                raise ToolError(f"{change.source}: {why}; nothing else was written", why.help)
        elif read_fixable(root, change.source) is not None:  # a file of the workspace, not a link
            os.unlink(root / change.source)


def _restore_rendered_files_for_retire_command(root: Path, files: Mapping[str, str]) -> None:
    """Restore files in `rendered/` that Git had there. Raises UserError for links."""
    tree, state = root / RENDERED, root / STATE_FOLDER
    for path, text in files.items():
        file = tree / path
        with lock_state_folder(state):
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.parent.resolve() != (root.resolve() / RENDERED / path).parent:
                raise UserError(
                    f"{RENDERED}/{path} would lead elsewhere: there is a link", "Remove the link."
                )
            if not os.path.lexists(file):
                aside = state / "retired"
                aside.write_text(text, encoding="utf-8")
                os.replace(aside, file)


def _describe_step_of_retire_command(step: Retirement) -> str:
    return _WORDS[step.action].format(
        run=f"{step.team}/{step.run}",
        cluster=step.cluster,
        why=step.why,
        source=step.source,
        namespace=step.namespace,
        name=step.run,
    )


def _build_document_for_retire_command(found: Retirements) -> dict[str, object]:
    steps = [{name: getattr(step, name) for name in Retirement.__slots__} for step in found.steps]
    changes = [
        {"source": one.source, "state": one.state, "retired": list(one.retired), "isRemoved": one.is_removed}
        for one in found.changes.values()
    ]
    return {"version": 1, "steps": steps, "changes": changes}


def _describe_retire_outcome(found: Retirements, is_written: bool) -> str:
    """Return what was done, and what to do next."""
    records = sum(step.action == "record" for step in found.steps)
    removed = sum(step.action == "remove" for step in found.steps)
    deleted = sum(step.action == "delete" for step in found.steps)
    if not found.changes and deleted:
        return f"{format_plural(deleted, 'run')} to delete: no engine tracks runs that a schedule made\n"
    if not found.changes:
        return "no run is over, as far as it was asked; nothing to do\n"
    done = f"{format_plural(records, 'run')} to end, {format_plural(removed, 'record')} to remove"
    deleted_specs = sorted(one.source for one in found.changes.values() if one.is_removed)
    written = len(found.changes) - len(deleted_specs)
    if not is_written:
        parts = [f"changes {format_plural(written, 'spec')}"] if written else []
        parts += [f"deletes {', '.join(deleted_specs)}"] if deleted_specs else []
        return f"{done}; --write {' and '.join(parts)}\n"
    after = "; once that is merged and synced, gangplan retire removes the records" if records else ""
    parts = [f"{format_plural(written, 'spec')} written"] if written else []
    parts += [f"{', '.join(deleted_specs)} deleted"] if deleted_specs else []
    return f"{done}: {', '.join(parts)}. Run gangplan render and commit{after}\n"
