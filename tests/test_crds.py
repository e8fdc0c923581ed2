"""Every committed rendered object, checked against the real CRDs of its cluster's versions."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.source import load_objects
from gangplan.tools.find import find_executables_on_path
from tests import plain
from tests.golden import EXAMPLES, render_example
from tests.validate import crd
from tests.workspaces import REPOSITORY

WORKSPACES = [REPOSITORY, *(folder / "input" for folder in EXAMPLES)]
every_workspace = pytest.mark.parametrize(
    "workspace", WORKSPACES, ids=lambda path: "sample" if path == REPOSITORY else path.parent.name
)
# The JobSet that comes with Trainer, where a cluster file does not name one.
JOBSET = {"2.1": "0.10", "2.2": "0.11", "2.3": "0.12"}


def tree_of(workspace: Path) -> Path:
    """Return the folder that a workspace is rendered to."""
    return REPOSITORY / "rendered" if workspace == REPOSITORY else render_example(workspace.parent.name)


def files(workspace: Path) -> list[Path]:
    """Return the files of every cluster."""
    return sorted(tree_of(workspace).glob("*/**/*.yaml"))


def minors(workspace: Path, path: Path) -> dict[str, str]:
    """Return the minor versions of the cluster that a file is for, by component."""
    cluster = path.relative_to(tree_of(workspace)).parts[0]
    written = plain.load((workspace / "overlays" / cluster / "cluster.yaml").read_text())["versions"]
    lines = {name: ".".join(str(version).split(".")[:2]) for name, version in written.items()}
    if "trainer" in lines:
        lines.setdefault("jobset", JOBSET[lines["trainer"]])
    if "mpiOperator" in lines:
        lines["mpi-operator"] = lines.pop("mpiOperator")
    return lines


def objects(path: Path) -> list[dict[str, Any]]:
    """Return the documents of a file."""
    return [body for body in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if body]


def test_the_workspaces_have_objects_of_many_kinds() -> None:
    kinds = Counter(body["kind"] for one in WORKSPACES for path in files(one) for body in objects(path))
    assert {"TrainJob", "TrainingRuntime", "LocalQueue", "NetworkPolicy", "Namespace"} <= set(kinds)
    assert kinds["TrainJob"] >= 17


@crd.needs_crds
@every_workspace
def test_every_field_is_in_the_crd(workspace: Path) -> None:
    for lines, body in (
        (minors(workspace, path), body) for path in files(workspace) for body in objects(path)
    ):
        component = crd.GROUPS.get(body["apiVersion"].rpartition("/")[0])
        if component is None:
            continue
        versions = crd.at_hand(component, lines[component])
        assert versions
        for line in versions:
            schema = crd.crd_for(body, {**lines, component: line})
            assert schema is not None
            assert crd.violations(body, schema) == [], f"{body['kind']} {body['metadata']['name']} at {line}"


def job_sets(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the JobSet that a runtime becomes."""
    if body["kind"] == "TrainingRuntime":
        spec = body["spec"]["template"]["spec"]
        meta = {"name": body["metadata"]["name"], **body["spec"]["template"].get("metadata", {})}
        yield {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": spec}


@crd.needs_crds
@every_workspace
def test_the_jobset_of_a_runtime_fits_its_crd(workspace: Path) -> None:
    """Trainer's copy of JobSet's CRD is older, so JobSet's own CRD checks the template of a runtime, too."""
    for path in files(workspace):
        for job_set in (made for body in objects(path) for made in job_sets(body)):
            line = minors(workspace, path)["jobset"]
            known = crd.crds("jobset", line) or crd.crds("jobset", "0.12")
            assert crd.violations(job_set, known["jobset.x-k8s.io/v1alpha2", "JobSet"]) == []


@every_workspace
def test_our_reader_and_libyaml_read_the_same(workspace: Path) -> None:
    for path in files(workspace):
        text = path.read_text(encoding="utf-8")
        ours = load_objects(text)
        assert ours == list(plain.load_all(text)), path
        assert all(isinstance(key, str) for body in ours for key in _keys(body)), path


def _keys(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)


def test_kubectl_reads_the_same(tmp_path: Path) -> None:
    """Read with Kubernetes' own reader, through a kustomization that has only resources."""
    kubectl = next(iter(find_executables_on_path("kubectl")), None)
    if kubectl is None:
        pytest.skip("real kubectl: not on PATH")
    expected: dict[tuple[str, ...], Any] = {}
    paths = files(REPOSITORY)
    folders = []
    for cluster in sorted({path.relative_to(REPOSITORY / "rendered").parts[0] for path in paths}):
        folder = tmp_path / cluster
        folder.mkdir()
        names = []
        for number, path in enumerate(path for path in paths if f"/rendered/{cluster}/" in path.as_posix()):
            (folder / f"{number}.yaml").write_bytes(path.read_bytes())
            names.append(f"{number}.yaml")
            for body in objects(path):
                expected[
                    cluster, body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]
                ] = body
        (folder / "kustomization.yaml").write_text(json.dumps({"resources": names}))
        folders.append(folder)
    read: dict[tuple[str, ...], Any] = {}
    for folder in folders:
        done = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True, check=True)
        for body in yaml.load_all(done.stdout, yaml.CSafeLoader):
            read[
                folder.name, body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]
            ] = body
    assert read == expected
