"""Links, pipes and huge files in a workspace: refused, and the content of their targets is never shown."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gangplan.errors import Exit
from tests import workspaces
from tests.workspaces import gangplan, write

CANARY = "CANARY_7f3a"
SECRET = f"{CANARY}={CANARY}\nkind: {CANARY}\n{CANARY}_key: {CANARY}\n"
PLACES = (
    *("specs", "specs/nlp", "specs/nlp/team.yaml", "specs/nlp/filings.yaml", "specs/nlp/deep"),
    *("overlays", "overlays/lab", "overlays/lab/cluster.yaml", "overlays/lab/kustomization.yaml"),
    *("overlays/lab/patch.yaml", "overlays/lab/schemas", "images", "images/catalog.yaml", "images/scans"),
    *("images/scans/a.json", "policies", "policies/own.yaml", "policies/own", "policies/own/pack.yaml"),
    *("policies/waivers", "policies/waivers/a.yaml", "policies/tests/a.yaml", "schemas", "schemas/a/b.json"),
)
COMMANDS = (
    ("validate",),
    ("render",),
    ("render", "--check"),
    ("plan",),
    ("policy", "list"),
    ("policy", "test"),
    ("cluster", "check"),
    ("validate", "--fix"),
)


@pytest.fixture
def world(root: Path) -> Path:
    """Write the small workspace with a file in every folder that is read."""
    patch = "- {op: add, path: /metadata/labels/site.example.com~1a, value: b}\n"
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    return write(
        root,
        {
            "overlays/lab/kustomization.yaml": component
            + "- {target: {kind: Namespace}, path: patch.yaml}\n",
            "overlays/lab/patch.yaml": patch,
        },
    )


def linked(root: Path, place: str, outside: Path) -> None:
    """Replace a file or folder by a link to one with the canary in it."""
    path = root / place
    is_folder = path.is_dir() or not path.suffix
    if is_folder and path.is_dir():
        shutil.copytree(path, outside)
        for file in [one for one in outside.rglob("*") if one.is_file()]:
            file.write_text(SECRET)
        shutil.rmtree(path)
    elif is_folder:
        outside.mkdir()
        (outside / "pack.yaml").write_text(SECRET)
        (outside / "a.json").write_text(SECRET)
    else:
        outside.write_text(SECRET)
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(outside)


@pytest.mark.parametrize("place", PLACES)
def test_a_link_is_refused_and_its_target_never_shown(world: Path, place: str, tmp_path: Path) -> None:
    linked(world, place, tmp_path / "outside")
    for command in COMMANDS:
        outcome = gangplan(*command, "-C", world)
        assert CANARY not in outcome.out + outcome.err, command
        assert outcome.code == Exit.INPUT, (command, outcome.err)
        assert place in outcome.err, (command, outcome.err)
    assert not (world / "rendered").exists()


@pytest.mark.parametrize("place", [one for one in PLACES if "." in one])
def test_a_pipe_is_refused(world: Path, place: str) -> None:
    """Reading it would never end."""
    path = world / place
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    for command in (("validate",), ("policy", "list"), ("plan",)):
        outcome = gangplan(*command, "-C", world)
        assert outcome.code == Exit.INPUT, outcome.err
        assert place in outcome.err


def test_a_file_of_gigabytes_is_refused(world: Path) -> None:
    for place in ("schemas/a/b.json", "images/scans/a.json", "policies/own/pack.yaml"):
        path = world / place
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            file.truncate(10 << 30)
        assert gangplan("validate", "-C", world).errors() == [(place, "file-unreadable")]
        path.unlink()


def test_all_links_are_reported_at_once(world: Path, tmp_path: Path) -> None:
    for place in ("specs/nlp/team.yaml", "images/catalog.yaml"):
        linked(world, place, tmp_path / Path(place).name)
    wanted = [("images/catalog.yaml", "file-unreadable"), ("specs/nlp/team.yaml", "file-unreadable")]
    assert gangplan("validate", "-C", world).errors() == wanted


def test_files_that_editors_leave_are_ignored(world: Path) -> None:
    names = (
        ".filings.yaml.swp",
        "filings.yaml~",
        "#filings.yaml#",
        ".yamllint.yaml",
        "._filings.yaml",
        ".DS_Store",
    )
    for folder in ("specs/nlp", "overlays/lab", "images"):
        write(world, {f"{folder}/{name}": "rules: {}\n" for name in names})
        (world / folder / ".#filings.yaml").symlink_to("somebody@host.4711:1700000000")
    assert gangplan("validate", "-C", world).code == Exit.CLEAN


@pytest.mark.parametrize("name", [".second.yaml", ".second.yml", "..second.yaml"])
def test_a_hidden_spec_is_reported(world: Path, name: str) -> None:
    write(world, {f"specs/nlp/{name}": workspaces.SPEC})
    outcome = gangplan("validate", "-C", world)
    assert outcome.errors() == [(f"specs/nlp/{name}", "spec-file-name")]
    assert outcome.findings[0].help == "Rename it to second.yaml, or remove it."


@pytest.mark.parametrize("name", ["", "lock", "stage", "stage.aside"])
def test_a_link_in_the_state_folder_is_refused(world: Path, tmp_path: Path, name: str) -> None:
    outside = write(tmp_path / "outside", {"stage/precious": "1", "lock": "2"})
    before = workspaces.tree(outside)
    state = world / ".gangplan"
    if name:
        state.mkdir()
        (state / name).symlink_to(outside / name if name == "lock" else outside)
    else:
        state.symlink_to(outside)
    outcome = gangplan("render", "-C", world)
    assert outcome.code == Exit.INPUT
    assert "is a link: a render would write and remove files where it leads" in outcome.err
    assert workspaces.tree(outside) == before


def test_a_link_as_the_state_of_an_output_folder_is_refused(world: Path, tmp_path: Path) -> None:
    outside = write(tmp_path / "outside", {"stage/precious": "1"})
    (tmp_path / ".out.gangplan").symlink_to(outside)
    assert gangplan("render", "-C", world, "--output", tmp_path / "out").code == Exit.INPUT
    assert (outside / "stage/precious").read_text() == "1"
