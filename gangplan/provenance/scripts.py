"""What a line of a team's launch scripts in `rendered/` is, and which runs mount them."""

from __future__ import annotations

from pathlib import Path

from gangplan.generators.scripts import SCRIPTS_VOLUME, name_launch_script_config_map
from gangplan.source.lines import lines_of

# How many runs a remark names.
_MOST = 4


def describe_launch_scripts(root: Path, name: str, text: str, line: int) -> str:
    """Return a sentence about a line of a file of launch scripts: the line of which script, mounted by
    whom."""
    told = [
        _describe_origin_of_launch_script_line(text, line),
        _describe_runs_mounting_launch_script(root, name),
    ]
    return "; ".join(one for one in told if one)


def _describe_origin_of_launch_script_line(text: str, line: int) -> str:
    """Return `line 3 of templates/launch/ranks.sh`; empty for a line that is part of no script."""
    keys = [(at, path) for path, at in lines_of(text).items() if len(path) == 2 and path[0] == "data"]
    above = [(at, str(path[1])) for at, path in keys if at < line]
    if not above:
        return ""
    at, script = max(above)
    is_new = f"name: {name_launch_script_config_map()}" in text
    return f"line {line - at} of templates/launch/{script}{'' if is_new else ' of an earlier gangplan'}"


def _describe_runs_mounting_launch_script(root: Path, name: str) -> str:
    """Return the runs in the same folder that name the ConfigMap of a file."""
    file = root / name
    config_map = f"name: {SCRIPTS_VOLUME}-{file.name.split('.')[1]}"
    others = (one for one in sorted(file.parent.glob("*.yaml")) if one != file)
    runs = [one.stem for one in others if config_map in one.read_text(encoding="utf-8", errors="replace")]
    if not runs:
        return "no run in rendered/ mounts them"
    more = f" and {len(runs) - _MOST} more" if len(runs) > _MOST else ""
    return f"mounted by {', '.join(runs[:_MOST])}{more}"
