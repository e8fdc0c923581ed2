"""The team that a command works for if none is given."""

from __future__ import annotations

from pathlib import Path

from gangplan.spec.root import SPECS


def resolve_team_flag(root: Path, given: str | None) -> str:
    """Return the team as given, else that of the current folder, else the only one; empty if there are
    several."""
    if given:
        return given
    here = Path.cwd().resolve()
    inside = here.relative_to(root).parts if here.is_relative_to(root) else ()
    if len(inside) > 1 and inside[0] == SPECS:
        return inside[1]
    teams = [path.parent.name for path in root.glob(f"{SPECS}/*/team.yaml")]
    return teams[0] if len(teams) == 1 else ""
