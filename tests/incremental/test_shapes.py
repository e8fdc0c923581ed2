"""The next command reuses what kustomize made of a shape, unless it could now come out differently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gangplan.incremental.store import RecordStore
from gangplan.pipeline.shapes import MOST, StoredShapes
from gangplan.tools.kustomize import KustomizeEngine
from gangplan.workspace import load_workspace
from tests import workspaces
from tests.incremental.edits import FILES

SPEC = "specs/nlp/notes.yaml"
PATCHED = """\
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
patches:
  - target: {kind: TrainingRuntime}
    patch: |-
      - op: add
        path: /metadata/labels/site.example.com~1hall
        value: LABEL
"""
Built = Callable[..., int]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {**FILES, "overlays/lab/kustomization.yaml": PATCHED.replace("LABEL", "north")}
    found = workspaces.write(tmp_path, files)
    workspaces.render(found)
    return found


@pytest.fixture
def built(root: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    """Return a function that runs a command and counts how often it starts kustomize."""
    starts: list[Path] = []
    build = KustomizeEngine.build

    def counted(engine: KustomizeEngine, directory: Path, timeout_s: float = 60.0) -> bytes:
        starts.append(directory)
        return build(engine, directory, timeout_s)

    monkeypatch.setattr(KustomizeEngine, "build", counted)

    def command(*words: str) -> int:
        starts.clear()
        outcome = workspaces.gangplan(*words[:1], "-C", root, "--engine", "serial", *words[1:])
        assert outcome.code == 0, outcome.err
        return len(starts)

    return command


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.usefixtures("builder")
def test_a_changed_spec_starts_no_kustomize(root: Path, built: Built) -> None:
    with (root / SPEC).open("a") as file:
        file.write("run: 2\n")
    assert built("validate") == 0
    assert built("render") == 0
    assert built("render", "--no-cache", "--check") > 0  # which gives the same bytes


@pytest.mark.usefixtures("builder")
def test_another_patch_is_built_again(root: Path, built: Built) -> None:
    edit(root / "overlays/lab/kustomization.yaml", "north", "south")
    assert built("render") > 0
    assert "site.example.com/hall: south" in "".join(
        path.read_text() for path in root.glob("rendered/lab/runs/**/*-*.yaml")
    )


@pytest.mark.usefixtures("builder")
def test_another_version_of_kustomize_builds_again(
    root: Path, built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KustomizeEngine, "label", property(lambda self: f"{self.name} 0"))
    assert built("validate") > 0


@pytest.mark.usefixtures("builder")
def test_a_shape_of_another_form_is_built(root: Path, built: Built) -> None:
    """The patch enters labels, so that one more label is another shape."""
    with (root / SPEC).open("a") as file:
        file.write("labels: {project: filings}\n")
    assert built("render") > 0


@pytest.mark.usefixtures("builder")
def test_results_that_could_contain_a_secret_are_not_kept(root: Path, built: Built) -> None:
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    edit(root / "overlays/lab/kustomization.yaml", "north", secret)
    workspaces.gangplan("validate", "-C", root, "--engine", "serial")
    kept = [path for path in root.glob(".gangplan/cache/**/*") if path.is_file()]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]


def test_the_newest_shapes_stay(root: Path) -> None:
    component = load_workspace(root).components["lab"]
    kept = StoredShapes(RecordStore(str(root)), "lab", component)
    kept.add({("kind", str(number)): {"number": number} for number in range(MOST + 3)})
    again = StoredShapes(RecordStore(str(root)), "lab", component)
    assert again.get(("kind", "2")) is None
    assert again.get(("kind", "3")) == {"number": 3}
