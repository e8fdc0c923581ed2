"""`gangplan cluster`: its commands and their flags. Other modules implement them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import (
    ClusterNamesArgument,
    ClustersFlag,
    ContextFlag,
    KubeconfigFlag,
    SnapshotsFlag,
    TimeoutFlag,
    WorkspaceFlag,
)

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Show what clusters have, by their files or as they are now, and what other versions would change.",
)


@app.command("quota")
def cluster_quota(
    names: ClusterNamesArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
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
    from gangplan.commands.common import build_request
    from gangplan.commands.quota import print_quota

    raise typer.Exit(
        print_quota(
            build_request(workspace, _merge_cluster_names(names, cluster), None, None, "serial", 1),
            usage,
            format,
        )
    )


@app.command("check")
def cluster_check(
    names: ClusterNamesArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    versions: Annotated[
        str | None,
        typer.Option("--as", help="Show what other versions would change.", metavar="COMPONENT=VERSION,..."),
    ] = None,
    snapshot: SnapshotsFlag = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
) -> None:
    """Show each component: its version, whether it is supported, what depends on it, and what is missing."""
    from gangplan.commands.cluster import print_cluster_check
    from gangplan.commands.common import build_request

    asked = build_request(workspace, _merge_cluster_names(names, cluster), None, None, "auto", 0)
    raise typer.Exit(print_cluster_check(asked, versions, format, snapshot or ()))


@app.command("snapshot")
def cluster_snapshot(
    name: Annotated[
        str,
        typer.Argument(
            help="The cluster to look at.", metavar="NAME", autocompletion=complete.complete_clusters_on_tab
        ),
    ],
    workspace: WorkspaceFlag = None,
    context: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
    observed: Annotated[
        str | None,
        typer.Option(
            "--observed", help="Time to write into the file (default: now).", metavar="YYYY-MM-DDTHH:MM:SSZ"
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write instead of observed/NAME.json, or - for standard output.",
            metavar="FILE|-",
        ),
    ] = None,
    format: Annotated[
        str, typer.Option("--format", help="How to report the differences: text or json.", metavar="NAME")
    ] = "text",
) -> None:
    """Read what a cluster has now, write it to a file, and report where the cluster file differs;
    read-only."""
    from gangplan.commands.common import build_request
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.snapshot import run_cluster_snapshot_command

    asked = build_request(workspace, [name], None, None, "serial", 1)
    raise typer.Exit(
        run_cluster_snapshot_command(
            asked, ConnectionFlags(context, kubeconfig, timeout), observed, output, format
        )
    )


@app.command("kueue-config")
def cluster_kueue_config(
    names: ClusterNamesArgument = None, workspace: WorkspaceFlag = None, cluster: ClustersFlag = None
) -> None:
    """Print the configuration that Kueue's manager needs, each line with its reason."""
    from gangplan.commands.cluster import print_kueue_config
    from gangplan.commands.common import build_request

    raise typer.Exit(
        print_kueue_config(
            build_request(workspace, _merge_cluster_names(names, cluster), None, None, "serial", 1)
        )
    )


def _merge_cluster_names(names: list[str] | None, clusters: list[str] | None) -> list[str]:
    """Return the names of clusters from arguments and --cluster, each once."""
    return list(dict.fromkeys([*(names or ()), *(clusters or ())]))
