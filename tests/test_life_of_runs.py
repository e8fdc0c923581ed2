"""The life of a run by its commits: started, kept, stopped, retired."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.rulebook import find_rule_example
from gangplan.rules.contention import RUNS_BLOCK_RUNS
from gangplan.source import load_objects
from tests import workspaces
from tests.rules.worlds import commit, put
from tests.workspaces import gangplan, render, write

EXAMPLES = Path(__file__).parent / "examples"
SPEC = "specs/nlp/filings.yaml"
RUNS = "rendered/lab/runs/nlp"
OPTIONS = "argocd.argoproj.io/sync-options"


@pytest.fixture
def committed(root: Path) -> Path:
    """Render and commit the small workspace."""
    render(root)
    commit(root)
    return root


def merge(root: Path) -> None:
    """Commit all of the workspace."""
    git = ["git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "change"], check=True)


def runs(root: Path) -> list[str]:
    """Return the names of the runs in rendered/."""
    return sorted(path.stem for path in (root / RUNS).glob("*-*.yaml"))


def objects(root: Path, run: str) -> dict[str, Any]:
    """Return the objects of a run by kind; of several objects of a kind, the last."""
    return {body["kind"]: body for body in load_objects((root / RUNS / f"{run}.yaml").read_text())}


def edit(root: Path, more: str) -> None:
    """Add lines to the spec."""
    write(root, {SPEC: workspaces.SPEC + more})


def told(root: Path, *flags: str) -> list[tuple[str, str]]:
    """Return severity and rule of the findings of a comparison with the last commit."""
    outcome = gangplan("validate", "-C", root, "--base", "HEAD", *flags)
    return [(one.severity, one.rule) for one in outcome.findings if one.rule != "rendered-stale"]


@pytest.mark.parametrize("keep", ["", "keep: true\n"], ids=["renamed", "kept"])
@pytest.mark.parametrize("digest", ["ee", "ef"], ids=["same-platform", "other-platform"])
def test_a_record_that_leaves_is_not_taken_for_the_run_before(
    committed: Path, keep: str, digest: str
) -> None:
    """The record has the hash of today's spec, too, and nothing lists it any more."""
    (old,) = runs(committed)
    edit(committed, f"run: 3\nretired: [{old}]\n{keep}")
    render(committed)
    merge(committed)
    (now,) = (name for name in runs(committed) if name != old)
    edit(committed, f"run: 3\n{keep}")
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", f"332211ff{digest}")})
    outcome = render(committed)
    if digest == "ee":
        assert outcome.findings == []
    else:
        (found,) = outcome.findings
        assert found.rule == ("run-kept" if keep else "run-renamed")
        assert now in found.message
        assert old not in found.message
    assert len(runs(committed)) == 1
    assert (runs(committed) == [now]) == bool(keep or digest == "ee")


def test_a_run_that_comes_back_from_its_record_is_reported(committed: Path) -> None:
    """Its file is there, but as a record, so it trains again in place of the run that is active."""
    (old,) = runs(committed)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    edit(committed, f"retired: [{old}]\n")
    render(committed)
    merge(committed)
    (now,) = (name for name in runs(committed) if name != old)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG})
    edit(committed, "")
    (found,) = render(committed).findings
    assert (found.rule, f"({now} is now {old})" in found.message) == ("run-renamed", True)


def test_a_stopped_run_becomes_a_record_under_its_name(committed: Path) -> None:
    before = runs(committed)
    (name,) = before
    edit(committed, "state: stopped\n")
    outcome = render(committed)
    assert (outcome.code, outcome.findings) == (Exit.CLEAN, [])
    assert runs(committed) == before
    job = objects(committed, name)["TrainJob"]
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "stopped.gangplan.dev"
    assert job["metadata"]["annotations"][OPTIONS] == "Force=true,Replace=true"
    for body in objects(committed, name).values():
        annotations = body["metadata"]["annotations"]
        assert annotations["gangplan.dev/state"] == "stopped"
        assert "Prune=false" not in annotations.get(OPTIONS, "")
        assert "kustomize.toolkit.fluxcd.io/prune" not in annotations
        assert "argocd.argoproj.io/compare-options" not in annotations


def test_stopping_keeps_the_name_of_the_rendered_run(committed: Path) -> None:
    """The name must stay even where the platform has changed since, as a new name would stop nothing."""
    before = runs(committed)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    edit(committed, "state: stopped\n")
    assert render(committed).findings == []
    assert runs(committed) == before
    merge(committed)
    assert render(committed).findings == []
    assert runs(committed) == before
    checked = gangplan("render", "-C", committed, "--check")
    assert checked.code == Exit.CLEAN


def test_an_edited_record_is_reported_as_forged(committed: Path) -> None:
    (name,) = runs(committed)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    edit(committed, "state: stopped\n")
    path = committed / RUNS / f"{name}.yaml"
    path.write_text(path.read_text().replace("numNodes: 4", "numNodes: 5"))
    assert [one.rule for one in gangplan("validate", "-C", committed).findings] == ["run-forged"]


def test_without_kueue_a_stopped_run_is_only_suspended(tmp_path: Path) -> None:
    """Nothing starts it again, so nothing has to be deleted, and its status stays."""
    root = tmp_path / "dev"
    shutil.copytree(EXAMPLES / "gang-none-dev/input", root)
    (spec,) = (path for path in (root / "specs").rglob("*.yaml") if path.name != "team.yaml")
    spec.write_text(spec.read_text() + "state: stopped\n")
    assert render(root).code == Exit.CLEAN
    (path,) = (root / "rendered").glob("*/runs/*/*-*.yaml")
    (job,) = (body for body in load_objects(path.read_text()) if body["kind"] == "TrainJob")
    assert job["spec"]["suspend"] is True
    assert OPTIONS not in job["metadata"]["annotations"]


def test_each_edit_is_reported(committed: Path) -> None:
    (name,) = runs(committed)
    assert told(committed) == []
    write(committed, {"specs/nlp/second.yaml": workspaces.SPEC.replace("workers: 4", "workers: 2")})
    assert told(committed) == [("note", "run-started")]
    merge(committed)
    edit(committed, "run: 2\n")
    assert ("note", "run-replaced") in told(committed)
    edit(committed, f"run: 2\nretired: [{name}]\n")
    assert {rule for _, rule in told(committed)} == {"run-started", "run-stopped"}


def test_stopped_resumed_and_retired_runs_are_reported(committed: Path) -> None:
    edit(committed, "state: stopped\n")
    assert told(committed) == [("note", "run-stopped")]
    render(committed)
    merge(committed)
    assert told(committed) == []
    edit(committed, "")
    assert told(committed) == [("warning", "run-resumed")]
    (committed / SPEC).unlink()
    assert told(committed) == [("note", "run-retired")]


def test_a_change_of_image_is_reported_with_its_cost_and_both_remedies(committed: Path) -> None:
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    outcome = gangplan("validate", "-C", committed, "--base", "HEAD")
    by_rule = {one.rule: one for one in outcome.findings}
    assert set(by_rule) == {"rendered-stale", "run-replaced"}  # the run is reported once
    found = by_rule["run-replaced"]
    assert found.severity == "warning"
    assert re.search(r"at most [0-9]+ .PU-hours", found.message)
    assert found.message.endswith("; because of images/catalog.yaml:6:13 (images.openmpi.digest)")
    assert "write keepRuns: true in overlays/lab/cluster.yaml" in found.help
    assert "keep: true" in found.help


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "images/catalog.yaml",
            "332211ffee",
            "332211ffef",
            "images/catalog.yaml:6:13 (images.openmpi.digest)",
        ),
        (
            "images/catalog.yaml",
            "registry.example.com/training/openmpi",
            "registry.example.com/tuning/openmpi",
            "images/catalog.yaml:5:17 (images.openmpi.repository)",
        ),
        (
            "overlays/lab/cluster.yaml",
            "topology:",
            "env: {NCCL_DEBUG: INFO}\ntopology:",
            "overlays/lab/cluster.yaml:10:19 (env.NCCL_DEBUG)",
        ),
    ],
)
def test_a_renamed_run_names_the_change_that_caused_it(
    file: str, old: str, new: str, says: str, committed: Path
) -> None:
    """It names the place, and no other place that decides the same fields."""
    text = (committed / file).read_text()
    assert old in text
    write(committed, {file: text.replace(old, new)})
    (found,) = (one for one in gangplan("validate", "-C", committed).findings if one.rule == "run-renamed")
    assert found.message.endswith(f"; because of {says}")


def test_a_change_that_renames_no_run_is_not_named_as_the_cause(committed: Path) -> None:
    """Another range changes only the network policy of a run; the digest alone changes the name."""
    edit(committed, "network: {egress: [s3]}\n")
    render(committed)
    merge(committed)
    cluster = (committed / "overlays/lab/cluster.yaml").read_text()
    write(
        committed,
        {
            "overlays/lab/cluster.yaml": cluster.replace("10.40.8.0/24", "10.40.9.0/24"),
            "images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef"),
        },
    )
    (found,) = (one for one in gangplan("validate", "-C", committed).findings if one.rule == "run-renamed")
    assert found.message.endswith("; because of images/catalog.yaml:6:13 (images.openmpi.digest)")


@pytest.mark.parametrize(
    ("now", "once", "says"),
    [
        (
            "  - worker.sh\n",
            "  - worker.sh\n                  - --grace=60\n",
            r"containers\[0\]\.command\[[0-9]+\] of node",
        ),
        ('exec /bin/sh "/opt/', 'exec sh "/opt/', "the launch scripts"),
        ("dependsOn: [{name: node, status: Ready}]", "dependsOn: []", r"dependsOn.* of launcher"),
        (
            "enableDNSHostnames: true",
            "enableDNSHostnames: false",
            r"TrainingRuntime spec\.template\.spec\..*",
        ),
    ],
)
def test_a_run_renamed_by_another_gangplan_names_the_differing_field(
    now: str, once: str, says: str, committed: Path
) -> None:
    (run,) = (committed / "rendered/lab/runs/nlp").glob("*-*.yaml")
    text = run.read_text()
    earlier = text.replace(now, once)
    assert earlier != text
    run.unlink()
    run.with_name("filings-00000000.yaml").write_text(earlier.replace(run.stem, "filings-00000000"))
    found = {one.rule: one.message for one in gangplan("validate", "-C", committed).findings}
    told = found["run-renamed"].rpartition("; ")[2]
    assert re.fullmatch(f"different in {says}(, .*)?", told), told


def test_a_run_pinned_in_its_spec_is_kept(committed: Path) -> None:
    before = runs(committed)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    edit(committed, "keep: true\n")
    outcome = render(committed)
    assert [(one.severity, one.rule) for one in outcome.findings] == [("note", "run-kept")]
    assert runs(committed) == before
    assert ("note", "run-kept") in told(committed)


def test_a_retired_run_is_a_record_next_to_the_new_one(committed: Path) -> None:
    (old,) = runs(committed)
    edit(committed, f"run: 2\nretired: [{old}]\n")
    assert render(committed).code == Exit.CLEAN
    (new,) = set(runs(committed)) - {old}
    assert "suspend" not in objects(committed, new)["TrainJob"]["spec"]
    record = objects(committed, old)
    assert record["TrainJob"]["spec"]["suspend"] is True
    assert (
        record["TrainJob"]["spec"]["runtimeRef"]["name"]
        == record["TrainingRuntime"]["metadata"]["name"]
        == old
    )
    assert new not in (committed / RUNS / f"{old}.yaml").read_text()
    edit(committed, "run: 2\n")
    render(committed)
    assert runs(committed) == [new]


@pytest.mark.parametrize("name", ["quarterly-0a1b2c3d", "CURRENT"])
def test_only_earlier_runs_of_the_job_can_be_retired(name: str, committed: Path) -> None:
    (current,) = runs(committed)
    edit(committed, f"retired: [{name.replace('CURRENT', current)}]\n")
    outcome = gangplan("validate", "-C", committed)
    assert outcome.errors() == [
        ("specs/nlp/filings.yaml:" + str(workspaces.SPEC.count("\n") + 1) + ":10", "retired-unknown")
    ]
    assert outcome.code == Exit.FINDINGS


def test_an_archived_run_is_not_reported_to_train_again(committed: Path) -> None:
    edit(committed, "state: archived\n")
    render(committed)
    write(committed, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    assert [one.rule for one in gangplan("validate", "-C", committed).findings] == ["rendered-stale"]


def test_a_stopped_run_needs_no_capacity(root: Path) -> None:
    """Two runs block each other until they are stopped."""
    example = find_rule_example(RUNS_BLOCK_RUNS)
    assert example is not None
    put(root, example, "before")
    assert "runs-block-runs" in {one.rule for one in gangplan("validate", "-C", root).findings}
    for path in sorted((root / "specs").rglob("*.yaml")):
        if path.name != "team.yaml":
            path.write_text(path.read_text() + "state: stopped\n")
    assert "runs-block-runs" not in {one.rule for one in gangplan("validate", "-C", root).findings}


def test_why_leads_from_lines_of_records_to_the_edits_that_made_them(committed: Path) -> None:
    (old,) = runs(committed)
    edit(committed, f"run: 2\nretired: [{old}]\n")
    write(committed, {"specs/nlp/second.yaml": workspaces.SPEC + "state: stopped\n"})
    render(committed)
    (second,) = (name for name in runs(committed) if name.startswith("second"))
    for name, cause in ((old, f"{SPEC}:10:10"), (second, "specs/nlp/second.yaml:9:8")):
        lines = (committed / RUNS / f"{name}.yaml").read_text().splitlines()
        number = lines.index("  suspend: true") + 1
        outcome = gangplan("why", "-C", committed, f"{committed / RUNS / name}.yaml:{number}")
        assert cause in outcome.out
        assert "stale" not in outcome.out
    outcome = gangplan("why", "-C", committed, f"{committed / SPEC}:10")
    assert "TrainJob" in outcome.out


def plan_edit(root: Path) -> str:
    """Return what `plan` says about the effect of the edit of the small workspace."""
    outcome = gangplan("plan", "-C", root, root / SPEC)
    assert outcome.code == Exit.CLEAN
    return next(line.split(maxsplit=1)[1] for line in outcome.out.splitlines() if line.startswith("  edit "))


def test_plan_says_what_each_edit_does(root: Path) -> None:
    assert plan_edit(root).startswith("new run, at most ")
    render(root)
    (old,) = runs(root)
    assert plan_edit(root).startswith("none: ")
    edit(root, "run: 2\n")
    assert f"{old} goes on until it is stopped" in plan_edit(root)
    edit(root, f"run: 2\nretired: [{old}]\n")
    assert plan_edit(root).startswith("new run, ")
    assert old not in plan_edit(root)
    edit(root, "state: stopped\n")
    assert plan_edit(root).startswith("stopped: it ends")
    edit(root, "state: archived\n")
    assert plan_edit(root) == "archived: left alone"
    edit(root, "")
    write(root, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    assert plan_edit(root).startswith("retrained, because the platform changed, at most ")
    edit(root, "keep: true\n")
    assert plan_edit(root).startswith("none: ")


def test_a_change_that_retrains_several_runs_is_reported_with_its_total(root: Path) -> None:
    write(root, {"specs/nlp/second.yaml": workspaces.SPEC, "specs/nlp/third.yaml": workspaces.SPEC})
    render(root)
    commit(root)
    write(root, {"images/catalog.yaml": workspaces.CATALOG.replace("332211ffee", "332211ffef")})
    outcome = gangplan("validate", "-C", root, "--base", "HEAD")
    replaced = [one.message for one in outcome.findings if one.rule == "run-replaced"]
    each = re.search(r"retrained, at most ([0-9]+) (.PU-hours)", replaced[0])
    assert each
    total = f"all 3 runs that are retrained take at most {3 * int(each[1])} {each[2]}"
    assert [total in message for message in replaced] == [True, False, False]
