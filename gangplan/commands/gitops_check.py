"""`gangplan gitops check`: files that say with which command they were made, made again and compared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import typer
import typer.main

from gangplan.errors import Exit, UserError
from gangplan.gitops.made import PIPELINE, made_by
from gangplan.pipeline.request import Request
from gangplan.tools.git import folder_inside

# Where files of each command may be, from the top of the repository; those of engines are in any folder of the
# workspace.
_AT_TOP = (
    ".github/workflows/gangplan.yaml",
    ".gitlab-ci.yml",
    ".gitlab/gangplan.yml",
    "Jenkinsfile",
    "CODEOWNERS",
    ".tekton/gangplan-pipeline.yaml",
)
_ENGINES = ("argocd", "flux")
# Commands that a line of a file may name: a line is read, and never run by a shell.
_COMMANDS = (*_ENGINES, "github", "gitlab", "jenkins", "tekton", "codeowners")


def check(request: Request, app: typer.Typer) -> Exit:
    """Compare all of them. Files without such a line are somebody's own, and are left out."""
    program = typer.main.get_command(app)
    worst = Exit.CLEAN
    done = 0
    for words, folder in _commands(request.root):
        arguments = [*words, "-C", str(request.root), "-o", str(folder), "--check"]
        try:
            outcome = program(arguments, prog_name="gangplan gitops", standalone_mode=False)
        except typer.Exit as stop:
            outcome = stop.exit_code
        worst = max(worst, Exit(int(outcome or 0)))
        done += 1
    if worst is Exit.CLEAN:
        sys.stdout.write(
            f"{done} made by `gangplan gitops`, all fresh\n"
            if done
            else "nothing was made by `gangplan gitops`\n"
        )
    return worst


def _commands(root: Path) -> Iterator[tuple[list[str], Path]]:
    """Each command once, with the folder that it wrote into. Raises UserError for one that is not known."""
    seen = set()
    for path, folder in _places(root):
        words = made_by(path.read_text(encoding="utf-8", errors="replace"))
        if words is None or words[:1] == [PIPELINE]:
            continue
        if not words or words[0] not in _COMMANDS:
            raise UserError(
                f"{path} says that `gangplan gitops {' '.join(words)}` made it", "Write it again."
            )
        if (tuple(words), folder) not in seen:
            seen.add((tuple(words), folder))
            yield words, folder


def _places(root: Path) -> Iterator[tuple[Path, Path]]:
    """Files that may be of a command, and the folder that the command would have written into."""
    prefix = folder_inside(root)
    # Without a repository, the workspace is all there is.
    top = root.parents[prefix.count("/")] if prefix else root
    for name in _AT_TOP:
        if (top / name).is_file():
            yield top / name, _short(top)
    for engine in _ENGINES:
        for path in sorted((root / engine).glob("*.yaml")):
            yield path, _short(root / engine)


def _short(folder: Path) -> Path:
    """A folder as people would name it from here."""
    try:
        return folder.relative_to(Path.cwd())
    except ValueError:
        return folder
