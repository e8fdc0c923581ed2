"""`gangplan diagnose`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from gangplan.commands.connecting import ConnectionFlags
from gangplan.commands.outfile import OutFile, resolve_output_file_flag
from gangplan.diagnose.evidence import Evidence
from gangplan.diagnose.read import read_evidence
from gangplan.diagnose.verdict import RunDiagnosis, diagnose_runs
from gangplan.errors import Exit, UserError
from gangplan.report.diagnosis import build_diagnosis_json, render_diagnosis_markdown, render_diagnosis_text
from gangplan.workspace import suggest_nearest

_FORMATS = ("text", "json", "markdown")


def run_diagnose_command(
    named: Sequence[str],
    run: str,
    formats: Sequence[str],
    root: Path | None = None,
    clusters: Sequence[str] = (),
    teams: Sequence[str] = (),
    server: ConnectionFlags | None = None,
) -> Exit:
    """Print what is wrong with runs: from saved files, and with `server` for a run as its cluster has it.

    Returns CLEAN if nothing is wrong, else FINDINGS. Raises UserError if there is nothing to look at, and
    ToolError.
    """
    outputs = [_parse_diagnosis_output(one) for one in formats]
    run, evidence = _collect_run_evidence_from_flags(named, run, root, clusters, teams, server)
    found = diagnose_runs(evidence, run)
    if not found:
        known = sorted({one.name for one in diagnose_runs(evidence) if one.name})
        raise UserError(
            f"nothing is about a run '{run}'",
            suggest_nearest(run, known)
            or (f"There are: {', '.join(known[:8])}." if known else "No run is named."),
        )
    for name, file in outputs:
        said = _format_diagnose_command_output(name, found, evidence)
        if file is not None:
            file.write(said)
        else:
            sys.stdout.write(said)
    return Exit.CLEAN if all(one.is_well for one in found) else Exit.FINDINGS


def _collect_run_evidence_from_flags(
    named: Sequence[str],
    run: str,
    root: Path | None,
    clusters: Sequence[str],
    teams: Sequence[str],
    server: ConnectionFlags | None,
) -> tuple[str, Evidence]:
    """Return the evidence, and the name of the run; a spec stands for its current run."""
    found = Evidence((), ())
    if server is not None:
        if not run:
            raise UserError("--server needs to know which run", "Add --run RUN, as gangplan status shows it.")
        from gangplan.commands.diagnose_live import fetch_evidence_for_diagnose_command

        run, found = fetch_evidence_for_diagnose_command(run, root, clusters, teams, server)
    elif not named:
        raise UserError(
            "there is nothing to look at",
            "Name files: what kubectl get -o json says, and logs; or ask the cluster: --server --run RUN.",
        )
    if named:
        saved = read_evidence(named, _open_stdin_stream)
        skipped = found.skipped + saved.skipped
        found = Evidence(found.things + saved.things, found.logs + saved.logs, skipped, saved.broken)
    if not found.things and not found.logs:
        if found.broken:
            raise UserError(found.broken[0], "Save it again; it may have been cut off.")
        raise UserError(
            f"neither objects nor logs in {', '.join(named) or 'what the cluster has'}",
            "Save objects with kubectl get -o json, and logs with kubectl logs --prefix.",
        )
    return run, found


def _format_diagnose_command_output(name: str, found: Sequence[RunDiagnosis], evidence: Evidence) -> str:
    if name == "json":
        return (
            json.dumps(
                build_diagnosis_json(found, evidence.skipped, evidence.broken),
                indent=2,
                ensure_ascii=False,
            )
            + "\n"
        )
    if name == "markdown":
        return render_diagnosis_markdown(found, evidence.skipped, evidence.broken)
    return render_diagnosis_text(found, evidence.skipped, evidence.broken)


def _parse_diagnosis_output(text: str) -> tuple[str, OutFile | None]:
    name, equals, file = text.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    return name, resolve_output_file_flag(file, Path.cwd(), "the diagnosis") if equals else None


def _open_stdin_stream() -> BinaryIO:
    return sys.stdin.buffer
