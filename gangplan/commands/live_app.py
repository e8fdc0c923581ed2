"""`gangplan status`, `gangplan logs` and `gangplan diagnose`: their flags."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import (
    ClustersFlag,
    ContextFlag,
    KubeconfigFlag,
    TeamsFlag,
    TimeoutFlag,
    WorkspaceFlag,
)

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def status(
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    context: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            help="table or json.",
            metavar="NAME",
        ),
    ] = "table",
) -> None:
    """Show the runs on clusters and in Git: their state, since when, and why they wait. Read-only."""
    from gangplan.commands.common import build_request
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.status import run_status_command as command

    asked = build_request(workspace, cluster, team, None, "serial", 1)
    raise typer.Exit(command(asked, ConnectionFlags(context, kubeconfig, timeout), format))


@app.command()
def logs(
    name: Annotated[
        str,
        typer.Argument(
            help="A run, as status shows it, or a spec: its current run.",
            metavar="RUN|SPEC",
            autocompletion=complete.complete_files_on_tab,
        ),
    ],
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    worker: Annotated[
        list[int] | None,
        typer.Option("--worker", min=0, help="Only this worker, from 0; may be repeated.", metavar="N"),
    ] = None,
    launcher: Annotated[bool, typer.Option("--launcher", help="Only the launcher.")] = False,
    all: Annotated[
        bool,
        typer.Option("--all", help="The launcher and all workers (default: the launcher, else all workers)."),
    ] = False,
    previous: Annotated[bool, typer.Option("--previous", help="The attempt before the current one.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing as pods write.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", min=0, help="Only the last lines of each pod.", metavar="N")
    ] = None,
    context: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
) -> None:
    """Print the logs of a run's pods, each line prefixed with its launcher or worker. Read-only."""
    from gangplan.commands.common import build_request
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.logs import logs as command
    from gangplan.live.logs import PodSelection

    asked = build_request(workspace, cluster, team, None, "serial", 1)
    which = PodSelection(launcher, tuple(worker or ()), all, previous)
    raise typer.Exit(command(asked, ConnectionFlags(context, kubeconfig, timeout), name, which, follow, tail))


@app.command()
def diagnose(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="What was saved of runs: objects (kubectl get -o json or yaml), events, logs, folders of them; - for standard input.",
            metavar="FILE",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="Only this run; with --server, a spec stands for its current run.", metavar="RUN"
        ),
    ] = None,
    server: Annotated[
        bool,
        typer.Option("--server", help="Ask the cluster for the run's objects, events and logs. Read-only."),
    ] = False,
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="text, json or markdown; FORMAT=FILE writes to a file; may be repeated.",
            metavar="FORMAT[=FILE]",
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    context: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
) -> None:
    """Show why a run failed or does not start, and what helps: from what kubectl saved, or from the
    cluster."""
    from gangplan.commands.connecting import ConnectionFlags
    from gangplan.commands.diagnose import run_diagnose_command as command

    asked = ConnectionFlags(context, kubeconfig, timeout) if server else None
    raise typer.Exit(
        command(files or (), run or "", format or ("text",), workspace, cluster or (), team or (), asked)
    )
