"""What another kind of source costs: one module that reads it, one row of `SOURCE_KINDS`, its help and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gangplan.imports.account import Account
from gangplan.imports.groups import SourcePodGroup, group_imported_pods_into_roles
from gangplan.imports.kinds import SOURCE_KINDS, SourceKind
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import SourceError, SourceJob, SourceSetting
from tests.imports.sources import imported

GANG = """\
apiVersion: gangs.example.com/v1
kind: Gang
metadata: {name: reef}
spec:
  members: 4      # one per node
  patience: 7200
  mood: calm
  template:
    spec:
      containers:
      - name: diver
        image: registry.example.com/sea/reef:1.0
        command: [torchrun, --nproc-per-node=2, dive.py, --deep]
        resources: {limits: {cpu: 8, memory: 64Gi, nvidia.com/gpu: 2}}
"""
REEF = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from Gang reef (job.yaml)"
image: reef
command: [python, dive.py, --deep]
# one per node
workers: 4
gpus: 2
cpu: 8
memory: 64Gi
timeout: 2h
labels: {migrated-from: gang}
"""


def is_gang(value: Mapping[str, Any]) -> bool:
    """Return whether an object is a gang."""
    return value.get("kind") == "Gang"


def read_gang(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a gang: all that its module has to know."""
    root = account.root()
    spec = root["spec"]
    pod = read_imported_pod_template(spec["template"])
    if pod is None:
        raise SourceError("it has no container (spec.template.spec.containers)")
    name, members = root.at("metadata", "name").text(), spec["members"]
    found = group_imported_pods_into_roles([SourcePodGroup(name, members.count() or 1, pod, root)])
    work = SourceJob("Gang", name, found.start, account, found.roles, framework=found.framework or "")
    work.settings["workers"] = SourceSetting(members.count() or 1, members.mapped("workers"))
    if (limit := spec["patience"].number()) is not None:
        work.settings["timeout"] = SourceSetting(limit, spec["patience"])
    return work


@pytest.fixture
def _gangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCE_KINDS, "gang", SourceKind("gang", "Gang", is_gang, read_gang))


@pytest.mark.usefixtures("_gangs")
def test_one_module_and_one_row_import_another_kind(tmp_path: Path) -> None:
    batch = imported(tmp_path, "gang", GANG)
    (one,) = batch.imported
    assert one.text == REEF
    assert one.is_right, batch.everything


@pytest.mark.usefixtures("_gangs")
def test_what_its_reader_does_not_know_is_in_the_account(tmp_path: Path) -> None:
    entries = imported(tmp_path, "gang", GANG).imported[0].draft.work.entries()
    found = {entry.name: (entry.state, entry.to or entry.why, entry.where.line) for entry in entries}
    assert found["spec.members"] == ("mapped", "workers", 5)
    assert found["spec.mood"] == ("asked", "gangplan has no place for it", 7)  # never lost in silence


@pytest.mark.usefixtures("_gangs")
def test_another_command_names_the_kind_that_takes_the_file(tmp_path: Path) -> None:
    (found,) = imported(tmp_path, "mpijob", GANG).everything
    assert found.message == "there is no MPIJob in it, but a Gang of gangs.example.com/v1"
    assert found.help == "Write gangplan import gang."
