"""Flags that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.errors import UserError


def _refuse_parts(value: str | None) -> None:
    """Refuse the flag of `validate` in commands that work on the whole. Raises UserError."""
    if value is not None:
        help = "Divide the check: gangplan validate --shard; render with --engine process or mpi."
        raise UserError("--shard cannot be used here: what is rendered is one tree", help)


WorkspaceFlag = Annotated[
    Path | None,
    typer.Option(
        "--workspace", "-C", help="Workspace folder (default: found from here upwards).", metavar="DIR"
    ),
]
ClustersFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        help="Only this cluster; may be repeated.",
        metavar="NAME",
        autocompletion=complete.complete_clusters_on_tab,
    ),
]
ClusterNamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Only these clusters (default: all), as --cluster.",
        metavar="NAME",
        autocompletion=complete.complete_clusters_on_tab,
    ),
]
TeamsFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--team",
        help="Only this team; may be repeated.",
        metavar="NAME",
        autocompletion=complete.complete_teams_on_tab,
    ),
]
PlaceArgument = Annotated[
    str,
    typer.Argument(
        help="A spec, or a line of any file, such as rendered/...:LINE.",
        metavar="SPEC|FILE:LINE",
        autocompletion=complete.complete_files_on_tab,
    ),
]
SpecsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Specs, folders or patterns; any other file selects what depends on it (default: all).",
        metavar="FILE",
        autocompletion=complete.complete_files_on_tab,
    ),
]
EngineFlag = Annotated[
    str,
    typer.Option(
        "--engine",
        help="How to run the work: auto, serial, process or mpi.",
        metavar="NAME",
    ),
]
JobsFlag = Annotated[
    int, typer.Option("--jobs", "-j", min=0, help="Worker processes (0: one per core).", metavar="N")
]
SyncBaseFlag = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="Also compare rendered/ with the merge base of HEAD and this Git revision (REF..: with itself), and report what a sync from there would refuse or leave behind.",
        metavar="REVISION",
    ),
]
SinceFlag = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="Show what changed since the merge base of HEAD and this Git revision; REF.. means REF itself.",
        metavar="REF",
    ),
]
LimitFlag = Annotated[
    int | None,
    typer.Option(
        "--limit",
        help="Maximum bytes of Markdown (default: 65536, for GitHub; GitLab: 1000000).",
        metavar="N",
    ),
]
ReviewFormatFlag = Annotated[
    str,
    typer.Option(
        "--format",
        help="text, json, or with --base markdown.",
        metavar="NAME",
        autocompletion=complete.build_word_tab_completion("text", "json", "markdown"),
    ),
]
FormatsFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="text, json, sarif, junit, github, gitlab or markdown; FORMAT=FILE writes to a file; may be repeated.",
        metavar="FORMAT[=FILE]",
    ),
]
ColorFlag = Annotated[
    str,
    typer.Option(
        "--color",
        help="Colour findings: auto (on a terminal), always or never.",
        metavar="WHEN",
    ),
]
FailOnFlag = Annotated[
    str,
    typer.Option(
        "--fail-on",
        help="Lowest severity that leads to exit code 1: error, warning or note.",
        metavar="NAME",
    ),
]
TodayFlag = Annotated[
    str | None,
    typer.Option(
        "--today",
        help="Check debug grants and waivers as of this day (default: GANGPLAN_TODAY, or today); plan shows starts of schedules from it on.",
        metavar="YYYY-MM-DD",
    ),
]
FixFlag = Annotated[
    bool, typer.Option("--fix", help="Apply the automatic fixes first, and show the difference.")
]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", "--diff", help="With --fix: only show the difference.")
]
FixPlatformFlag = Annotated[
    bool,
    typer.Option("--fix-platform", help="Like --fix, but also in overlays/, images/ and policies/waivers/."),
]
ShardFlag = Annotated[
    str | None,
    typer.Option(
        "--shard",
        help="Only one part: 3/8 is the third of eight; gangplan report merge makes one report of all.",
        metavar="NUMBER/OF",
    ),
]
RefusedShardFlag = Annotated[str | None, typer.Option("--shard", hidden=True, callback=_refuse_parts)]
KeepRunsFlag = Annotated[
    bool, typer.Option("--keep-runs", help="Keep runs as they were rendered if their spec has not changed.")
]
NoCacheFlag = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Compute everything again: neither use what earlier commands found nor keep anything.",
    ),
]
ContextFlag = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Context of the kubeconfig (default: what cluster.yaml says, else the cluster's name, else the only one).",
        metavar="NAME",
    ),
]
KubeconfigFlag = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig", help="Kubeconfig (default: KUBECONFIG, else ~/.kube/config).", metavar="FILE"
    ),
]
TimeoutFlag = Annotated[
    float,
    typer.Option("--timeout", min=0.1, help="Seconds to wait for an answer of the API server.", metavar="S"),
]
SnapshotsFlag = Annotated[
    list[Path] | None,
    typer.Option(
        "--snapshot",
        help="Also compare a cluster's file with what gangplan cluster snapshot saw; may be repeated.",
        metavar="FILE",
    ),
]
ServerFlag = Annotated[
    bool,
    typer.Option(
        "--server",
        help="Also ask the clusters' API servers about every object, by dry run, with your kubeconfig. Writes nothing.",
    ),
]
VerboseFlag = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also explain why each broken rule exists.")
]
NamesFilesFlag = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Also name each file, and explain why each broken rule exists."),
]
QuietFlag = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only findings and errors; nothing if all is well.")
]
