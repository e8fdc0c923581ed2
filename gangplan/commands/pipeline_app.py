"""`gangplan pipeline`: its commands and their flags."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands.flags import Clusters, Teams, Workspace

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write jobs that come after others as pipelines of Tekton or Kubeflow Pipelines.",
)

Output = Annotated[
    str | None,
    typer.Option("--output", "-o", help="Folder for the files, or - for standard output.", metavar="DIR|-"),
]
Check = Annotated[
    bool,
    typer.Option("--check", help="Write nothing; exit with 1 if a file in the folder is not what would be."),
]


@app.command("tekton")
def pipeline_tekton(
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a Task, a Pipeline and a PipelineRun for each team."""
    from gangplan.commands.common import request
    from gangplan.commands.pipeline import pipeline
    from gangplan.gitops.tekton_runs import tekton_text

    asked = request(workspace, cluster, team, None, "serial", 1)
    raise typer.Exit(pipeline(asked, "tekton", tekton_text, output, check))


@app.command("kfp")
def pipeline_kfp(
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    output: Output = None,
    check: Check = False,
) -> None:
    """Write a compiled pipeline of Kubeflow Pipelines (IR YAML) for each team."""
    from gangplan.commands.common import request
    from gangplan.commands.pipeline import pipeline
    from gangplan.gitops.kfp import kfp_text

    asked = request(workspace, cluster, team, None, "serial", 1)
    raise typer.Exit(pipeline(asked, "kfp", kfp_text, output, check))
