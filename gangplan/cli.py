"""The command line: names, flags and exit codes. What the commands do stands in gangplan.commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
import typer.main

from gangplan import __version__
from gangplan.commands import cluster_app, policy_app, schema_app, simulate_app
from gangplan.commands import tools as tools_command
from gangplan.commands.fatal import fatal, unexpected
from gangplan.commands.flags import (
    Asked,
    Base,
    Clusters,
    Color,
    DryRun,
    EngineName,
    FailOn,
    Fix,
    FixPlatform,
    Formats,
    Jobs,
    KeepRuns,
    Specs,
    Teams,
    Today,
    Workspace,
)
from gangplan.commands.streams import patient
from gangplan.commands.terminate import terminable
from gangplan.errors import Exit, GangplanError, ToolError

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Turn short training-job specs in Git into everything a GPU cluster needs to run them, proved before sync.",
)
app.add_typer(cluster_app.app, name="cluster")
app.add_typer(policy_app.app, name="policy")
app.add_typer(schema_app.app, name="schema")
app.add_typer(tools_command.app, name="tools")
app.command()(simulate_app.simulate)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"gangplan {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    pass


@app.command()
def render(
    specs: Specs = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; if rendered/ is stale, show the difference and exit 1."),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder to write instead of rendered/, or - for standard output.",
            metavar="DIR|-",
        ),
    ] = None,
    keep_runs: KeepRuns = False,
    formats: Formats = None,
    color: Color = "auto",
    base: Base = None,
    engine: EngineName = "auto",
    jobs: Jobs = 0,
) -> None:
    """Expand specs, apply overlays, check schemas, and write rendered/."""
    from gangplan.commands.common import request
    from gangplan.commands.render import render as command

    asked = request(workspace, cluster, team, specs, engine, jobs, keep_runs)
    raise typer.Exit(command(asked, check, output, base, formats, color))


@app.command()
def validate(
    specs: Specs = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    formats: Formats = None,
    color: Color = "auto",
    fail_on: FailOn = "error",
    today: Today = None,
    base: Base = None,
    fix: Fix = False,
    dry_run: DryRun = False,
    fix_platform: FixPlatform = False,
    keep_runs: KeepRuns = False,
    engine: EngineName = "auto",
    jobs: Jobs = 0,
) -> None:
    """Check specs and everything that they expand to; writes nothing without --fix."""
    from gangplan.commands.common import request
    from gangplan.commands.fix import fixing
    from gangplan.commands.validate import validate as command

    asked = request(workspace, cluster, team, specs, engine, jobs, keep_runs)
    raise typer.Exit(command(asked, formats, fail_on, today, base, color, fixing(fix, dry_run, fix_platform)))


@app.command()
def plan(
    specs: Specs = None,
    workspace: Workspace = None,
    cluster: Clusters = None,
    team: Teams = None,
    format: Annotated[str, typer.Option("--format", help="text or json.", metavar="NAME")] = "text",
    network: Annotated[
        bool,
        typer.Option("--network", help="Show a table of each run's network connections instead."),
    ] = False,
    usage: Annotated[
        Path | None,
        typer.Option(
            "--usage",
            help="Show what would be admitted now; FILE holds the output of: kubectl get clusterqueues -o json.",
            metavar="FILE",
        ),
    ] = None,
    engine: EngineName = "auto",
    jobs: Jobs = 0,
) -> None:
    """Show what each spec becomes on each cluster: pods, ranks, slots, resources and the final command."""
    from gangplan.commands.common import request
    from gangplan.commands.plan import plan as command

    asked = request(workspace, cluster, team, specs, engine, jobs)
    raise typer.Exit(command(replace(asked, with_flows=network), format, usage))


@app.command()
def why(
    what: Asked,
    workspace: Workspace = None,
    cluster: Clusters = None,
) -> None:
    """Show where each value of a job comes from, what produced a rendered line, or what a source line became."""
    from gangplan.commands.common import request
    from gangplan.commands.why import why as command

    raise typer.Exit(command(request(workspace, cluster, None, None, "serial", 1), what))


gitops_app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Print sync configuration for GitOps engines.",
)
app.add_typer(gitops_app, name="gitops")


@gitops_app.command("argocd")
def gitops_argocd(
    repo: Annotated[str, typer.Option("--repo", help="Git repository that Argo CD reads.", metavar="URL")],
    revision: Annotated[str, typer.Option("--revision", help="Branch or tag.", metavar="NAME")] = "main",
    namespace: Annotated[
        str, typer.Option("--namespace", help="Namespace that Argo CD runs in.", metavar="NAME")
    ] = "argocd",
    workspace: Workspace = None,
    cluster: Clusters = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for one file per cluster, or - for standard output.",
            metavar="DIR|-",
        ),
    ] = None,
) -> None:
    """Print Argo CD projects and applications for the platform, tenants and runs of each cluster."""
    from gangplan.commands.common import request
    from gangplan.commands.gitops import argocd
    from gangplan.gitops.argocd import RepositorySource

    raise typer.Exit(
        argocd(
            request(workspace, cluster, None, None, "serial", 1),
            RepositorySource(repo, revision, namespace),
            output,
        )
    )


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A rule, a field such as workers, a kind of file, or a policy pack.", metavar="NAME"
        ),
    ] = None,
    workspace: Workspace = None,
) -> None:
    """Explain a rule and how to follow it, or a field, kind or pack; without NAME, list all rules."""
    from gangplan.commands.explain import explain as command

    raise typer.Exit(command(name, workspace))


@app.command(hidden=True)
def docs(
    folder: Annotated[Path, typer.Argument(help="Folder to write.", metavar="DIR")], check: bool = False
) -> None:
    """Write the generated reference pages (for maintainers)."""
    from gangplan.commands.docs import write_docs

    raise typer.Exit(write_docs(folder, check))


_INTERRUPTED = "interrupted; nothing was changed\n"


@cache
def _command() -> Callable[..., object]:
    """The tree of commands, built once: it never changes, and tests run thousands of commands in one process."""
    return typer.main.get_command(app)


@terminable()
def run() -> int:
    """Run the command line. Every error of ours is printed here and nowhere else."""
    with patient() as lost:
        code = _ended()
        if why := lost():
            fatal(ToolError(why, "Free some space, or write somewhere else; some findings were not printed."))
            return Exit.ENVIRONMENT
    return code


def _ended() -> int:
    """The exit code of the command line."""
    try:
        outcome = _command()(_arguments(sys.argv[1:]), prog_name="gangplan", standalone_mode=False)
        if outcome == Exit.INTERRUPTED:  # typer's own answer to an interrupt
            sys.stderr.write(_INTERRUPTED)
        return int(outcome) if isinstance(outcome, int) else Exit.CLEAN
    except typer.Exit as stop:
        return int(stop.exit_code)
    except GangplanError as stop:
        fatal(stop)
        return stop.code
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write(_INTERRUPTED)
        return Exit.INTERRUPTED
    except SystemExit as stop:  # typer's own end, of its completion for shells
        return stop.code if isinstance(stop.code, int) else Exit.ENVIRONMENT if stop.code else Exit.CLEAN
    except Exception as bad:  # noqa: BLE001  the last door: what is left is a usage error or a bug of ours
        return unexpected(bad)


def _arguments(given: list[str]) -> list[str]:
    """`gangplan help plan` as `gangplan plan --help`."""
    return [*given[1:], "--help"] if given[:1] == ["help"] else given
