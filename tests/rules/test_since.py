"""`--base REVISION`: what a sync from a commit to the current tree would refuse or leave behind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.transition import check_transition_between_commits
from tests import plain, workspaces
from tests.rules.worlds import commit
from tests.workspaces import gangplan, gangplan_process

NEW = SchemaVersions("1.34", "2.3", "0.19", "0.12")
CASES: dict[str, dict[str, Any]] = plain.load(
    Path(__file__).with_name("transitions.yaml").read_text(encoding="utf-8")
)


def versions(case: dict[str, Any]) -> SchemaVersions:
    """Return the versions of the case; the newest by default."""
    return SchemaVersions("1.34", case.get("trainer", "2.3"), case.get("kueue", "0.19"), "0.12")


@pytest.mark.parametrize("name", CASES)
def test_each_transition_has_the_listed_findings(name: str) -> None:
    case = CASES[name]
    found = check_transition_between_commits(case["before"], case["after"], versions(case))
    told = [(one.problem.rule, ".".join(map(str, one.problem.path))) for one in found]
    assert told == [tuple(line.split(" ", 1)) if " " in line else (line, "") for line in case["finds"]]
    assert all(one.problem.message and one.problem.help for one in found)


def test_runs_of_equal_names_in_two_namespaces_are_two_users_of_queues() -> None:
    """The run whose queue stays does not hide the other one."""
    labels = {"gangplan.dev/job": "a", "kueue.x-k8s.io/queue-name": "q"}
    runs, queues = (
        [{"kind": kind, "metadata": {"name": name, "namespace": home, **more}, "spec": spec} for home in "ab"]
        for kind, name, more, spec in (
            ("TrainJob", "a-1", {"labels": labels}, {}),
            ("LocalQueue", "q", {}, {"clusterQueue": "c"}),
        )
    )
    (found,) = check_transition_between_commits([*runs, *queues], [*runs, queues[1]], NEW)
    assert found.key == ("LocalQueue", "a", "q")
    assert "LocalQueue q is removed while runs use it (a/a-1)" in found.problem.message


def test_a_flavor_that_no_queue_lists_any_more_is_deleted_under_its_runs() -> None:
    case = CASES["a flavor whose labels the run asks for"]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": []}]}]
    queue = {"kind": "ClusterQueue", "metadata": {"name": "c"}, "spec": {"resourceGroups": groups}}
    after = [one for one in case["after"] if one["kind"] != "ClusterQueue"]
    (blocked,) = check_transition_between_commits(case["before"], case["after"], NEW)
    (freed,) = check_transition_between_commits(case["before"], [*after, queue], NEW)
    assert blocked.problem.message.endswith("its deletion blocks")
    assert freed.problem.message.endswith("admits other runs onto them, whose pods wait")


def test_the_help_for_a_removed_flavor_names_its_queues() -> None:
    case = CASES["a flavor whose labels the run asks for"]
    (found,) = check_transition_between_commits(case["before"], case["after"], NEW)
    assert "- {target: {kind: ClusterQueue, name: c}, patch: " in found.problem.help


def test_an_unchanged_tree_has_no_findings() -> None:
    for case in CASES.values():
        for side in ("before", "after"):
            assert check_transition_between_commits(case[side], case[side], NEW) == []


# With Git


@pytest.fixture
def committed(root: Path) -> Path:
    """Render and commit the small workspace."""
    workspaces.render(root)
    commit(root)
    return root


def since(root: Path, *flags: str) -> Any:
    """Run a validation against the commit."""
    return gangplan("validate", "-C", root, "--base", "HEAD", *flags)


def test_a_clean_tree_has_no_findings(committed: Path) -> None:
    outcome = since(committed)
    assert (outcome.findings, outcome.code) == ([], Exit.CLEAN)


def test_a_runtime_edited_by_hand_is_reported(committed: Path) -> None:
    """The commit has another text under the name that is rendered now."""
    (path,) = (committed / "rendered/lab/runs/nlp").glob("*-*.yaml")
    path.write_text(
        re.sub(r"terminationGracePeriodSeconds: \d+", "terminationGracePeriodSeconds: 7", path.read_text())
    )
    subprocess.run(["git", "-C", committed, "add", "-A"], check=True)
    subprocess.run(
        ["git", "-C", committed, "-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "edit"],
        check=True,
    )
    outcome = since(committed)
    assert outcome.errors() == [("specs/nlp/filings.yaml:1:1", "runtime-edited")]
    assert outcome.code == Exit.FINDINGS
    assert "replicatedJobs" in outcome.err
    checked = gangplan("render", "-C", committed, "--check", "--base", "HEAD")
    stale = path.relative_to(committed).as_posix()
    assert checked.errors() == [(f"{stale}:1:1", "rendered-stale"), *outcome.errors()]
    assert checked.code == Exit.FINDINGS


def test_a_renamed_queue_is_reported_at_its_name(committed: Path) -> None:
    """Two runs that move with their team's queue are one finding, at the queue's name."""
    spec = committed / "specs/nlp/filings.yaml"
    spec.with_name("second.yaml").write_bytes(spec.read_bytes())
    workspaces.render(committed)
    subprocess.run(["git", "-C", committed, "add", "-A"], check=True)
    subprocess.run(
        ["git", "-C", committed, "-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qm", "two"],
        check=True,
    )
    cluster = committed / "overlays/lab/cluster.yaml"
    text = cluster.read_text().replace("nlp: {queue: training", "nlp: {queue: trainings")
    cluster.write_text(text)
    line, column = _place(text, "trainings")
    outcome = since(committed)
    told = [shown for shown in outcome.findings if shown.rule in ("immutable-changed", "queue-removed")]
    assert [shown.place for shown in told] == [f"overlays/lab/cluster.yaml:{line}:{column}"] * 2, outcome.err
    assert told[0].message.endswith("and 1 more object")
    assert told[0].help.startswith("Keep the queue's name")


def write_patch(root: Path, patch: str) -> None:
    """Write the overlay of the cluster with one patch."""
    head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n"
    workspaces.write(root, {"overlays/lab/kustomization.yaml": f"{head}{patch}\n"})


@pytest.mark.parametrize("kind", ["LocalQueue", "ClusterQueue"])
def test_the_queue_is_drained_by_the_patch_of_the_help(kind: str, committed: Path) -> None:
    """The patch renders with a warning about runs that go on, and with nothing once they are stopped."""
    cluster = committed / "overlays/lab/cluster.yaml"
    text = cluster.read_text()
    cluster.write_text(text.replace("nlp: {queue: training", "nlp: {queue: trainings"))
    (removed,) = [one for one in since(committed).findings if one.rule == "queue-removed"]
    (patch,) = re.findall(r"add (- .*) to patches:", removed.help)
    local = "kind: LocalQueue, namespace: nlp, name: training}"
    assert local in patch
    patch = patch if kind == "LocalQueue" else patch.replace(local, "kind: ClusterQueue, name: nlp}")
    cluster.write_text(text)
    write_patch(committed, patch)
    drained = gangplan("render", "-C", committed)
    assert drained.code == Exit.CLEAN, drained.err
    assert [(one.rule, one.severity) for one in drained.findings] == [("never-admitted", "warning")]
    message = drained.findings[0].message
    assert message.startswith(f"{kind}/")
    assert "the run of filings in namespace nlp is not admitted" in message
    spec = committed / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text() + "state: stopped\n")
    stopped = gangplan("render", "-C", committed)
    assert (stopped.code, stopped.findings) == (Exit.CLEAN, [])


def test_a_queue_that_is_held_is_a_warning(committed: Path) -> None:
    """Hold keeps what trains and admits nothing: it pauses a queue for a maintenance."""
    change = '[{"op": "add", "path": "/spec/stopPolicy", "value": "Hold"}]'
    write_patch(committed, f"- {{target: {{kind: LocalQueue}}, patch: '{change}'}}")
    (told,) = gangplan("render", "-C", committed).findings
    assert (told.rule, told.severity) == ("never-admitted", "warning")
    assert (
        "the run of filings in namespace nlp waits until LocalQueue training is no longer held"
        in told.message
    )


@pytest.mark.parametrize(("policy", "found"), [("None", 1), ("HoldAndDrain", 0)])
def test_a_drained_queue_may_be_removed(policy: str, found: int) -> None:
    """No run holds quota in a ClusterQueue that Kueue has drained."""
    label = {"gangplan.dev/job": "a", "kueue.x-k8s.io/queue-name": "q"}
    run = {"kind": "TrainJob", "metadata": {"name": "a-1", "namespace": "a", "labels": label}, "spec": {}}
    local = {"kind": "LocalQueue", "metadata": {"name": "q", "namespace": "a"}, "spec": {"clusterQueue": "c"}}
    queue = {"kind": "ClusterQueue", "metadata": {"name": "c"}, "spec": {"stopPolicy": policy}}
    told = check_transition_between_commits([run, local, queue], [run, local], NEW)
    assert len(told) == found


def _place(text: str, word: str) -> tuple[int, int]:
    before = text[: text.index(word)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def test_the_finding_about_a_removed_file_has_a_line(committed: Path) -> None:
    (committed / "specs/nlp/filings.yaml").unlink()
    outcome = since(committed)
    places = [shown.place for shown in outcome.findings if shown.rule == "run-removed"]
    assert len(places) == 1
    assert places[0].startswith("rendered/lab/runs/nlp/filings-")
    assert places[0].endswith(".yaml:1:1")


def test_a_run_that_leaves_one_cluster_of_several_is_ended_there_alone(root: Path) -> None:
    """state: stopped in the spec would end it on the other cluster, too."""
    spec, team = root / "specs/nlp/filings.yaml", root / "specs/nlp/team.yaml"
    team.write_text(team.read_text().replace("clusters: [lab]", "clusters: [lab, lab2]"))
    workspaces.write(root, {"overlays/lab2/cluster.yaml": (root / "overlays/lab/cluster.yaml").read_text()})
    workspaces.render(root)
    (run,) = (one.stem for one in (root / "rendered/lab2/runs/nlp").glob("filings-*.yaml"))
    commit(root)
    spec.write_text(spec.read_text() + "clusters: [lab]\n")
    (removed,) = [one for one in since(root).findings if one.rule == "run-removed"]
    assert removed.message.endswith("cluster lab2)")
    command = f"kubectl delete trainjobs.trainer.kubeflow.org {run} -n nlp."
    assert removed.help.endswith(f"To end it on lab2 alone, once this is synced there: {command}")
    spec.unlink()
    told = [one.help for one in since(root).findings if one.rule == "run-removed"]
    assert [one.partition(" in")[0] for one in told] == ["Set state: stopped"] * 2


def test_runs_of_a_cluster_that_leaves_git_are_reported(root: Path) -> None:
    """Nothing is synced there any more, so its queues and policies are not reported."""
    team = root / "specs/nlp/team.yaml"
    team.write_text(team.read_text().replace("clusters: [lab]", "clusters: [lab, lab2]"))
    workspaces.write(root, {"overlays/lab2/cluster.yaml": (root / "overlays/lab/cluster.yaml").read_text()})
    workspaces.render(root)
    (run,) = (one.stem for one in (root / "rendered/lab2/runs/nlp").glob("filings-*.yaml"))
    commit(root)
    shutil.rmtree(root / "overlays/lab2")
    team.write_text(team.read_text().replace("clusters: [lab, lab2]", "clusters: [lab]"))
    workspaces.render(root)
    (removed,) = since(root).findings
    assert (removed.rule, removed.message.startswith(f"run {run} is removed from Git")) == (
        "run-removed",
        True,
    )
    assert removed.message.endswith("cluster lab2)")


def test_a_run_on_a_renamed_cluster_may_be_the_same_run(root: Path) -> None:
    workspaces.render(root)
    commit(root)
    (root / "overlays/lab").rename(root / "overlays/lab-eu")
    team = root / "specs/nlp/team.yaml"
    team.write_text(team.read_text().replace("clusters: [lab]", "clusters: [lab-eu]"))
    workspaces.render(root)
    (removed,) = [one for one in since(root).findings if one.rule == "run-removed"]
    assert removed.help.startswith("If lab has another name today, its runs are the same: end nothing.")


def test_a_conflict_in_the_base_is_reported(committed: Path) -> None:
    (path,) = (committed / "rendered/lab/runs/nlp").glob("*-*.yaml")
    text = path.read_text()
    path.write_text("<<<<<<< ours\n" + text)
    subprocess.run(
        ["git", "-C", committed, "-c", "user.name=t", "-c", "user.email=t@e", "commit", "-qam", "conflict"],
        check=True,
    )
    path.write_text(text)
    outcome = since(committed)
    assert [shown.rule for shown in outcome.findings] == ["base-unreadable"]


def test_a_workspace_in_a_folder_of_a_repository_is_compared(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path / "training")
    workspaces.render(root)
    commit(tmp_path)
    (root / "specs/nlp/filings.yaml").rename(root / "specs/nlp/other.yaml")
    outcome = since(root)
    assert [shown.rule for shown in outcome.findings] == ["rendered-stale", "run-removed", "run-started"]


def test_render_check_with_a_base_reports_replaced_runs(committed: Path) -> None:
    spec = committed / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text().replace("workers: 4", "workers: 8"))
    outcome = gangplan("render", "-C", committed, "--check", "--base", "HEAD")
    assert [shown.rule for shown in outcome.findings] == ["rendered-stale", "run-replaced"]
    assert outcome.code == Exit.FINDINGS
    workspaces.render(committed)
    again = gangplan("render", "-C", committed, "--check", "--base", "HEAD")
    assert [shown.rule for shown in again.findings] == ["run-replaced"]
    assert again.code == Exit.CLEAN


def test_a_base_without_rendered_has_no_findings(root: Path) -> None:
    commit(root)
    assert since(root).code == Exit.CLEAN


@pytest.mark.parametrize("revision", ["no-such-branch", "HEAD~7", "-x", "--help", "a b", "HEAD:specs"])
def test_an_unknown_revision_is_refused(revision: str, committed: Path) -> None:
    outcome = gangplan("validate", "-C", committed, f"--base={revision}")
    assert outcome.code == Exit.INPUT
    assert f"Git knows no revision '{revision}'" in outcome.err


def test_a_workspace_outside_git_is_an_environment_error(root: Path) -> None:
    outcome = gangplan("validate", "-C", root, "--base", "HEAD")
    assert outcome.code == Exit.ENVIRONMENT
    assert "clone of the repository" in outcome.err


def test_a_missing_git_program_is_an_environment_error(committed: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    env = {"PATH": str(tmp_path / "bin"), "HOME": os.environ["HOME"]}
    outcome = gangplan_process("validate", "-C", committed, "--base", "HEAD", env=env)
    assert outcome.code == Exit.ENVIRONMENT
    assert "Install git" in outcome.err


@pytest.mark.parametrize("flags", [["--team", "nlp"], ["specs/nlp/filings.yaml"]])
def test_a_base_with_a_selection_is_refused(flags: list[str], committed: Path) -> None:
    outcome = since(committed, *flags)
    assert outcome.code == Exit.INPUT
    assert "whole clusters" in outcome.err


def test_render_with_a_base_needs_check(committed: Path) -> None:
    assert gangplan("render", "-C", committed, "--base", "HEAD").code == Exit.INPUT
