"""`gangplan cluster`: its commands and their flags. What they do stands in modules of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import Clusters, Workspace

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Show what clusters have installed, their quotas, and what other versions would change.",
)


@app.command("quota")
def cluster_quota(
    workspace: Workspace = None,
    cluster: Clusters = None,
    usage: Annotated[
        Path | None,
        typer.Option(
            "--usage",
            help="Snapshot of the usage: the output of kubectl get clusterqueues -o json.",
            metavar="FILE",
        ),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
) -> None:
    """Show each team's quota per pool, the most that it can ever get, and how much it uses."""
    from gangplan.commands.common import request
    from gangplan.commands.quota import quota

    raise typer.Exit(quota(request(workspace, cluster, None, None, "serial", 1), usage, format))


@app.command("check")
def cluster_check(
    workspace: Workspace = None,
    cluster: Clusters = None,
    versions: Annotated[
        str | None,
        typer.Option("--as", help="Show what other versions would change.", metavar="COMPONENT=VERSION,..."),
    ] = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
) -> None:
    """Show each component: its version, whether it is supported, what depends on it, and what is missing."""
    from gangplan.commands.cluster import check
    from gangplan.commands.common import request

    raise typer.Exit(check(request(workspace, cluster, None, None, "auto", 0), versions, format))


@app.command("kueue-config")
def cluster_kueue_config(workspace: Workspace = None, cluster: Clusters = None) -> None:
    """Print the configuration that Kueue's manager needs, each line with its reason."""
    from gangplan.commands.cluster import kueue_config
    from gangplan.commands.common import request

    raise typer.Exit(kueue_config(request(workspace, cluster, None, None, "serial", 1)))
