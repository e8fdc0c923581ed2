"""`gangplan import`: sources are read, checked in a copy of the workspace, reported and written."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gangplan.commands.absent import build_missing_team_error
from gangplan.commands.common import choose_exit_code, format_plural, print_findings_to_stderr
from gangplan.commands.outfile import OutFile, resolve_output_file_flag
from gangplan.commands.teams_of import resolve_team_flag
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding
from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.report import build_import_document, render_import_as_markdown, render_import_as_text
from gangplan.imports.write import write_imported_files
from gangplan.records import dataclass
from gangplan.spec.root import SPECS, locate_workspace_root
from gangplan.workspace import load_workspace, suggest_nearest

# Equal findings that are shown one by one; the last of them counts the others.
_MOST_REPEATS = 3
_FORMATS = ("text", "json", "markdown")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The values of the flags."""

    kind: str
    workspace: Path | None
    team: str | None
    image: str
    command: str
    digests: Sequence[str]
    filled: Sequence[str]
    has_licence: bool
    applies: bool
    keeps_going: bool
    is_dry: bool
    with_account: bool
    formats: Sequence[str]
    is_quiet: bool


def run_import_command(named: Sequence[Path], options: ImportOptions) -> Exit:
    """Import everything that is named. Raises UserError for invalid flags and files."""
    root = locate_workspace_root(options.workspace)
    outputs = [_parse_import_output(text, root) for text in options.formats]
    batch = read_import_batch(
        SOURCE_KINDS[options.kind],
        named,
        _resolve_import_target_from_flags(root, options),
        _parse_name_value_flags("--set", options.filled),
    )
    judge_import_batch(batch, root)
    findings = batch.everything
    print_findings_to_stderr(_fold_repeated_import_findings(findings))
    good = [one for one in batch.imported if one.is_right]
    is_whole = not any(one.is_error for one in findings)
    writes = bool(good) and (is_whole or options.keeps_going) and not options.is_dry
    if writes:
        after = batch.after if options.applies else {}
        new = {one.draft.file: one.text for one in good if not one.earlier}
        write_imported_files(root, new, batch.before, after)
    _write_import_report(batch, outputs, options, writes)
    is_data = any(name == "json" and file is None for name, file in outputs)
    if options.is_dry:
        for one in () if is_data else batch.imported:  # also those with errors, to be corrected by hand
            sys.stdout.write(f"# {one.draft.file}\n{one.text}")
    elif not writes:
        errors = sum(one.is_error for one in findings)
        shown = "; -n prints the specs" if batch.imported else ""
        sys.stderr.write(f"nothing was written: {format_plural(errors, 'error')}{shown}\n")
    elif not options.is_quiet:
        earlier = sum(bool(one.earlier) for one in good)
        known = f"; {format_plural(earlier, 'spec')} of an earlier import stayed" if earlier else ""
        said = sys.stderr if is_data else sys.stdout
        said.write(
            f"wrote {format_plural(len(good) - earlier, 'spec')} into {SPECS}/{good[0].draft.home.team}/{known}\n"
        )
        said.write(f"next: {_describe_import_next_step(batch, options)}\n")
    return choose_exit_code(findings)


def _fold_repeated_import_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with equal ones shown at their first places only: jobs of one folder are alike, and
    what is asked about each of them is answered once."""
    count = Counter(_identify_finding(one) for one in findings)
    seen: Counter[tuple[str, str, str]] = Counter()
    shown = []
    for one in findings:
        key = _identify_finding(one)
        seen[key] += 1
        others = count[key] - _MOST_REPEATS
        if others > 0 and seen[key] == _MOST_REPEATS:
            tail = f" (and so at {format_plural(others, 'other place')})"
            shown.append(replace(one, message=one.message + tail))
        elif others <= 0 or seen[key] < _MOST_REPEATS:
            shown.append(one)
    return shown


def _identify_finding(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.message, finding.help


def _resolve_import_target_from_flags(root: Path, options: ImportOptions) -> ImportTarget:
    workspace = load_workspace(root)
    team = resolve_team_flag(root, options.team)
    if not team:
        raise UserError("nothing was imported: --team is missing", "Name the team that the jobs belong to.")
    if team not in workspace.teams:
        raise build_missing_team_error(team, workspace)
    if options.image and workspace.catalog and options.image not in workspace.catalog.images:
        raise UserError(
            f"image '{options.image}' is not in images/catalog.yaml",
            suggest_nearest(options.image, workspace.catalog.images),
        )
    digests = _parse_name_value_flags("--digest", options.digests)
    for image, digest in digests.items():
        if not _DIGEST.fullmatch(digest):
            raise UserError(
                f"--digest {image}: '{digest}' is not a digest",
                "Write it as sha256: and 64 hexadecimal digits.",
            )
    return ImportTarget(
        workspace, team, ImportAnswers(options.image, options.command, digests, options.has_licence)
    )


def _parse_name_value_flags(flag: str, texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"{flag} {text}: the value is missing", f"Write {flag} NAME=VALUE.")
        found[name] = value
    return found


def _parse_import_output(text: str, root: Path) -> tuple[str, OutFile | None]:
    name, equals, file = text.partition("=")
    if name not in _FORMATS:
        raise UserError(f"there is no format '{name}'", f"Formats: {', '.join(_FORMATS)}.")
    return name, resolve_output_file_flag(file, root, "the report") if equals else None


def _write_import_report(
    batch: Batch, outputs: Sequence[tuple[str, OutFile | None]], options: ImportOptions, wrote: bool
) -> None:
    for name, file in outputs:
        if name == "json":
            text = json.dumps(build_import_document(batch), indent=2, ensure_ascii=False) + "\n"
        elif name == "markdown":
            text = render_import_as_markdown(batch)
        else:
            text = (
                ""
                if options.is_quiet and file is None
                else render_import_as_text(batch, options.with_account, wrote and options.applies)
            )
        if file is not None:
            file.write(text)
        else:
            sys.stdout.write(text)


def _describe_import_next_step(batch: Batch, options: ImportOptions) -> str:
    if any(one.is_open for one in batch.suggestions) or (batch.suggestions and not options.applies):
        return "add what the workspace must gain, then gangplan render"
    return "gangplan render, then commit the specs and rendered/"
