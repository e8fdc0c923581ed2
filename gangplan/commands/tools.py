"""`gangplan tools`: which other programs are used, and how to install them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gangplan.tools.find import ToolSearch

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Show and install the other programs that gangplan uses: kustomize and kubeconform.",
)


@app.command("list")
def list_tools() -> None:
    """Show each program: its version, where it comes from, and which engine is used."""
    from gangplan.tools.find import search_tool
    from gangplan.tools.kustomize import find_kustomize_engine
    from gangplan.tools.pins import KUBECONFORM_TOOL, KUSTOMIZE_TOOL

    searches = {tool.name: search_tool(tool) for tool in (KUSTOMIZE_TOOL, KUBECONFORM_TOOL)}
    rows = [_build_tool_row(outcome) for outcome in searches.values()]
    builder = find_kustomize_engine()
    if builder is not None and searches[KUSTOMIZE_TOOL.name].found is None:
        rows[0] = (KUSTOMIZE_TOOL.name, builder.version, "kubectl", str(builder.path))
    _print_table(rows)
    judge = searches[KUBECONFORM_TOOL.name].found
    typer.echo(f"overlays are built by {builder.label if builder else 'nothing: overlays cannot be built'}")
    typer.echo(f"schemas are judged by {f'{judge.label} and ' if judge else ''}the embedded validator")
    for outcome in searches.values():
        for refused in outcome.refused:
            typer.echo(f"note: {refused}")
        if outcome.found is None:
            typer.echo(f"help: {outcome.error().help}")


@app.command("install")
def install_tools(
    names: Annotated[
        list[str] | None, typer.Argument(help="kustomize or kubeconform (default: both).", metavar="NAME")
    ] = None,
) -> None:
    """Install the programs that are missing, into the tool cache."""
    import time

    from gangplan.errors import ToolError, UserError
    from gangplan.tools import provision
    from gangplan.tools.find import find_tool
    from gangplan.tools.pins import PINNED_TOOLS

    known = {tool.name: tool for tool in PINNED_TOOLS}
    for name in names or ():
        if name not in known:
            raise UserError(f"unknown tool {name!r}; known: {', '.join(known)}")
    failures: list[ToolError] = []
    for tool in [known[name] for name in names or known]:
        started = time.monotonic()
        try:
            found = find_tool(tool)
            done = "found" if found else "installed"
            found = found or provision.install_pinned_tool(tool, lambda line: typer.echo(line, err=True))
        except ToolError as error:
            # The other program is installed even if this one cannot be.
            failures.append(error)
            continue
        typer.echo(f"{found.label} {done} in {time.monotonic() - started:.1f} s: {found.path}")
    if failures:
        raise ToolError("; ".join(error.message for error in failures), failures[0].help)


def _build_tool_row(outcome: ToolSearch) -> tuple[str, str, str, str]:
    found = outcome.found
    if found is None:
        embedded = "missing" if outcome.tool.name == "kustomize" else "embedded"
        return outcome.tool.name, "-", embedded, "-"
    return found.tool.name, found.version, found.origin, str(found.path)


def _print_table(rows: list[tuple[str, str, str, str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo("  ".join(cells).rstrip())
