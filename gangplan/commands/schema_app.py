"""`gangplan schema`: its commands and their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gangplan.commands import complete
from gangplan.commands.flags import WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Print the file formats as JSON Schema, and import the CRDs of your clusters.",
)


# As in gangplan.reference.schemas, which would import the formats themselves (tests/start compare the two).
_KINDS = (
    *("spec", "sweep", "template", "team", "cluster", "catalog", "waiver", "workspace"),
    *("findings", "plan", "import"),
)


@app.command("print")
def schema_print(
    kind: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(_KINDS[:-1])} or {_KINDS[-1]}.",
            metavar="KIND",
            autocompletion=complete.build_word_tab_completion(*_KINDS),
        ),
    ],
    workspace: WorkspaceFlag = None,
    team: Annotated[
        str | None,
        typer.Option(
            "--team",
            help="spec: list the images, claims, clusters, GPU models and more that this team may use.",
            metavar="NAME",
            autocompletion=complete.complete_teams_on_tab,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a file format, for editors and other tools.

    With --workspace or --team, the schema of specs lists the names that exist there.
    """
    from gangplan.commands.schema import print_schema
    from gangplan.spec.root import locate_workspace_root

    root = locate_workspace_root(workspace) if workspace is not None or team is not None else None
    raise typer.Exit(print_schema(kind, root, team))


@app.command("import")
def schema_import(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files with CRDs, such as the output of kubectl get crd -o yaml.", metavar="FILE"
        ),
    ],
    workspace: WorkspaceFlag = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            "--cluster",
            help="Import for this cluster only (default: all).",
            metavar="NAME",
            autocompletion=complete.complete_clusters_on_tab,
        ),
    ] = None,
) -> None:
    """Import CRDs into the workspace, so that gangplan checks objects of their kinds against schemas and
    rules.

    Objects of Trainer, JobSet and Kueue are checked only against the rules.
    """
    from gangplan.commands.common import build_request
    from gangplan.commands.schema_import import run_schema_import_command

    raise typer.Exit(
        run_schema_import_command(build_request(workspace, None, None, None, "serial", 1), files, cluster)
    )
