"""`gangplan new`: its commands. Their flags are the fields of the formats, and are built when one is
called."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import typer.core

from gangplan.commands import complete
from gangplan.commands.flags import QuietFlag, WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Write a new job, sweep, template, team, cluster, image or waiver from flags, or from questions on a terminal.",
)


class _FieldCommand(typer.core.TyperCommand):
    """A command with a flag per field.

    The formats need pydantic, which the help of other commands does not load.
    """

    def get_params(self, ctx: Any) -> Any:
        if not self.params:
            from gangplan.commands.new_flags import build_flag_parameters

            self.params = build_flag_parameters(str(self.name))
        return super().get_params(ctx)

    def invoke(self, ctx: Any) -> Any:
        from gangplan.commands.new import run_new_command

        raise typer.Exit(run_new_command(str(self.name), ctx.params))


@app.command(cls=_FieldCommand)
def job() -> None:
    """Write a spec into specs/<team>/, and show what it becomes and whether its queue admits it."""


@app.command()
def sweep(
    name: Annotated[
        str | None, typer.Argument(help="Name of the sweep, and of its file.", metavar="NAME")
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Spec of the job that each trial runs.",
            metavar="SPEC",
            autocompletion=complete.complete_jobs_on_tab,
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            help="Parameter and its values; --NAME in the command gets them. May be repeated.",
            metavar="NAME=A,B,...",
        ),
    ] = None,
    max_concurrent: Annotated[
        int | None, typer.Option("--max-concurrent", help="Trials that may run at once.", metavar="N", min=1)
    ] = None,
    workspace: WorkspaceFlag = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Print the file, write nothing.")] = False,
    quiet: QuietFlag = False,
) -> None:
    """Write a sweep of a job into the folder of the job, and show what its trials need."""
    from gangplan.commands.new_sweep import ask_for_sweep_on_terminal, run_new_sweep_command

    given = ask_for_sweep_on_terminal(name, job, parameter or [], max_concurrent, workspace)
    raise typer.Exit(run_new_sweep_command(*given, workspace, dry_run, quiet))


@app.command()
def template(
    name: Annotated[str, typer.Argument(help="Name of the template, and of its file.", metavar="NAME")],
    job: Annotated[
        str,
        typer.Option(
            "--from",
            help="Spec of the job that becomes the template.",
            metavar="SPEC",
            autocompletion=complete.complete_jobs_on_tab,
        ),
    ],
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            help="Parameter: a field of the job, or --NAME in its command; its default is the job's value. May be repeated.",
            metavar="NAME[=DEFAULT]",
        ),
    ] = None,
    all_teams: Annotated[
        bool, typer.Option("--all-teams", help="Write it into jobtemplates/, for every team.")
    ] = False,
    workspace: WorkspaceFlag = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Print the file, write nothing.")] = False,
    quiet: QuietFlag = False,
) -> None:
    """Write a template of a job for its team, or for all teams."""
    from gangplan.commands.new_template import run_new_template_command

    raise typer.Exit(
        run_new_template_command(name, job, parameter or [], all_teams, workspace, dry_run, quiet)
    )


@app.command(cls=_FieldCommand)
def team() -> None:
    """Write specs/<team>/team.yaml."""


@app.command(cls=_FieldCommand)
def cluster() -> None:
    """Write overlays/<cluster>/cluster.yaml."""


@app.command(cls=_FieldCommand)
def image() -> None:
    """Add an image to images/catalog.yaml."""


@app.command(cls=_FieldCommand)
def waiver() -> None:
    """Write a waiver into policies/waivers/."""
