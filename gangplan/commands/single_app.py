"""The commands that are not in a group: their flags. Other modules implement them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import (
    ClustersFlag,
    ColorFlag,
    ContextFlag,
    DryRunFlag,
    EngineFlag,
    FailOnFlag,
    FixFlag,
    FixPlatformFlag,
    FormatsFlag,
    JobsFlag,
    KeepRunsFlag,
    KubeconfigFlag,
    LimitFlag,
    NamesFilesFlag,
    NoCacheFlag,
    PlaceArgument,
    QuietFlag,
    RefusedShardFlag,
    ReviewFormatFlag,
    ServerFlag,
    ShardFlag,
    SinceFlag,
    SnapshotsFlag,
    SpecsArgument,
    SyncBaseFlag,
    TeamsFlag,
    TimeoutFlag,
    TodayFlag,
    VerboseFlag,
    WorkspaceFlag,
)
from gangplan.errors import UserError


def refuse_flags_with_base(usage: Path | None, **views: bool) -> None:
    """Raise UserError for flags of a plan without a comparison."""
    flags = {"--usage": usage, **{f"--{name}": is_on for name, is_on in views.items()}}
    for name in (name for name, value in flags.items() if value):
        raise UserError(
            f"{name} cannot be used with --base", "Leave one of them out; --cluster, --team and files work."
        )


app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def render(
    context: typer.Context,
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
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
    keep_runs: KeepRunsFlag = False,
    formats: FormatsFlag = None,
    color: ColorFlag = "auto",
    quiet: QuietFlag = False,
    verbose: NamesFilesFlag = False,
    base: SyncBaseFlag = None,
    _shard: RefusedShardFlag = None,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Expand specs, apply overlays, check schemas, and write rendered/."""
    from gangplan.commands.common import build_request
    from gangplan.commands.progress import show_progress_on_terminal
    from gangplan.commands.render import run_render_command as command

    asked = build_request(workspace, cluster, team, specs, engine, jobs, keep_runs, not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, looked=context.obj, progress=tick)
        raise typer.Exit(command(asked, check, output, base, formats, color, quiet, verbose))


@app.command()
def validate(
    context: typer.Context,
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    formats: FormatsFlag = None,
    color: ColorFlag = "auto",
    quiet: QuietFlag = False,
    verbose: VerboseFlag = False,
    fail_on: FailOnFlag = "error",
    today: TodayFlag = None,
    base: SyncBaseFlag = None,
    fix: FixFlag = False,
    dry_run: DryRunFlag = False,
    fix_platform: FixPlatformFlag = False,
    keep_runs: KeepRunsFlag = False,
    snapshot: SnapshotsFlag = None,
    server: ServerFlag = False,
    context_name: ContextFlag = None,
    kubeconfig: KubeconfigFlag = None,
    timeout: TimeoutFlag = 30.0,
    shard: ShardFlag = None,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Check specs and everything that they expand to; changes no file of yours without --fix."""
    from gangplan.commands.common import build_request
    from gangplan.commands.connecting import build_observing_from_flags
    from gangplan.commands.fix import parse_fix_flags
    from gangplan.commands.progress import show_progress_on_terminal
    from gangplan.commands.validate import run_validate_command as command

    fixes = parse_fix_flags(fix, dry_run, fix_platform)
    observing = build_observing_from_flags(snapshot, server, context_name, kubeconfig, timeout)
    asked = build_request(workspace, cluster, team, specs, engine, jobs, keep_runs, not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, looked=context.obj, progress=tick)
        if shard is not None:
            from gangplan.commands.shards import run_validate_command_for_shard

            more = base or fixes or observing
            raise typer.Exit(
                run_validate_command_for_shard(asked, shard, formats, fail_on, today, color, more, quiet)
            )
        done = command(asked, formats, fail_on, today, base, color, fixes, quiet, observing, verbose)
        raise typer.Exit(done)


@app.command()
def plan(
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    base: SinceFlag = None,
    format: ReviewFormatFlag = "text",
    limit: LimitFlag = None,
    today: TodayFlag = None,
    network: Annotated[
        bool,
        typer.Option("--network", help="Show a table of each run's network connections instead."),
    ] = False,
    hostfile: Annotated[
        bool,
        typer.Option("--hostfile", help="Instead, show the host file that each run's launcher will find."),
    ] = False,
    script: Annotated[
        bool,
        typer.Option(
            "--script",
            help="Show the commands that launcher and workers start with, and their scripts, instead.",
        ),
    ] = False,
    usage: Annotated[
        Path | None,
        typer.Option(
            "--usage",
            help="Show what would be admitted now; FILE holds the output of: kubectl get clusterqueues -o json.",
            metavar="FILE",
        ),
    ] = None,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Show what each spec becomes on each cluster: pods, ranks, slots, resources and the final command."""
    from gangplan.commands.common import build_request
    from gangplan.commands.plan import plan as command
    from gangplan.commands.progress import show_progress_on_terminal

    asked = build_request(workspace, cluster, team, specs, engine, jobs, uses_cache=not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, with_flows=network, progress=tick)
        if base is not None:
            from gangplan.commands.review import ReviewFlags, print_plan_since_base

            refuse_flags_with_base(usage, network=network, hostfile=hostfile, script=script)
            raise typer.Exit(print_plan_since_base(asked, ReviewFlags(base, format, limit, today)))
        if limit is not None:
            raise UserError("--limit is for what changed", "Add --base REF.")
        raise typer.Exit(command(asked, format, usage, today, hostfile, script))


@app.command()
def diff(
    base: Annotated[
        str,
        typer.Option(
            "--base",
            help="Compare with the merge base of HEAD and this Git revision; REF.. means REF itself.",
            metavar="REF",
        ),
    ],
    specs: SpecsArgument = None,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
    team: TeamsFlag = None,
    format: ReviewFormatFlag = "text",
    limit: LimitFlag = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print the lines of rendered/ that differ.")] = False,
    today: TodayFlag = None,
    no_cache: NoCacheFlag = False,
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Show which objects changed since a Git revision, by meaning: image, resources, quota, network, ..."""
    from gangplan.commands.common import build_request
    from gangplan.commands.progress import show_progress_on_terminal
    from gangplan.commands.review import ReviewFlags, print_diff_since_base

    asked = build_request(workspace, cluster, team, specs, engine, jobs, uses_cache=not no_cache)
    with show_progress_on_terminal() as tick:
        asked = replace(asked, progress=tick)
        raise typer.Exit(print_diff_since_base(asked, ReviewFlags(base, format, limit, today), raw))


@app.command()
def why(
    what: PlaceArgument,
    workspace: WorkspaceFlag = None,
    cluster: ClustersFlag = None,
) -> None:
    """Show where values of a job come from, what produced a rendered line, or what a source line became."""
    from gangplan.commands.common import build_request
    from gangplan.commands.why import why as command

    raise typer.Exit(command(build_request(workspace, cluster, None, None, "serial", 1), what))


@app.command()
def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A rule, a field such as workers, a kind of file, a policy pack, or the word template.",
            metavar="NAME",
            autocompletion=complete.complete_explain_pages_on_tab,
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Argument(
            help="After the word template: its name, and a version (horovod-large@2).",
            metavar="TEMPLATE",
            autocompletion=complete.build_column_tab_completion("templates", "template"),
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
) -> None:
    """Explain a rule and how to follow it, or a field, kind, pack or template; list all rules without
    NAME."""
    if template is not None:
        from gangplan.commands.explain_template import print_explain_page_of_template

        raise typer.Exit(print_explain_page_of_template(str(name), template, workspace))
    from gangplan.commands.explain import run_explain_command as command

    raise typer.Exit(command(name, workspace))


@app.command(hidden=True)
def docs(
    folder: Annotated[Path, typer.Argument(help="Folder to write.", metavar="DIR")], check: bool = False
) -> None:
    """Write the generated reference pages (for maintainers)."""
    from gangplan.commands.docs import run_docs_command

    raise typer.Exit(run_docs_command(folder, check))
