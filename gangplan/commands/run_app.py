"""`gangplan run`: its flags. gangplan.commands.run implements it."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import ColorFlag, WorkspaceFlag

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)

SpecArgument = Annotated[
    str,
    typer.Argument(help="The spec of the job.", metavar="SPEC", autocompletion=complete.complete_jobs_on_tab),
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="Run as on this cluster (default: the job's first cluster).",
        metavar="NAME",
        autocompletion=complete.complete_clusters_on_tab,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="How many workers (default: the job's, up to 4).", metavar="N"),
]
Ranks = Annotated[int | None, typer.Option("--ranks", min=1, help="How many ranks in all.", metavar="N")]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--path", help="Local path for a path in the image; may be repeated.", metavar="IMAGE_PATH=PATH"
    ),
]
Mounts = Annotated[
    list[str] | None,
    typer.Option(
        "--mount",
        help="Data for a mount, by its name or path; may be repeated (default: an empty folder).",
        metavar="NAME=PATH",
    ),
]
Python = Annotated[
    str | None,
    typer.Option("--python", help="The Python that programs get (default: that on PATH).", metavar="PROGRAM"),
]
Limit = Annotated[
    str | None,
    typer.Option("--timeout", help="Time limit, such as 5m (default: timeout of the spec).", metavar="TIME"),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the scratch folder of the run.")]


@app.command()
def run(
    spec: SpecArgument,
    workspace: WorkspaceFlag = None,
    cluster: ClusterOption = None,
    workers: Workers = None,
    ranks: Ranks = None,
    path: Paths = None,
    mount: Mounts = None,
    python: Python = None,
    limit: Limit = None,
    keep: Keep = False,
    color: ColorFlag = "auto",
) -> None:
    """Run a small copy of a job on this machine: same command, variables and launch, a few ranks, no
    cluster."""
    from gangplan.commands.run import LocalRunFlags
    from gangplan.commands.run import run_small_copy_from_flags as command

    asked = LocalRunFlags(
        spec, cluster or "", workers, ranks, tuple(path or ()), tuple(mount or ()), python, limit, keep, color
    )
    raise typer.Exit(command(asked, workspace))
