"""`gangplan validate --fix`: which files may be fixed, and what is printed about it."""

from __future__ import annotations

from typing import TextIO

from gangplan.commands.common import plural
from gangplan.errors import UserError
from gangplan.findings import Fix
from gangplan.pipeline.request import Request
from gangplan.records import dataclass
from gangplan.report.escape import log_line
from gangplan.workspace import load_workspace


@dataclass(frozen=True, slots=True)
class Fixing:
    """What the flags select: only show what would be fixed, and fix files of the platform, too."""

    only_shown: bool = False
    platform: bool = False


def fixing(fix: bool, only_shown: bool, platform: bool) -> Fixing | None:
    """Return what the flags `--fix`, `--dry-run` and `--fix-platform` select; None without them. Raises
    UserError."""
    if not (fix or platform):
        if only_shown:
            raise UserError("--dry-run shows what --fix would change", "Write --fix --dry-run.")
        return None
    return Fixing(only_shown, platform)


def fix_files(request: Request, fixing: Fixing, words: TextIO, complaints: TextIO) -> None:
    """Fix the files that a request selects, print the diff, and write them unless `only_shown`.

    Raises UserError if the request selects nothing.
    """
    from gangplan.fixes import write
    from gangplan.pipeline.fix import fixed_files
    from gangplan.pipeline.scan import scan
    from gangplan.report.fixed import fixed_text, patch_text
    from gangplan.validate.secrets import hidden

    workspace = load_workspace(request.root)
    if workspace.is_refused:
        return  # the check that follows reports why
    secrets = scan(request.root, lambda file: True)[1]
    changed = places = 0
    for fixed in fixed_files(request, workspace, fixing.platform):
        for fix in fixed.refused:
            complaints.write(f"{_place(fix)}: not fixed: it overlaps with another fix, or makes it worse\n")
        if not fixed.is_changed:
            continue
        reason = "" if fixing.only_shown else write(request.root, fixed)
        if reason:
            complaints.write(f"{log_line(fixed.file)}: not fixed: {reason}\n")
            continue
        text = hidden(fixed_text(fixed), secrets)
        words.write(text)
        if fixing.only_shown and text != patch_text(fixed):
            said = "the difference escapes a secret or invisible characters: git apply cannot apply it, but --fix can"
            complaints.write(f"{log_line(fixed.file)}: {said}\n")
        changed += 1
        places += len(fixed.fixes)
    verb = "would fix" if fixing.only_shown else "fixed"
    where = f" in {plural(changed, 'file')}" if changed else ""
    words.write(f"{verb} {plural(places, 'place')}{where}\n")


def _place(fix: Fix) -> str:
    return log_line(f"{fix.file}:{fix.line}:{fix.column}")
