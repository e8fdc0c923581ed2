"""`gangplan policy`: its commands and their flags. commands/policy.py implements them."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import Clusters, Workspace

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="List policies per cluster, run their test cases, or export them as objects.",
)


@app.command("list")
def policy_list(
    workspace: Workspace = None,
    cluster: Clusters = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
) -> None:
    """Show every policy, its pack, and what a breach leads to on each cluster."""
    from gangplan.commands.common import request
    from gangplan.commands.policy import show

    raise typer.Exit(show(request(workspace, cluster, None, None, "serial", 1), format))


@app.command("test")
def policy_test(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packs or policies (default: all).", metavar="PACK|POLICY", autocompletion=complete.packs
        ),
    ] = None,
    workspace: Workspace = None,
) -> None:
    """Run the test cases of each policy: what it must allow, and what it must refuse."""
    from gangplan.commands.common import request
    from gangplan.commands.policy import test

    raise typer.Exit(test(request(workspace, None, None, None, "serial", 1), tuple(names or ())))


@app.command("export")
def policy_export(
    cluster: Annotated[
        str, typer.Option("--cluster", help="The cluster.", metavar="NAME", autocompletion=complete.clusters)
    ],
    workspace: Workspace = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="A file, or - for standard output.", metavar="FILE|-")
    ] = "-",
) -> None:
    """Write a cluster's policies with their bindings and parameters, ready to apply."""
    from gangplan.commands.common import request
    from gangplan.commands.policy import export

    raise typer.Exit(export(request(workspace, (cluster,), None, None, "serial", 1), cluster, output))
