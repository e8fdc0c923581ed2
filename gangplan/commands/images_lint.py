"""`gangplan images lint`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gangplan.commands.absent import build_missing_image_error
from gangplan.commands.common import choose_exit_code
from gangplan.commands.reports import find_report_folder, parse_format_flags, publish_reports
from gangplan.commands.validate import parse_severity_flag
from gangplan.containerfile.lint import lint_containerfile
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding, sort_findings
from gangplan.reference.one_policy import find_workspace_to_explain
from gangplan.report.model import Report
from gangplan.workspace import load_workspace

#: A Containerfile is written by hand; a file next to it is a configuration.
MOST_BYTES = 2**20


def run_images_lint_command(
    named: Sequence[Path],
    workspace: Path | None,
    entry: str | None,
    formats: Sequence[str] | None,
    fail_on: str,
    is_quiet: bool,
) -> Exit:
    """Check Containerfiles, each against its entry of the catalog. Raises UserError if there are none."""
    root = find_workspace_to_explain(workspace)
    at = root or Path.cwd()
    wanted, level = parse_format_flags(formats, at, is_quiet=is_quiet), parse_severity_flag(fail_on)
    world = load_workspace(root) if root is not None else None
    images = world.catalog.images if world is not None and world.catalog is not None else {}
    if entry is not None and entry not in images:
        raise build_missing_image_error(entry, world)
    if not named and root is None:
        raise UserError("there is no workspace here", "Name Containerfiles, or the workspace with -C.")
    files = list(_list_containerfiles_of_arguments(named or [at / "images"]))
    if not files:
        raise UserError(
            f"there is no Containerfile in {', '.join(map(str, named)) or 'images/'}",
            "Files are called Containerfile or Dockerfile, with or without an ending.",
        )
    found: list[Finding] = []
    for path in files:
        name = entry or path.parent.name
        found += lint_containerfile(
            _format_path_of_argument(path, at),
            _read_containerfile_of_argument(path),
            _build_context_file_reader(path.parent),
            images.get(name),
            name,
        )
    found = sort_findings(found)
    report = Report(
        tuple(found), {"Containerfiles": len(files)}, (), (), find_report_folder(at), level, "images lint"
    )
    publish_reports(report, wanted, at)
    return choose_exit_code(found, level)


def _list_containerfiles_of_arguments(named: Sequence[Path]) -> Iterator[Path]:
    for path in named:
        if path.is_file():
            yield path
        elif path.is_dir():
            for folder, folders, files in os.walk(path):
                folders.sort()
                yield from (Path(folder, name) for name in sorted(files) if _is_containerfile(name))
        else:
            raise UserError(f"there is no file {path}", "Name a Containerfile, or a folder.")


def _is_containerfile(name: str) -> bool:
    bare = name.lower()
    return any(
        bare == one or bare.startswith(f"{one}.") or bare.endswith(f".{one}")
        for one in ("containerfile", "dockerfile")
    )


def _read_containerfile_of_argument(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "Check its permissions.") from error
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} is larger than {MOST_BYTES >> 20} MiB", "This is not a Containerfile.")
    return data.decode("utf-8", "replace")


def _build_context_file_reader(folder: Path) -> Callable[[str], str | None]:
    """Return a reader for the build context, which is the folder of the Containerfile; nothing else is
    read."""

    def read(name: str) -> str | None:
        path = folder / name
        inside = path.resolve().is_relative_to(folder.resolve())
        if not inside or not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8", errors="replace")

    return read


def _format_path_of_argument(path: Path, root: Path) -> str:
    """Return the path from the workspace, or as it was named."""
    whole = path.resolve()
    return (
        whole.relative_to(root.resolve()).as_posix()
        if whole.is_relative_to(root.resolve())
        else path.as_posix()
    )
