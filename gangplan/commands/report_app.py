"""`gangplan report`: merges reports and publishes them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands.flags import ColorFlag, EngineFlag, FormatsFlag, JobsFlag, WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Merge the reports of shards, and show one on a pull request.",
)


@app.callback()
def _group() -> None:
    pass


@app.command()
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(help="The JSON reports of all shards of one validate.", metavar="FILE"),
    ],
    workspace: WorkspaceFlag = None,
    formats: FormatsFlag = None,
    color: ColorFlag = "auto",
    engine: EngineFlag = "auto",
    jobs: JobsFlag = 0,
) -> None:
    """Print one report that merges those of all shards, and exit with its exit code."""
    from gangplan.commands.common import build_request
    from gangplan.commands.shards import run_report_merge_command as command

    raise typer.Exit(command(build_request(workspace, None, None, None, engine, jobs), files, formats, color))


@app.command()
def comment(
    file: Annotated[Path, typer.Argument(help="The text, in Markdown.", metavar="FILE")],
    forge: Annotated[
        str | None,
        typer.Option("--forge", help="github or gitlab (default: the one CI runs on).", metavar="NAME"),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository", help="owner/name, or the project on GitLab (default: CI's).", metavar="NAME"
        ),
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(
            "--number", help="Number of the pull request (default: the one CI runs for).", metavar="N"
        ),
    ] = None,
    api: Annotated[
        str | None, typer.Option("--api", help="Address of the forge's API (default: CI's).", metavar="URL")
    ] = None,
) -> None:
    """Write a comment on a pull request, or update the earlier one; the token is in GITHUB_TOKEN,
    GITLAB_TOKEN or GANGPLAN_FORGE_TOKEN."""
    from gangplan.commands.comment import run_report_comment_command

    given = {"forge": forge, "repository": repository, "number": number, "api": api}
    raise typer.Exit(run_report_comment_command(file, given))
