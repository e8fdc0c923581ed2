"""Tekton as the sync: the script of its task, run here, and the account under which it runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.errors import Exit
from gangplan.model.kinds import RENDERED_KINDS
from tests import plain
from tests.gitops import scripts
from tests.gitops.test_ci import made
from tests.sync.store import serving
from tests.sync.test_sync import kubeconfig_of
from tests.workspaces import gangplan


def objects(folder: Path, *flags: str) -> dict[str, Any]:
    """Return what a command writes, by kind and name."""
    found = [body for text in made("tekton", folder, *flags).values() for body in plain.load_all(text)]
    return {f"{one['kind']}/{one['metadata'].get('name', '')}": one for one in found}


def test_the_task_syncs_what_was_merged(tmp_path: Path) -> None:
    """Run the script from the file, with the folders that earlier tasks leave."""
    step = objects(tmp_path / "out", "--sync", "kubeconfig")["Task/gangplan-sync"]["spec"]["steps"][0]
    source = tmp_path / "source"
    scripts.repository(source / "repository")
    programs = scripts.program(source / "venv/bin")
    with serving() as store:
        kubeconfig = kubeconfig_of(store, tmp_path / "secret/config")
        given = {"SOURCE": source, "WORKSPACE": ".", "CLUSTER": "lab", "KUBECONFIG": kubeconfig}
        assert given.keys() == {one["name"] for one in step["env"]}
        done = subprocess.run(
            ["sh", "-c", step["script"]],
            env={"PATH": os.environ["PATH"], **{name: str(value) for name, value in given.items()}},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == Exit.CLEAN, done.stderr
        assert "created" in done.stdout
        assert store.named("TrainJob")
    shutil.rmtree(programs)


def test_the_sync_task_of_every_cluster_runs_after_the_checks(tmp_path: Path) -> None:
    found = objects(tmp_path, "--sync", "kubeconfig")
    tasks = {one["name"]: one for one in found["Pipeline/gangplan"]["spec"]["tasks"]}
    assert tasks["sync-lab"]["runAfter"] == ["validate", "check"]
    assert tasks["sync-lab"]["when"] == [{"input": "$(params.sync)", "operator": "in", "values": ["true"]}]
    assert {"name": "kubeconfig", "workspace": "kubeconfig"} in tasks["sync-lab"]["workspaces"]


def test_only_the_pipeline_of_a_push_syncs(tmp_path: Path) -> None:
    made_files = made("tekton", tmp_path, "--sync", "in-cluster", "--cluster", "lab")
    push, pull = (plain.load(made_files[f".tekton/gangplan-{one}.yaml"]) for one in ("push", "pull-request"))
    assert {"name": "sync", "value": "true"} in push["spec"]["params"]
    (of_task,) = push["spec"]["taskRunSpecs"]
    assert of_task["serviceAccountName"] == "gangplan-sync"
    assert of_task["podTemplate"] == {"automountServiceAccountToken": True}
    assert "sync" not in str(pull)


def test_the_account_may_do_what_a_sync_needs_and_no_more(tmp_path: Path) -> None:
    """tests/e2e/test_sync.py syncs with this account in the lab."""
    flags = ("--sync", "in-cluster", "--cluster", "lab", "--namespace", "tools")
    found = objects(tmp_path, *flags)
    rules = found["ClusterRole/gangplan-sync"]["rules"]
    assert {one.group for one in RENDERED_KINDS} == {group for rule in rules for group in rule["apiGroups"]}
    assert not any("*" in rule[part] for rule in rules for part in ("apiGroups", "resources", "verbs"))
    assert not any("secrets" in rule["resources"] for rule in rules)
    (escalate,) = (rule for rule in rules if "escalate" in rule["verbs"])
    assert all(name.startswith(("mpijob-", "gangplan-")) for name in escalate["resourceNames"])
    assert found["ServiceAccount/gangplan-sync"]["metadata"]["namespace"] == "tools"
    assert "--namespace tools" in found["Task/gangplan-sync"]["spec"]["steps"][0]["script"]


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--sync", "in-cluster", "--wait", "flux"), "either an engine syncs, or the pipeline"),
        (("--sync", "ssh"), "there is no way to a cluster 'ssh'"),
    ],
)
def test_incompatible_flags_are_refused(flags: tuple[str, ...], says: str, tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    scripts.workspaces.stock(root)
    outcome = gangplan("gitops", "tekton", "-C", root, "-o", tmp_path / "out", *flags)
    assert outcome.code == Exit.INPUT
    assert says in outcome.err
    assert not (tmp_path / "out").exists()
