"""The flags of `gangplan init`, which starts a workspace, and of `gangplan list`, which shows what it has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import ClustersFlag, QuietFlag, TeamsFlag, WorkspaceFlag
from gangplan.errors import UserError

# What `list` shows, in this order (commands/listing.py; a test compares them).
LISTS = (
    *("specs", "runs", "templates", "images", "claims", "secrets", "pools", "queues", "endpoints", "limits"),
    *("teams", "clusters", "policies"),
)

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


Folder = Annotated[
    Path, typer.Argument(help="Folder of the new workspace (default: this one).", metavar="DIR")
]
Forge = Annotated[
    str | None,
    typer.Option(
        "--forge",
        help="Where changes are reviewed: github, gitlab or none.",
        metavar="NAME",
    ),
]
Sync = Annotated[
    str | None,
    typer.Option(
        "--sync",
        help="What applies rendered/: argocd, flux, tekton or none.",
        metavar="NAME",
        autocompletion=complete.build_word_tab_completion("argocd", "flux", "tekton", "none"),
    ),
]
Accelerator = Annotated[
    str | None,
    typer.Option(
        "--accelerator",
        help="GPUs of the first cluster: nvidia, amd or none.",
        metavar="NAME",
    ),
]
FromCluster = Annotated[
    bool,
    typer.Option(
        "--from-cluster",
        help="Take versions, node pools and storage classes from the cluster as it is. Read-only.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="With --from-cluster: context of the kubeconfig (default: the cluster's name, else the only one).",
        metavar="NAME",
    ),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="With --from-cluster: kubeconfig (default: KUBECONFIG, else ~/.kube/config).",
        metavar="FILE",
    ),
]
Repository = Annotated[
    str | None,
    typer.Option(
        "--repo",
        help="Git repository as the sync engine reads it (default: the remote origin).",
        metavar="URL",
    ),
]


@app.command()
def init(
    folder: Folder = Path("."),
    forge: Forge = None,
    sync: Sync = None,
    team: Annotated[str | None, typer.Option("--team", help="The first team.", metavar="NAME")] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="The first cluster.", metavar="NAME")
    ] = None,
    repo: Repository = None,
    branch: Annotated[str, typer.Option("--branch", help="Branch that is synced.", metavar="NAME")] = "main",
    sample: Annotated[
        bool, typer.Option("--sample", help="Ask nothing; write two teams, two clusters and four jobs.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave files that exist as they are, and write the others.")
    ] = False,
    accelerator: Accelerator = None,
    from_cluster: FromCluster = False,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    quiet: QuietFlag = False,
) -> None:
    """Create a new workspace: specs, cluster, images, CI, sync manifests, editor settings; overwrite
    nothing."""
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.init import run_init_command as command
    from gangplan.commands.init_flags import InitFlags

    if not from_cluster and (context or kubeconfig):
        raise UserError("--context and --kubeconfig are for --from-cluster", "Add it, or leave them out.")
    asked = ConnectionFlags(context, kubeconfig) if from_cluster else None
    wanted = InitFlags(forge, sync, team, cluster, repo, branch, sample, keep, quiet, accelerator, asked)
    raise typer.Exit(command(folder, wanted))


@app.command("list")
def list_command(
    what: Annotated[
        str | None,
        typer.Argument(
            help="specs, runs, templates, images, claims, secrets, pools, queues, endpoints, limits, teams, clusters or policies (default: how many of each; with one --team, all that it may use).",
            metavar="WHAT",
            autocompletion=complete.build_word_tab_completion(*LISTS),
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    format: Annotated[str, typer.Option("--format", help="table or json.", metavar="NAME")] = "table",
) -> None:
    """Show what the workspace has; with --team, what the team may use."""
    from gangplan.commands.listing import print_listing
    from gangplan.spec.root import locate_workspace_root

    raise typer.Exit(print_listing(locate_workspace_root(workspace), what, team or (), cluster or (), format))
