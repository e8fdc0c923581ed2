"""Flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Workspace = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-C", help="Workspace folder (default: found from here upwards).", metavar="DIR"
    ),
]
Clusters = Annotated[
    list[str] | None, typer.Option("--cluster", help="Only this cluster; may be repeated.", metavar="NAME")
]
Teams = Annotated[
    list[str] | None, typer.Option("--team", help="Only this team; may be repeated.", metavar="NAME")
]
Asked = Annotated[
    str,
    typer.Argument(
        help="A spec, or a line of any file, such as rendered/...:LINE.", metavar="SPEC|FILE:LINE"
    ),
]
Specs = Annotated[
    list[str] | None,
    typer.Argument(
        help="Specs, folders or patterns; any other file selects what depends on it (default: all).",
        metavar="[FILE]...",
    ),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="How to run the work: auto, serial, process or mpi.", metavar="NAME")
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=0, help="Worker processes (0: one per core).", metavar="N")
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="Also compare rendered/ with this Git revision, and report what a sync from there would refuse or leave behind.",
        metavar="REVISION",
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="text, json, sarif, junit, github, gitlab or markdown; FORMAT=FILE writes to a file; may be repeated.",
        metavar="FORMAT[=FILE]",
    ),
]
Color = Annotated[
    str,
    typer.Option("--color", help="Colour findings: auto (on a terminal), always or never.", metavar="WHEN"),
]
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on", help="Lowest severity that leads to exit code 1: error, warning or note.", metavar="NAME"
    ),
]
Today = Annotated[
    str | None,
    typer.Option(
        "--today",
        help="Check debug grants and waivers as of this day (default: today).",
        metavar="YYYY-MM-DD",
    ),
]
Fix = Annotated[bool, typer.Option("--fix", help="Apply the automatic fixes first, and show the difference.")]
DryRun = Annotated[bool, typer.Option("--dry-run", "--diff", help="With --fix: only show the difference.")]
FixPlatform = Annotated[
    bool,
    typer.Option("--fix-platform", help="Like --fix, but also in overlays/, images/ and policies/waivers/."),
]
KeepRuns = Annotated[
    bool, typer.Option("--keep-runs", help="Keep runs whose spec has not changed as they were rendered.")
]
