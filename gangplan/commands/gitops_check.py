"""`gangplan gitops check`: rebuilds the files that gangplan.yaml lists, and those that name their command,
and compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
import typer.main

from gangplan.commands.fatal import fatal
from gangplan.commands.gitops_files import put_out
from gangplan.commands.gitops_run import folder_of, given_to, said_in
from gangplan.delivery.engine import engine_of, engines
from gangplan.delivery.made import files_of
from gangplan.delivery.stated import Stated
from gangplan.errors import Exit, UserError
from gangplan.gitops.made import PIPELINE, made_by
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


def check(request: Request, app: typer.Typer) -> Exit:
    """Compare all of them. Files that name no command were written by somebody, and are left out."""
    said = said_in(request.root)
    if isinstance(said, Exit):
        return said
    outcomes = [*_stated(request, said), *_found(request, said, app)]
    worst = max(outcomes, default=Exit.CLEAN)
    if worst is Exit.CLEAN:
        sys.stdout.write(
            f"{len(outcomes)} made by `gangplan gitops`, all fresh\n"
            if outcomes
            else "nothing was made by `gangplan gitops`\n"
        )
    return worst


def _stated(request: Request, said: Stated) -> Iterator[Exit]:
    """Compare what gangplan.yaml lists."""
    listed = [engine_of(name) for name in said.engines]
    given = given_to(listed, request)
    if isinstance(given, Exit):
        yield given
        return
    for engine in listed:
        folder = folder_of(request.root, engine, said)
        try:
            files = files_of(engine, given, said=said)
        except UserError as bad:  # the others are still compared
            fatal(bad)
            yield Exit.INPUT
        else:
            yield put_out(files, str(folder), is_check=True)


def _found(request: Request, said: Stated, app: typer.Typer) -> Iterator[Exit]:
    """Compare files of other commands, by their first line: it is parsed, and never run by a shell."""
    program, known = typer.main.get_command(app), [one.name for one in engines()]
    for words, folder, path in _commands(request.root, said):
        if not words or words[0] not in known:
            message = f"{path} says that `gangplan gitops {' '.join(words)}` made it"
            fatal(UserError(message, "Write it again."))
            yield Exit.INPUT
            continue
        arguments = [*words, "-C", str(request.root), "-o", str(folder), "--check"]
        try:
            outcome = program(arguments, prog_name="gangplan gitops", standalone_mode=False)
        except typer.Exit as stop:
            outcome = stop.exit_code
        except UserError as bad:
            message = f"the command in the first line of {path} is refused: {bad.message}"
            fatal(UserError(message, bad.help))
            outcome = Exit.INPUT
        except Exception as bad:
            if not hasattr(bad, "format_message"):  # not a usage error (commands/fatal.py)
                raise
            message = f"the command in the first line of {path} is refused: {bad.format_message()}"
            fatal(UserError(message, "Write it again."))
            outcome = Exit.INPUT
        yield Exit(int(outcome or 0))


def _commands(root: Path, said: Stated) -> Iterator[tuple[list[str], Path, Path]]:
    """Yield each command once, with the folder that it wrote into and a file."""
    seen = set()
    for path, folder in _places(root, said):
        words = made_by(path.read_text(encoding="utf-8", errors="replace"))
        if words is None or words[:1] == [PIPELINE]:
            continue
        if not {*words[:1]} & {*said.engines} and (tuple(words), folder) not in seen:
            seen.add((tuple(words), folder))
            yield words, folder, path


def _places(root: Path, said: Stated) -> Iterator[tuple[Path, Path]]:
    """Yield files that a command may have written, and the folder that it would have written into."""
    for engine in engines():
        folder = folder_of(root, engine, said)
        if engine.home:
            names = sorted(one.name for one in folder.glob("*.yaml") if one.is_file())
        else:
            names = [name for name in _AT_TOP if (folder / name).is_file()]
        yield from ((folder / name, folder) for name in names)
