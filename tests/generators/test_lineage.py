"""The lineage of a run is in fields that can change without making it another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.pipeline.lineage import annotate_image_digest
from gangplan.source import load_objects
from tests import workspaces
from tests.workspaces import CATALOG, SPEC, render

RUNS = "rendered/lab/runs/nlp"
DIGEST = "sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee"
OTHER = DIGEST.replace("332211ffee", "332211ffef")


def bodies(root: Path) -> dict[str, dict[str, object]]:
    """Return the objects of the only run, by kind."""
    (path,) = (root / RUNS).glob("*-*.yaml")
    return {body["kind"]: body for body in load_objects(path.read_text())}


def test_a_run_names_its_image_spec_and_datasets(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "jobs")
    render(root)
    (before,) = (root / RUNS).glob("*-*.yaml")
    annotations = bodies(root)["TrainJob"]["metadata"]["annotations"]  # type: ignore[index]
    assert annotations["gangplan.dev/image-digest"] == DIGEST
    assert len(annotations["gangplan.dev/spec-hash"]) == 16
    assert annotations["gangplan.dev/source"] == "specs/nlp/filings.yaml"
    assert "gangplan.dev/datasets" not in annotations
    assert before.stem == "filings-dced5d0c", "the name of a run does not depend on its lineage"
    data = SPEC + "data: {filings: /data, lidar: env}\ncheckpoint: {to: archive}\nlabels: {model: llama}\n"
    workspaces.write(root, {"specs/nlp/filings.yaml": data.replace("archive", "filings")})
    render(root)
    metadata = bodies(root)["TrainJob"]["metadata"]
    assert metadata["annotations"]["gangplan.dev/datasets"] == "filings,lidar"  # type: ignore[index]
    assert metadata["labels"]["model"] == "llama"  # type: ignore[index]


@pytest.mark.parametrize(("spec", "flags"), [(SPEC, ["--keep-runs"]), (f"{SPEC}keep: true\n", [])])
def test_a_kept_run_names_its_own_image(spec: str, flags: list[str], root: Path) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": spec})
    render(root)
    (path,) = (root / RUNS).glob("*-*.yaml")
    before = path.read_bytes()
    workspaces.write(root, {"images/catalog.yaml": CATALOG.replace(DIGEST, OTHER)})
    render(root, *flags)
    assert path.read_bytes() == before


def test_the_image_of_a_kept_run_is_read_from_its_containers(root: Path) -> None:
    """The annotation in the file may say anything, or be missing where an earlier gangplan wrote it."""
    render(root)
    (path,) = (root / RUNS).glob("*-*.yaml")
    before = path.read_text()
    line = f"    gangplan.dev/image-digest: {DIGEST}\n"
    assert line in before
    workspaces.write(root, {"images/catalog.yaml": CATALOG.replace(DIGEST, OTHER)})
    for said in ("", line.replace(DIGEST, OTHER), line.replace(DIGEST, "none")):
        path.write_text(before.replace(line, said))
        render(root, "--keep-runs")
        assert path.read_text() == before


def test_a_stopped_run_names_its_own_image(root: Path) -> None:
    """The spec is stopped after the catalog has changed: the record is of the run that ran."""
    render(root)
    (path,) = (root / RUNS).glob("*-*.yaml")
    files = {"images/catalog.yaml": CATALOG.replace(DIGEST, OTHER)}
    workspaces.write(root, {**files, "specs/nlp/filings.yaml": f"{SPEC}state: stopped\n"})
    render(root)
    assert [one.name for one in (root / RUNS).glob("*-*.yaml")] == [path.name]
    annotations = bodies(root)["TrainJob"]["metadata"]["annotations"]  # type: ignore[index]
    assert annotations["gangplan.dev/state"] == "stopped"
    assert annotations["gangplan.dev/image-digest"] == DIGEST
    assert OTHER not in path.read_text()


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ([f"a@{DIGEST}", f"b@{DIGEST}"], DIGEST),
        ([f"a@{DIGEST}", f"a@{OTHER}"], None),
        (["a:1"], None),
        ([7], None),
    ],
)
def test_only_a_digest_shared_by_all_pods_is_named(images: list[object], said: str | None) -> None:
    aside = {"name": "aside", "image": "c@d"}
    pods = [{"containers": [{"name": "node", "image": image}, aside]} for image in images]
    today = {"gangplan.dev/image-digest": "today's"}
    job = {"kind": "TrainJob", "metadata": {"annotations": today}, "spec": {}}
    runtime = {"kind": "TrainingRuntime", "spec": {"pods": [*pods, {"containers": "none"}, None]}}
    *_, told = annotate_image_digest([runtime, job])
    assert told["metadata"]["annotations"].get("gangplan.dev/image-digest") == said
    assert today == {"gangplan.dev/image-digest": "today's"}
