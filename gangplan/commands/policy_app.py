"""`gangplan policy`: its commands and their flags. commands/policy.py implements them."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import ClustersFlag, WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="List policies per cluster, run their test cases, or export them as objects.",
)


@app.command("list")
def policy_list(
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
) -> None:
    """Show every policy, its pack, and what a breach leads to on each cluster."""
    from gangplan.commands.common import build_request
    from gangplan.commands.policy import run_policy_list_command

    raise typer.Exit(
        run_policy_list_command(build_request(workspace, cluster, None, None, "serial", 1), format)
    )


@app.command("test")
def policy_test(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packs or policies (default: all).",
            metavar="PACK|POLICY",
            autocompletion=complete.complete_packs_on_tab,
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
) -> None:
    """Run the test cases of each policy: what it must allow, and what it must refuse."""
    from gangplan.commands.common import build_request
    from gangplan.commands.policy import run_policy_test_command

    raise typer.Exit(
        run_policy_test_command(build_request(workspace, None, None, None, "serial", 1), tuple(names or ()))
    )


@app.command("export")
def policy_export(
    cluster: Annotated[
        str,
        typer.Option(
            "--cluster", help="The cluster.", metavar="NAME", autocompletion=complete.complete_clusters_on_tab
        ),
    ],
    workspace: WorkspaceFlag = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A file, or - for standard output.", metavar="FILE|-")
    ] = "-",
) -> None:
    """Write a cluster's policies with their bindings and parameters, ready to apply."""
    from gangplan.commands.common import build_request
    from gangplan.commands.policy import run_policy_export_command

    raise typer.Exit(
        run_policy_export_command(
            build_request(workspace, (cluster,), None, None, "serial", 1), cluster, output
        )
    )
