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
Specs = Annotated[
    list[str] | None,
    typer.Argument(help="Spec files, folders or patterns (default: all).", metavar="[SPEC]..."),
]
EngineName = Annotated[
    str, typer.Option("--engine", help="Where work runs: auto, serial, process or mpi.", metavar="NAME")
]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", min=0, help="Worker processes (0: one per core).", metavar="N")
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="Also compare rendered/ with this Git revision: what would a sync from there refuse or leave?",
        metavar="REVISION",
    ),
]
