"""`gangplan pipeline`: its commands and their flags."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from gangplan.commands.flags import ClustersFlag, TeamsFlag, WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write jobs that come after others as pipelines, and sweeps as experiments.",
)

# Those of Katib that choose from lists and from ranges, and need no settings that a sweep lacks.
Algorithm = Literal["grid", "random", "tpe", "multivariate-tpe"]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Folder for the files, or - for standard output.", metavar="DIR|-"),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Write nothing; exit with 1 if a file in the folder is not up to date."),
]


@app.command("tekton")
def pipeline_tekton(
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a Task, a Pipeline and a PipelineRun for each team."""
    from gangplan.commands.common import build_request
    from gangplan.commands.pipeline import run_pipeline_engine_command
    from gangplan.gitops.tekton_runs import render_tekton_pipeline

    asked = build_request(workspace, cluster, team, None, "serial", 1)
    raise typer.Exit(run_pipeline_engine_command(asked, "tekton", render_tekton_pipeline, output, check))


@app.command("kfp")
def pipeline_kfp(
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a compiled pipeline of Kubeflow Pipelines (IR YAML) for each team."""
    from gangplan.commands.common import build_request
    from gangplan.commands.pipeline import run_pipeline_engine_command
    from gangplan.gitops.kfp import render_kfp_pipeline

    asked = build_request(workspace, cluster, team, None, "serial", 1)
    raise typer.Exit(run_pipeline_engine_command(asked, "kfp", render_kfp_pipeline, output, check))


@app.command("katib")
def pipeline_katib(
    sweep: Annotated[str, typer.Argument(help="File of a sweep.", metavar="SWEEP")],
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="What trials are compared by; else results.metric.", metavar="NAME"),
    ] = None,
    goal: Annotated[
        Literal["minimize", "maximize"] | None,
        typer.Option("--goal", help="Whether less or more of it is better; else results.goal."),
    ] = None,
    algorithm: Annotated[
        Algorithm | None,
        typer.Option("--algorithm", help="How Katib chooses values; else grid or random, as in the sweep."),
    ] = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a sweep as an Experiment of Katib, with all that its trials share."""
    from gangplan.commands.common import build_request
    from gangplan.commands.katib import run_pipeline_katib_command

    asked = build_request(workspace, cluster, None, [sweep], "serial", 1)
    raise typer.Exit(run_pipeline_katib_command(asked, metric, goal, algorithm, output, check))
