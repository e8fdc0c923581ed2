"""The workspaces that examples of rules start from, and how one side of an example is added."""

from __future__ import annotations

import subprocess
from pathlib import Path

from gangplan.errors import Exit
from gangplan.rules.model import Example
from tests import workspaces
from tests.standing import base as shared
from tests.workspaces import Outcome, gangplan

OVERLAY = "overlays/lab/kustomization.yaml"
# The beginning of a file to which an example only adds.
HEADERS = {
    "patch": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n",
}


def build(root: Path, example: Example, side: str | None) -> Outcome:
    """Write the workspace with `before` or `after` (None: with neither), and run the command."""
    put(root, example, side)
    return command(root, example.run)


def put(root: Path, example: Example, side: str | None) -> None:
    """Write the workspace."""
    if example.base == "shared":
        shared.workspace(root)
    else:
        workspaces.stock(root)
    _both(root, example)
    if example.run.startswith(("since", "again")):
        workspaces.render(root)
        if example.run.startswith("since"):
            commit(root)
    if side is not None:
        _one(root, example, side)


def _both(root: Path, example: Example) -> None:
    """Write what both sides have."""
    workspaces.write(root, example.files)
    for file, old, new in example.changes:
        text = (root / file).read_text() if (root / file).exists() else ""
        assert old in text, f"{old!r} is not in {file}"
        (root / file).write_text(text.replace(old, new, 1) if old else text + new)


def _one(root: Path, example: Example, side: str) -> None:
    """Write what one side has."""
    path = root / (OVERLAY if example.place == "patch" else example.place)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else HEADERS.get(example.place, "")
    new = example.before if side == "before" else example.after
    if new is None:
        path.unlink(missing_ok=True)
    elif example.whole or (not path.exists() and example.place != "patch"):
        path.write_text(new)
    elif example.old:
        assert text.count(example.old) >= 1, f"{example.old!r} is not in {example.place}"
        path.write_text(text.replace(example.old, new, 1))
    elif example.place == "patch" and not new.strip():
        path.unlink(missing_ok=True)
    else:
        path.write_text(text + new)


def command(root: Path, run: str) -> Outcome:
    """Run the example's command: `validate`, `validate --flag`, `since` and `again` are validations, too."""
    name, *flags = run.split()
    if name == "images":
        return gangplan(name, *flags, "-C", root)
    if name == "since":
        return gangplan("validate", "-C", root, "--base", "HEAD", *flags)
    if name == "again":
        return gangplan("validate", "-C", root, *flags)
    if name == "import":
        return gangplan("import", "mpijob", root / "job.yaml", "-C", root, "--dry-run", *flags)
    if name == "overlay":
        return gangplan("import", "overlay", root / "merge.yaml", "--cluster", "lab", "-C", root, *flags)
    if name == "pipeline":
        made = ("pipeline", "tekton", "-C", root, "-o", root / "pipelines")
        assert gangplan(*made).code == Exit.CLEAN
        return gangplan(*made, "--check")
    if name == "lint":
        return gangplan("images", "lint", "-C", root, *flags)
    if name == "check":
        flags = [flag.replace("ROOT", str(root)) for flag in flags]
        return gangplan("cluster", "check", "-C", root, *flags)
    if name == "quota":
        return gangplan("cluster", "quota", "-C", root, *(flag.replace("ROOT", str(root)) for flag in flags))
    outcome = gangplan(name, "-C", root, *flags)
    assert outcome.code != Exit.ENVIRONMENT, outcome.err
    return outcome


def commit(root: Path) -> None:
    """Commit the whole workspace as the first commit of a repository."""
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
