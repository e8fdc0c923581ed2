"""`gangplan validate --fix`: which files may be fixed, and what is printed about it."""

from __future__ import annotations

from typing import TextIO

from gangplan.commands.common import format_plural
from gangplan.errors import UserError
from gangplan.findings import Fix
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.report.escape import escape_log_line
from gangplan.workspace import load_workspace


@dataclass(frozen=True, slots=True)
class Fixing:
    """What the flags select: only show what would be fixed, and fix files of the platform, too."""

    only_shown: bool = False
    platform: bool = False


def parse_fix_flags(fix: bool, only_shown: bool, platform: bool) -> Fixing | None:
    """Return what the flags `--fix`, `--dry-run` and `--fix-platform` select; None without them. Raises
    UserError."""
    if not (fix or platform):
        if only_shown:
            raise UserError("--dry-run shows what --fix would change", "Write --fix --dry-run.")
        return None
    return Fixing(only_shown, platform)


def fix_files_selected_by_flags(request: Request, fixing: Fixing, words: TextIO, complaints: TextIO) -> None:
    """Fix the files that a request selects, print the diff, and write them unless `only_shown`.

    Raises UserError if the request selects nothing.
    """
    from gangplan.fixes import write_fixed
    from gangplan.pipeline.fix import list_fixed_files_in_scope
    from gangplan.pipeline.scan import scan_workspace_for_secrets
    from gangplan.report.fixed import render_fix_diff, render_fix_patch
    from gangplan.validate.secrets import mask_secrets

    workspace = load_workspace(request.root)
    if workspace.is_refused:
        return  # the check that follows reports why
    secrets = scan_workspace_for_secrets(request.root, lambda file: True)[1]
    changed = places = 0
    for fixed in list_fixed_files_in_scope(request, workspace, fixing.platform):
        for fix in fixed.refused:
            complaints.write(
                f"{_format_fix_place(fix)}: not fixed: it overlaps with another fix, or makes it worse\n"
            )
        if not fixed.is_changed:
            continue
        reason = "" if fixing.only_shown else write_fixed(request.root, fixed)
        if reason:
            complaints.write(f"{escape_log_line(fixed.file)}: not fixed: {reason}\n")
            continue
        text = mask_secrets(render_fix_diff(fixed), secrets)
        words.write(text)
        if fixing.only_shown and text != render_fix_patch(fixed):
            said = "the difference escapes a secret or invisible characters: git apply cannot apply it, but --fix can"
            complaints.write(f"{escape_log_line(fixed.file)}: {said}\n")
        changed += 1
        places += len(fixed.fixes)
    verb = "would fix" if fixing.only_shown else "fixed"
    where = f" in {format_plural(changed, 'file')}" if changed else ""
    words.write(f"{verb} {format_plural(places, 'place')}{where}\n")


def _format_fix_place(fix: Fix) -> str:
    return escape_log_line(f"{fix.file}:{fix.line}:{fix.column}")
