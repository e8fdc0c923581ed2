"""`gangplan gitops check`: rebuilds the files that gangplan.yaml lists, and those that name their command,
and compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
import typer.main

from gangplan.commands.fatal import print_fatal
from gangplan.commands.gitops_files import write_or_print_files
from gangplan.commands.gitops_run import (
    collect_gitops_engine_input,
    find_output_folder_of_gitops_engine,
    load_gitops_settings,
)
from gangplan.delivery.engine import find_delivery_engine, list_engines
from gangplan.delivery.made import build_delivery_engine_files
from gangplan.delivery.stated import GitopsSettings
from gangplan.errors import Exit, UserError
from gangplan.gitops.made import PIPELINE_COMMAND, parse_gitops_command_header
from gangplan.pipeline.request import Request

# Where forges read recipes, from the top of the repository.
_AT_TOP = (
    ".github/workflows/gangplan.yaml",
    ".gitlab-ci.yml",
    ".gitlab/gangplan.yml",
    "Jenkinsfile",
    "CODEOWNERS",
    ".tekton/gangplan-pipeline.yaml",
)


def run_gitops_check_command(request: Request, app: typer.Typer) -> Exit:
    """Compare all of them. Files that name no command were written by somebody, and are left out."""
    said = load_gitops_settings(request.root)
    if isinstance(said, Exit):
        return said
    outcomes = [
        *_check_listed_gitops_engines(request, said),
        *_check_unlisted_gitops_commands(request, said, app),
    ]
    worst = max(outcomes, default=Exit.CLEAN)
    if worst is Exit.CLEAN:
        sys.stdout.write(
            f"{len(outcomes)} made by `gangplan gitops`, all fresh\n"
            if outcomes
            else "nothing was made by `gangplan gitops`\n"
        )
    return worst


def _check_listed_gitops_engines(request: Request, said: GitopsSettings) -> Iterator[Exit]:
    """Compare what gangplan.yaml lists."""
    listed = [find_delivery_engine(name) for name in said.engines]
    given = collect_gitops_engine_input(listed, request)
    if isinstance(given, Exit):
        yield given
        return
    for engine in listed:
        folder = find_output_folder_of_gitops_engine(request.root, engine, said)
        try:
            files = build_delivery_engine_files(engine, given, said=said)
        except UserError as bad:  # the others are still compared
            print_fatal(bad)
            yield Exit.INPUT
        else:
            yield write_or_print_files(files, str(folder), is_check=True)


def _check_unlisted_gitops_commands(
    request: Request, said: GitopsSettings, app: typer.Typer
) -> Iterator[Exit]:
    """Compare files of other commands, by their first line: it is parsed, and never run by a shell."""
    program, known = typer.main.get_command(app), [one.name for one in list_engines()]
    for words, folder, path in _list_header_commands(request.root, said):
        if not words or words[0] not in known:
            message = f"{path} says that `gangplan gitops {' '.join(words)}` made it"
            print_fatal(UserError(message, "Write it again."))
            yield Exit.INPUT
            continue
        arguments = [*words, "-C", str(request.root), "-o", str(folder), "--check"]
        try:
            outcome = program(arguments, prog_name="gangplan gitops", standalone_mode=False)
        except typer.Exit as stop:
            outcome = stop.exit_code
        except UserError as bad:
            message = f"the command in the first line of {path} is refused: {bad.message}"
            print_fatal(UserError(message, bad.help))
            outcome = Exit.INPUT
        except Exception as bad:
            if not hasattr(bad, "format_message"):  # not a usage error (commands/fatal.py)
                raise
            message = f"the command in the first line of {path} is refused: {bad.format_message()}"
            print_fatal(UserError(message, "Write it again."))
            outcome = Exit.INPUT
        yield Exit(int(outcome or 0))


def _list_header_commands(root: Path, said: GitopsSettings) -> Iterator[tuple[list[str], Path, Path]]:
    """Yield each command once, with the folder that it wrote into and a file."""
    seen = set()
    for path, folder in _list_engine_files(root, said):
        words = parse_gitops_command_header(path.read_text(encoding="utf-8", errors="replace"))
        if words is None or words[:1] == [PIPELINE_COMMAND]:
            continue
        if not {*words[:1]} & {*said.engines} and (tuple(words), folder) not in seen:
            seen.add((tuple(words), folder))
            yield words, folder, path


def _list_engine_files(root: Path, said: GitopsSettings) -> Iterator[tuple[Path, Path]]:
    """Yield files that a command may have written, and the folder that it would have written into."""
    for engine in list_engines():
        folder = find_output_folder_of_gitops_engine(root, engine, said)
        if engine.home:
            names = sorted(one.name for one in folder.glob("*.yaml") if one.is_file())
        else:
            names = [name for name in _AT_TOP if (folder / name).is_file()]
        yield from ((folder / name, folder) for name in names)
