"""`gangplan images`: its commands and their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import ClustersFlag, FormatsFlag, QuietFlag, TeamsFlag, TodayFlag, WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Look at images and at what they are built from.",
)


@app.callback()
def _group() -> None:
    """Images: the catalog, what they are built from, and what registries have."""


@app.command()
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Containerfiles, or folders that are searched for them (default: images/ of the workspace).",
            metavar="FILE",
        ),
    ] = None,
    workspace: WorkspaceFlag = None,
    image: Annotated[
        str | None,
        typer.Option(
            "--image",
            help="Entry of the catalog to compare with (default: the one that the file's folder is called).",
            metavar="NAME",
            autocompletion=complete.build_column_tab_completion("images", "image"),
        ),
    ] = None,
    format: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="text, json, sarif, junit, github, gitlab or markdown; FORMAT=FILE writes to a file; may be repeated.",
            metavar="FORMAT[=FILE]",
        ),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="Lowest severity that fails the check: error, warning or note.",
            metavar="WORD",
        ),
    ] = "error",
    quiet: QuietFlag = False,
) -> None:
    """Check Containerfiles for what training images must have. Nothing is built or run."""
    from gangplan.commands.images_lint import run_images_lint_command

    raise typer.Exit(run_images_lint_command(files or (), workspace, image, format, fail_on, quiet))


Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Images of the catalog (default: all).",
        metavar="NAME",
        autocompletion=complete.build_column_tab_completion("images", "image"),
    ),
]


@app.command()
def pin(
    names: Names = None,
    workspace: WorkspaceFlag = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster",
            help="Also ask where this cluster pulls the images from, mirrors included; may be repeated.",
            metavar="NAME",
            autocompletion=complete.complete_clusters_on_tab,
        ),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            "--via",
            help="Look tags up where this cluster pulls from, not where the images come from.",
            metavar="NAME",
            autocompletion=complete.complete_clusters_on_tab,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", "--dry-run", help="Write nothing: show what would change."),
    ] = False,
    format: FormatsFlag = None,
    quiet: QuietFlag = False,
) -> None:
    """Look up what the catalog's tags mean now, and write the digests into it. Asks registries."""
    from gangplan.commands.images_pin import run_images_pin_command

    raise typer.Exit(run_images_pin_command(names or (), workspace, cluster or (), via, check, format, quiet))


ImageAsked = Annotated[
    str,
    typer.Argument(
        help="An image of the catalog, a reference with its registry, or oci:PATH[:TAG] (a layout: folder or tar).",
        metavar="IMAGE",
        autocompletion=complete.build_column_tab_completion("images", "image"),
    ),
]
Entry = Annotated[
    str | None,
    typer.Option(
        "--image",
        help="Entry of the catalog to compare with (default: by name or repository).",
        metavar="NAME",
        autocompletion=complete.build_column_tab_completion("images", "image"),
    ),
]
OneCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        help="As this cluster pulls it.",
        metavar="NAME",
        autocompletion=complete.complete_clusters_on_tab,
    ),
]
Arch = Annotated[
    str | None,
    typer.Option(
        "--arch",
        help="amd64 or arm64 (default: the first that the catalog lists).",
        metavar="NAME",
    ),
]
TextOrJson = Annotated[
    str,
    typer.Option("--format", help="text or json.", metavar="FORMAT"),
]


@app.command()
def inspect(
    image: ImageAsked,
    workspace: WorkspaceFlag = None,
    entry: Entry = None,
    cluster: OneCluster = None,
    arch: Arch = None,
    layers: Annotated[
        bool,
        typer.Option("--layers", help="Download the layers from the registry, to look at the files inside."),
    ] = False,
    format: TextOrJson = "text",
) -> None:
    """Show what is inside an image, and where the catalog differs from it. Nothing in the image is run."""
    from gangplan.commands.images_inspect import InspectFlags, run_images_inspect_command

    raise typer.Exit(
        run_images_inspect_command(InspectFlags(image, entry, cluster, arch, layers), workspace, format)
    )


@app.command("list")
def list_(
    workspace: WorkspaceFlag = None,
    team: TeamsFlag = None,
    cluster: ClustersFlag = None,
    format: Annotated[str, typer.Option("--format", help="table or json.", metavar="NAME")] = "table",
) -> None:
    """Show the images that a team may use: what is inside, tier, owner, scan, and which specs use them."""
    from gangplan.commands.images_check import run_images_list_command
    from gangplan.spec.root import find_workspace_root_above

    root = find_workspace_root_above((workspace or Path.cwd()).resolve())
    raise typer.Exit(run_images_list_command(root, team or (), cluster or (), format))


@app.command()
def check(
    workspace: WorkspaceFlag = None,
    format: FormatsFlag = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            help="Lowest severity that fails the check: error, warning or note.",
            metavar="WORD",
        ),
    ] = "error",
    today: TodayFlag = None,
    quiet: QuietFlag = False,
) -> None:
    """Check the catalog for consistency, and against the clusters and the specs. Asks no registry."""
    from gangplan.commands.images_check import run_images_check_command

    raise typer.Exit(run_images_check_command(workspace, format, fail_on, today, quiet))
