"""With a cache and without one: the same bytes, findings and exit codes, with far less work."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from gangplan import workspace
from gangplan.incremental import look
from gangplan.incremental.store import RecordStore
from gangplan.pipeline import clusters, scan, seen
from gangplan.pipeline.render import render_tree
from gangplan.pipeline.request import Request
from gangplan.pipeline.seen import has_other_run, key_run_files_by_job, look_at_workspace
from tests import workspaces
from tests.incremental.edits import FILES, story


@pytest.mark.parametrize("seed", range(4))
def test_random_edits_give_the_same_with_and_without_a_cache(tmp_path: Path, seed: int) -> None:
    """`make fuzz WHAT=edits` plays any number of these stories."""
    story(tmp_path, seed, 12)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = workspaces.write(tmp_path, FILES)
    workspaces.render(found)
    return found


def made(root: Path, *words: str) -> tuple[int, int]:
    """Return how many specs and clusters a command expanded."""
    counts = {workspace.load_spec.__code__: 0, clusters.expand_cluster_platform_and_tenants.__code__: 0}

    def count(frame: object, event: str, _: object) -> None:
        code = getattr(frame, "f_code", None)
        if event == "call" and code in counts:
            counts[code] += 1

    sys.setprofile(count)
    try:
        outcome = workspaces.gangplan(*words[:1], "-C", root, "--engine", "serial", *words[1:])
    finally:
        sys.setprofile(None)
    assert outcome.code == 0, outcome.err
    spec, cluster = counts.values()
    return spec, cluster


def test_nothing_is_made_twice(root: Path) -> None:
    """This is true for the same command and for another one."""
    assert made(root, "render") == (0, 0)
    assert made(root, "render", "--check") == (0, 0)
    assert made(root, "validate") == (0, 0)
    assert made(root, "validate", "--no-cache") == (6, 2)


def test_only_a_changed_spec_is_made_again(root: Path) -> None:
    """The results of the others are reused, in every team."""
    path = root / "specs/nlp/notes.yaml"
    path.write_text(path.read_text() + "run: 2\n")
    assert made(root, "validate") == (1, 0)
    assert made(root, "render") == (1, 0)
    assert made(root, "validate") == (0, 0)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("overlays/hall/cluster.yaml", "eu-west", "eu-north"),
        ("specs/vision/team.yaml", "huggingface", "other"),
        ("images/catalog.yaml", "5.0.8", "5.0.9"),
        ("overlays/lab/kustomization.yaml", '"true"', '"false"'),
    ],
)
def test_a_changed_shared_file_affects_all_specs(root: Path, file: str, old: str, new: str) -> None:
    """Platform and team files are shared."""
    path = root / file
    path.write_text(path.read_text().replace(old, new))
    assert made(root, "validate") == (6, 2)


def test_a_secret_is_not_kept(root: Path) -> None:
    """Neither a result that repeats it nor the kept objects of a cluster contain it."""
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    path = root / "specs/nlp/notes.yaml"
    path.write_text(f"{path.read_text()}retries: {secret}\nenv: {{KEY_ID: {secret}}}\n")
    cluster = root / "overlays/lab/cluster.yaml"
    cluster.write_text(cluster.read_text() + f"description: {secret}\n")
    for _ in range(2):
        assert workspaces.gangplan("validate", "-C", root).code == 2
        kept = [file for file in (root / ".gangplan").rglob("*") if file.is_file()]
        assert kept
        assert not [file for file in kept if secret.encode() in file.read_bytes()]


def test_clean_folders_are_not_scanned_again(root: Path) -> None:
    """A folder is scanned once for its contents; one with a secret, each time."""
    workspaces.gangplan("validate", "-C", root)
    seen: list[str] = []

    def note(text: str) -> list[object]:
        seen.append(text)
        return []

    with mock.patch.object(scan, "find_secrets", note):
        workspaces.gangplan("validate", "-C", root)
        assert seen == []
        path = root / "specs/nlp/notes.yaml"
        path.write_text(path.read_text() + "# a line\n")
        workspaces.gangplan("validate", "-C", root)
        assert len(seen) == 4  # the files of its folder


def test_a_render_that_ended_in_between_is_noticed(root: Path) -> None:
    """Between the look of a command and its lock, another one changed a spec and rendered it: nothing that
    this one assumes about rendered/ is true any more."""
    path = root / "specs/nlp/notes.yaml"
    before = look_at_workspace(root, RecordStore(str(root)))
    path.write_text(path.read_text() + "run: 2\n")
    assert workspaces.gangplan("render", "-C", root, "--no-cache").code == 0
    request = Request(root.resolve(), engine="serial", uses_cache=True, looked=before)
    result = render_tree(request)
    there = {path.relative_to(root / "rendered").as_posix() for path in (root / "rendered").rglob("*.yaml")}
    assert {change.path for change in result.changes} == there
    assert workspaces.gangplan("render", "-C", root, "--check", "--no-cache").code == 0


@pytest.mark.parametrize(("fraction", "times"), [(1, 0), (0, 1)])
def test_a_render_just_before_the_look_does_not_count_as_in_between(
    root: Path, fraction: int, times: int
) -> None:
    """Where files have fractions of a second, its end is known well enough; else files are read again."""
    lock = root / ".gangplan/lock"
    before = look_at_workspace(root, RecordStore(str(root)))
    assert before is not None
    ended = (before.began // 1_000_000_000 - 1) * 1_000_000_000 + fraction
    request = Request(root.resolve(), engine="serial", uses_cache=True, looked=before)
    os.utime(lock, ns=(ended, ended))
    with mock.patch("gangplan.pipeline.render.look_at_workspace", wraps=look_at_workspace) as again:
        render_tree(request)
    assert again.call_count == times


def test_what_a_look_has_read_is_not_read_again(root: Path) -> None:
    """After one of a team's specs was rendered, the runs of the others are read by the look alone."""
    store, spec, read = RecordStore(str(root)), root / "specs/nlp/notes.yaml", list[str]()
    digest = look.digest_path_to_detect_changes

    def note(path: str) -> str:
        read.append(path)
        return digest(path)

    time.sleep(0.12)
    before = look_at_workspace(root, store)
    assert before is not None
    store.put("folders", before.memory)
    for line in ("run: 2\n", "# again\n"):
        spec.write_text(spec.read_text() + line)
        read.clear()
        with (
            mock.patch.object(look, "digest_path_to_detect_changes", note),
            mock.patch.object(seen, "digest_path_to_detect_changes", note),
        ):
            assert workspaces.gangplan("render", "-C", root, "--engine", "serial").code == 0
    runs = [one for one in read if "/rendered/" in one and "/runs/" in one]
    assert runs
    assert len(runs) == len(set(runs))


def test_another_run_of_a_job_is_found_by_its_name() -> None:
    names = ["a-00000001.yaml", "a-00000002.yaml", "a-b-00000003.yaml", "launch.yaml", "a-0000000x.yaml"]
    jobs = key_run_files_by_job(names)
    assert jobs == {"a": names[:2], "a-b": names[2:3]}
    assert [has_other_run(jobs, one) for one in names[:4]] == [True, True, False, False]
    assert has_other_run(jobs, "a-00000004.yaml")
