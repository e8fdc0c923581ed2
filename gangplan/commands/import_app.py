"""`gangplan import`: a command for each kind of source; all have the same flags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import QuietFlag, WorkspaceFlag

# The kinds of sources with their help (imports/kinds.py; a test compares them).
KINDS = {
    "mpijob": "Import MPIJobs of Kubeflow (v2beta1 and v1).",
    "pytorchjob": "Import PyTorchJobs of Kubeflow's training operator.",
    "trainjob": "Import TrainJobs of Kubeflow Trainer, with their runtimes.",
    "jobset": "Import JobSets of Kubernetes SIGs.",
    "job": "Import Jobs of Kubernetes.",
    "volcano": "Import Jobs of Volcano.",
    "tfjob": "Import TFJobs of Kubeflow's training operator.",
    "xgboostjob": "Import XGBoostJobs of Kubeflow's training operator.",
    "jaxjob": "Import JAXJobs of Kubeflow's training operator.",
    "paddlejob": "Import PaddleJobs of Kubeflow's training operator.",
    "slurm": "Import batch scripts of Slurm (sbatch).",
    "pbs": "Import batch scripts of PBS and Torque (qsub).",
    "sagemaker": "Import training jobs of SageMaker.",
    "azureml": "Import command jobs of Azure ML, and steps of its pipelines.",
}

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write specs from jobs of other systems, with an account of every field.",
)

Sources = Annotated[
    list[Path], typer.Argument(help="Files, or folders that are searched for files.", metavar="FILE")
]
TeamOption = Annotated[
    str | None,
    typer.Option(
        "--team",
        help="Team that the jobs belong to (default: that of the current folder, or the only one).",
        metavar="NAME",
        autocompletion=complete.complete_teams_on_tab,
    ),
]
ImageOption = Annotated[
    str | None,
    typer.Option(
        "--image",
        help="Image by its name in the catalog, for all sources (default: the one that a source names).",
        metavar="NAME",
        autocompletion=complete.build_column_tab_completion("images", "image"),
    ),
]
Command = Annotated[
    str | None,
    typer.Option(
        "--command",
        help="Command of all sources (default: that of each; needed where the image's entrypoint is used).",
        metavar="TEXT",
    ),
]
Digests = Annotated[
    list[str] | None,
    typer.Option(
        "--digest",
        help="Digest of an image that the catalog does not have. May be repeated.",
        metavar="IMAGE=DIGEST",
    ),
]
Filled = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Value of a variable ${NAME} in a template. May be repeated.", metavar="NAME=VALUE"
    ),
]
Licence = Annotated[
    bool, typer.Option("--license-acknowledged", help="Confirm that you may use a commercially licensed MPI.")
]
Apply = Annotated[
    bool,
    typer.Option("--apply", help="Also add what is missing from the team, the catalog and the clusters."),
]
KeepGoing = Annotated[
    bool,
    typer.Option("--keep-going", "-k", help="Write the specs that are right, even if others are not."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Print the specs, write nothing.")]
ShowAccount = Annotated[bool, typer.Option("--account", help="List what became of every field, at its line.")]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="text, json or markdown; FORMAT=FILE writes to a file; may be repeated.",
        metavar="FORMAT[=FILE]",
    ),
]


def _build_typer_import_command(kind: str) -> Callable[..., None]:
    def command(
        sources: Sources,
        workspace: WorkspaceFlag = None,
        team: TeamOption = None,
        image: ImageOption = None,
        command: Command = None,
        digest: Digests = None,
        set: Filled = None,
        license_acknowledged: Licence = False,
        apply: Apply = False,
        keep_going: KeepGoing = False,
        dry_run: DryRun = False,
        account: ShowAccount = False,
        format: Formats = None,
        quiet: QuietFlag = False,
    ) -> None:
        from gangplan.commands.importing import ImportOptions, run_import_command

        options = ImportOptions(
            kind, workspace, team, image or "", command or "", digest or (), set or (), license_acknowledged,
            apply, keep_going, dry_run, account, format or ("text",), quiet,
        )  # fmt: skip
        raise typer.Exit(run_import_command(sources, options))

    command.__doc__ = KINDS[kind]
    return command


for _kind in KINDS:
    app.command(_kind)(_build_typer_import_command(_kind))


ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="Cluster whose overlay gains the patches.",
        metavar="NAME",
        autocompletion=complete.complete_clusters_on_tab,
    ),
]
ApplyPatches = Annotated[
    bool, typer.Option("--apply", help="Add the patches to overlays/<cluster>/kustomization.yaml.")
]


@app.command("overlay")
def overlay(
    sources: Sources, cluster: ClusterOption, workspace: WorkspaceFlag = None, apply: ApplyPatches = False
) -> None:
    """Convert strategic merges to patches of a cluster's overlay."""
    from gangplan.commands.importing_overlay import run_import_overlay_command

    raise typer.Exit(run_import_overlay_command(sources, workspace, cluster, apply))
