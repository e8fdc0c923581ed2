"""Objects of a run that comes after others: a template of the run, and a Job that creates it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gangplan.source import load_objects
from tests import workspaces
from tests.pipelines.worlds import CHAIN, PREPARE, TRAIN, findings, name_of, runs, stock, waits_for
from tests.schedules.test_rendered import PROGRAM
from tests.schedules.worlds import one, template
from tests.workspaces import SPEC, gangplan, write


def test_no_engine_creates_a_run_that_comes_after_another(root: Path) -> None:
    stock(root)
    found = runs(root)
    assert findings(root) == []
    kinds = [body["kind"] for body in found["filings"]]
    assert kinds == ["NetworkPolicy", "TrainingRuntime", "ConfigMap", "Job"]
    assert one(found["prepare"], "TrainJob")["metadata"]["name"] == name_of(found["prepare"])
    job = one(found["filings"], "Job")
    assert job["metadata"]["name"].startswith(f"{name_of(found['filings'])}-after-")
    assert waits_for(found["filings"]) == [name_of(found["prepare"])]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"registry.example.com/kubectl@sha256:{'ab' * 32}"
    assert container["args"][1] == name_of(found["filings"])


def test_after_changes_neither_the_name_nor_the_run(root: Path) -> None:
    stock(root, {**CHAIN, "filings": SPEC})
    plain = runs(root)["filings"]
    stock(root)
    held = runs(root)["filings"]
    assert name_of(held) == name_of(plain)
    assert template(held) == one(plain, "TrainJob")
    assert one(held, "TrainingRuntime") == one(plain, "TrainingRuntime")


def test_a_run_waits_for_the_current_run_of_its_predecessor(root: Path) -> None:
    stock(root)
    before = runs(root)
    write(root, {"specs/nlp/prepare.yaml": PREPARE.replace("prepare.py", "better.py")})
    after = runs(root)
    assert name_of(after["filings"]) == name_of(before["filings"])
    assert waits_for(after["filings"]) == [name_of(after["prepare"])] != waits_for(before["filings"])
    names = {one(bodies["filings"], "Job")["metadata"]["name"] for bodies in (before, after)}
    assert len(names) == 2  # nothing in a Job may change


def test_the_order_and_the_choice_of_files_make_no_difference(root: Path) -> None:
    stock(root, {"aaa": TRAIN, **CHAIN})
    runs(root)
    folder = root / "rendered/lab/runs/nlp"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert gangplan("render", "-C", root, "specs/nlp/aaa.yaml").code == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert gangplan("render", "-C", root, "--check").code == 0


def test_rendering_a_changed_job_also_renders_those_after_it(root: Path) -> None:
    stock(root)
    runs(root)
    write(root, {"specs/nlp/prepare.yaml": PREPARE.replace("prepare.py", "better.py")})
    assert gangplan("render", "-C", root, "specs/nlp/prepare.yaml").code in (0, 1)
    assert gangplan("render", "-C", root, "--check").code == 0


def test_the_waiting_pod_does_not_belong_to_the_run(root: Path) -> None:
    stock(root)
    found = runs(root)["filings"]
    labels = one(found, "Job")["spec"]["template"]["metadata"]["labels"]
    assert labels["gangplan.dev/role"] == "scheduler"
    wanted = one(found, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    assert not wanted.items() <= labels.items()
    assert not any("queue" in key for body in found for key in body["metadata"]["labels"])


def test_an_engine_prunes_the_job_but_no_run(root: Path) -> None:
    stock(root)
    guard = "kustomize.toolkit.fluxcd.io/prune"
    found = runs(root)["filings"]
    assert {body["kind"] for body in found if guard in body["metadata"]["annotations"]} == {
        "ConfigMap",
        "NetworkPolicy",
        "TrainingRuntime",
    }
    assert "Prune=false" in template(found)["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]


def test_a_run_waits_for_several_and_for_all_trials_of_a_sweep(root: Path) -> None:
    body = SPEC.partition("kind: TrainingJob\n")[2] + "checkpoint: {to: filings}\n"
    lines = "".join(f"  {line}\n" for line in body.splitlines())
    lines = lines.replace("train.py]", "train.py, '--lr=${{ parameters.lr }}']")
    lines = lines.replace("workers: 4", "workers: 1")
    sweep = (
        "apiVersion: gangplan.dev/v1\nkind: Sweep\nparameters: {grid: {lr: [1e-4, 3e-4, 1e-3]}}\n"
        f"maxConcurrent: 1\ntemplate:\n{lines}"
    )
    stock(root, {**CHAIN, "rates": sweep, "filings": SPEC + "after: [rates, prepare]\n"})
    found = runs(root)
    trials = sorted(name_of(bodies) for job, bodies in found.items() if job.startswith("rates-"))
    assert len(trials) == 3
    assert sorted(waits_for(found["filings"])) == sorted([*trials, name_of(found["prepare"])])


@pytest.mark.parametrize("state", ["stopped", "archived"])
def test_a_run_that_is_over_waits_for_nothing(state: str, root: Path) -> None:
    stock(root, {**CHAIN, "filings": f"{TRAIN}state: {state}\n"})
    kinds = [body["kind"] for body in runs(root)["filings"]]
    assert kinds == ["NetworkPolicy", "TrainingRuntime", "TrainJob"]


def test_an_earlier_run_can_be_retired(root: Path) -> None:
    stock(root)
    old = name_of(runs(root)["filings"])
    changed = TRAIN.replace("32Gi", "48Gi") + f"retired: [{old}]\n"
    stock(root, {**CHAIN, "filings": changed})
    runs(root)
    record = load_objects((root / f"rendered/lab/runs/nlp/{old}.yaml").read_text(encoding="utf-8"))
    assert [body["kind"] for body in record] == ["NetworkPolicy", "TrainingRuntime", "TrainJob"]
    run = one(record, "TrainJob")
    assert (run["metadata"]["name"], run["spec"]["suspend"]) == (old, True)


def test_a_kept_run_is_created_as_it_was(root: Path) -> None:
    stock(root)
    before = template(runs(root)["filings"])
    catalog = (root / "images/catalog.yaml").read_text(encoding="utf-8").replace("1b0f7c64", "2b0f7c64")
    stock(root, {**CHAIN, "filings": TRAIN + "keep: true\n"}, **{"images/catalog.yaml": catalog})
    assert template(runs(root)["filings"])["spec"] == before["spec"]


ONLY_FOR_PIPELINES = (
    *("gangplan.resolve.after", "gangplan.resolve.order", "gangplan.resolve.handed_on"),
    *("gangplan.generators.after", "gangplan.pipeline.after", "gangplan.trace.schedule"),
)


def test_workspaces_without_after_import_no_modules_for_it(root: Path) -> None:
    workspaces.stock(root)
    asked = [sys.executable, "-c", PROGRAM, str(root)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert "gangplan.generators.trainjob" in done.stdout
    assert [name for name in ONLY_FOR_PIPELINES if f"'{name}'" in done.stdout] == []


def test_a_run_waits_for_a_job_that_is_made_from_a_template(root: Path) -> None:
    stock(root)
    before = waits_for(runs(root)["filings"])
    head, job = PREPARE.split("image:")
    template = "apiVersion: gangplan.dev/v1\nkind: JobTemplate\njob:\n" + "".join(
        f"  {line}\n" for line in f"image:{job}".splitlines()
    )
    write(
        root,
        {"jobtemplates/prepared.yaml": template, "specs/nlp/prepare.yaml": f"{head}template: prepared\n"},
    )
    assert findings(root) == []
    assert waits_for(runs(root)["filings"]) == before
