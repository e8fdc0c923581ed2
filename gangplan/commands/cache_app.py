"""`gangplan cache`: what earlier commands left in a workspace, and how to remove it."""

from __future__ import annotations

import sys

import typer

from gangplan.commands.flags import WorkspaceFlag

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="Show or clear what earlier commands left in .gangplan/cache/.",
)


@app.command()
def info(workspace: WorkspaceFlag = None) -> None:
    """Show how many records of each kind there are, and how much space they take."""
    from gangplan.commands.common import build_request, format_plural
    from gangplan.incremental.store import CACHE_FOLDER, RECORD_KINDS, RecordStore

    store = RecordStore(str(build_request(workspace, None, None, None, "serial", 1).root))
    sizes = {kind: [size for _, size, _ in store.files(kind)] for kind in RECORD_KINDS}
    sizes = {kind or "other": own for kind, own in sizes.items() if own}
    if not sizes:
        sys.stdout.write(f"{CACHE_FOLDER}/ is empty\n")
        return
    for kind, own in sorted(sizes.items()):
        sys.stdout.write(f"{kind:10} {format_plural(len(own), 'record'):>14} {sum(own) / 1024:>10.1f} KiB\n")


@app.command()
def clear(workspace: WorkspaceFlag = None) -> None:
    """Remove the whole cache. The next command computes everything again."""
    from gangplan.commands.common import build_request, format_plural
    from gangplan.errors import build_os_refusal_error
    from gangplan.incremental.store import CACHE_FOLDER, RecordStore

    store = RecordStore(str(build_request(workspace, None, None, None, "serial", 1).root))
    try:
        removed = store.clear()
    except OSError as failed:
        raise build_os_refusal_error(f"{CACHE_FOLDER}/ cannot be cleared", failed) from None
    sys.stdout.write(f"removed {format_plural(removed, 'record')} from {CACHE_FOLDER}/\n")
