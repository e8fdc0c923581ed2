"""A spec written as an MPIJob and imported again resolves to the same plan."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangplan.generators.scripts import SCRIPTS_FOLDER
from gangplan.imports.batch import judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.model.job import Job
from gangplan.objects import dump_object_as_block_yaml
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.workspace import load_workspace
from tests import plain
from tests.workspaces import CATALOG, STOCK, WIDE_CLUSTER, write

Spec = dict[str, Any]
CATALOGUE = plain.load(CATALOG)["images"]
IMAGES = [name for name, one in CATALOGUE.items() if "mpi" in one and one.get("framework", "mpi") == "mpi"]
POOLS = "labels: {pool: a100}, disk: 9000Gi, hugePages: {2Mi: 900Gi}, devices: {example.com/fpga: 64}}"
CLUSTER = WIDE_CLUSTER.replace("labels: {pool: a100}}", POOLS)
# Names of a job, and fields that follow from them; an import has its own name and labels.
NAMED = {"name", "source", "description", "labels", "spec_hash", "namespace", "origins"}
FLAGS = {"OpenMPI": ["--report-bindings"], "MPICH": ["-prepend-rank"], "IntelMPI": ["-prepend-rank"]}


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Draw an MPI spec with the fields that an MPIJob can express."""
    image = draw(st.sampled_from(IMAGES))
    family = CATALOGUE[image]["mpi"]["implementation"]
    spec: Spec = {
        "image": image,
        "command": draw(
            st.sampled_from([["python", "train.py"], ["./solve", "--steps", "7"], ["solve", "a b", "$x"]])
        ),
        "workers": draw(st.integers(2, 9)),
        "cpu": draw(st.sampled_from([4, "7500m", 16])),
        "memory": draw(st.sampled_from(["16Gi", "32G", "40000Mi"])),
    }

    def maybe(name: str, *values: Any) -> None:
        if draw(st.booleans()):
            spec[name] = draw(st.sampled_from(values))

    maybe("gpus", 1, 2, 4, 8)
    maybe("slots", 1, 3, 8)
    maybe(
        "env",
        {"A": "1"},
        {"A": "x y", "NODE": {"field": "spec.nodeName"}},
        {"M": {"resource": "limits.memory"}},
    )
    maybe("data", {"filings": "/data"}, {"archive": "/old", "filings": "/new"})
    maybe("secrets", {"env": {"TOKEN": "huggingface/token"}}, {"files": {"huggingface": "/opt/hf"}})
    maybe("timeout", "2h", "24h", "90m")
    maybe("retries", 1, 3)
    maybe("gracePeriod", "45s", "5m")
    maybe("priority", "low", "high")
    maybe("workdir", "/work")
    maybe("disk", "20Gi")
    maybe("hugePages", {"2Mi": "4Gi"})
    maybe("devices", {"example.com/fpga": 1})
    maybe(
        "scratch",
        {"size": "8Gi", "medium": "disk", "path": "/tmp/s"},
        {"size": "1Gi", "medium": "memory", "path": "/s"},
    )
    maybe("setup", [{"name": "fetch", "command": ["fetch", "all"], "cpu": 1, "memory": "1Gi"}])
    maybe("sidecars", [{"name": "watch", "command": ["watch"], "env": {"B": "2"}, "cpu": 1, "memory": "1Gi"}])
    maybe("launcher", {"cpu": 2, "memory": "4Gi"}, {"cpu": 3, "memory": "2Gi"})
    mpi: Spec = {"licenseAcknowledged": True} if family == "IntelMPI" else {}
    if family == "OpenMPI" and draw(st.booleans()):
        mpi["bindTo"] = draw(st.sampled_from(["core", "socket"]))
    if draw(st.booleans()):
        mpi["flags"] = FLAGS[family]
    return {**spec, **({"mpi": mpi} if mpi else {})}


def mpijob(spec: Spec) -> Spec:
    """Return the MPIJob that corresponds to a spec (mpi-operator v0.8, v2beta1)."""
    entry = CATALOGUE[spec["image"]]
    image = f"{entry['repository']}@{entry['digest']}"
    slots = spec.get("slots") or spec.get("gpus") or 1
    mpi = spec.get("mpi", {})
    bind = ["--bind-to", mpi["bindTo"]] if "bindTo" in mpi else []
    start = ["mpirun", "-np", str(spec["workers"] * slots), *bind, *mpi.get("flags", ())]
    launcher = {"name": "launcher", "image": image, "command": [*start, *spec["command"]]}
    worker: Spec = {"name": "worker", "image": image, "command": ["/usr/sbin/sshd", "-De"]}
    if "launcher" in spec:
        launcher["resources"] = {
            "limits": {"cpu": spec["launcher"]["cpu"], "memory": spec["launcher"]["memory"]}
        }
    limits: Spec = {"cpu": spec["cpu"], "memory": spec["memory"], **spec.get("devices", {})}
    limits |= {"nvidia.com/gpu": spec["gpus"]} if "gpus" in spec else {}
    limits |= {"ephemeral-storage": spec["disk"]} if "disk" in spec else {}
    limits |= {f"hugepages-{size}": amount for size, amount in spec.get("hugePages", {}).items()}
    worker["resources"] = {"limits": limits, "requests": dict(limits)}
    pod: Spec = {
        "volumes": [],
        "initContainers": [container(one, image, False) for one in spec.get("setup", ())],
    }
    pod["initContainers"] += [container(one, image, True) for one in spec.get("sidecars", ())]
    _env(worker, spec)
    _volumes(worker, pod, spec)
    for one in (launcher, worker):
        if "workdir" in spec:
            one["workingDir"] = spec["workdir"]
    lead: Spec = {"containers": [launcher]}
    for one in (lead, pod):
        if "gracePeriod" in spec:
            one["terminationGracePeriodSeconds"] = {"45s": 45, "5m": 300}[spec["gracePeriod"]]
        if "priority" in spec:
            one["priorityClassName"] = spec["priority"]
    policy: Spec = {"cleanPodPolicy": "Running"}
    if "timeout" in spec:
        policy["activeDeadlineSeconds"] = {"2h": 7200, "24h": 86400, "90m": 5400}[spec["timeout"]]
    if "retries" in spec:
        policy["backoffLimit"] = spec["retries"]
    family = {"IntelMPI": "Intel"}.get(entry["mpi"]["implementation"], entry["mpi"]["implementation"])
    replicas = {
        "Launcher": {"replicas": 1, "template": {"spec": lead}},
        "Worker": {"replicas": spec["workers"], "template": {"spec": {**pod, "containers": [worker]}}},
    }
    body = {
        "slotsPerWorker": slots,
        "mpiImplementation": family,
        "runPolicy": policy,
        "mpiReplicaSpecs": replicas,
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "job"}, "spec": body}


def container(one: Spec, image: str, is_sidecar: bool) -> Spec:
    """Return a container before or next to the program."""
    made = {"name": one["name"], "image": image, "command": one["command"]}
    made["resources"] = {"limits": {"cpu": one["cpu"], "memory": one["memory"]}}
    if "env" in one:
        made["env"] = [{"name": name, "value": value} for name, value in one["env"].items()]
    return {**made, **({"restartPolicy": "Always"} if is_sidecar else {})}


def _env(worker: Spec, spec: Spec) -> None:
    sources = {
        "field": lambda text: {"fieldRef": {"fieldPath": text}},
        "resource": lambda text: {"resourceFieldRef": {"resource": text}},
    }
    env: list[Spec] = []
    for name, value in spec.get("env", {}).items():
        if isinstance(value, dict):
            ((kind, text),) = value.items()
            env.append({"name": name, "valueFrom": sources[kind](text)})
        else:
            env.append({"name": name, "value": value})
    for name, text in spec.get("secrets", {}).get("env", {}).items():
        secret, key = text.split("/")
        env.append({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    worker["env"] = env


def _volumes(worker: Spec, pod: Spec, spec: Spec) -> None:
    made: list[tuple[str, Spec]] = [
        (path, {"persistentVolumeClaim": {"claimName": claim}})
        for claim, path in spec.get("data", {}).items()
    ]
    made += [
        (path, {"secret": {"secretName": name}})
        for name, path in spec.get("secrets", {}).get("files", {}).items()
    ]
    if room := spec.get("scratch"):
        medium = {"medium": "Memory"} if room["medium"] == "memory" else {}
        made.append((room["path"], {"emptyDir": {**medium, "sizeLimit": room["size"]}}))
    worker["volumeMounts"] = [{"name": f"v{at}", "mountPath": path} for at, (path, _) in enumerate(made)]
    pod["volumes"] = [{"name": f"v{at}", **volume} for at, (_, volume) in enumerate(made)]


def planned(root: Path, files: dict[str, str]) -> Job:
    """Return the only job of a workspace, resolved."""
    stock = {name: text for name, text in STOCK.items() if not name.endswith("filings.yaml")}
    write(root, {**stock, "overlays/lab/cluster.yaml": CLUSTER, **files})
    result = preview_render(Request(root, engine="serial"))
    assert not [one for one in result.findings if one.is_error], result.findings
    (run,) = result.runs
    return run.unit.job


def different(one: Job, other: Job) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which two plans differ, ignoring names."""
    return {
        field.name: (getattr(one, field.name), getattr(other, field.name))
        for field in fields(Job)  # type: ignore[arg-type]
        if field.name not in NAMED and getattr(one, field.name) != getattr(other, field.name)
    }


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(spec=specs())
def test_a_spec_comes_back_from_an_mpijob_with_the_same_plan(spec: Spec) -> None:
    whole = {"apiVersion": "gangplan.dev/v1", "kind": "TrainingJob", **spec}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        before = planned(root / "before", {"specs/nlp/job.yaml": dump_object_as_block_yaml(whole)})
        stock = {one: text for one, text in STOCK.items() if not one.endswith("filings.yaml")}
        write(root / "after", {**stock, "overlays/lab/cluster.yaml": CLUSTER})
        write(root, {"job.yaml": dump_object_as_block_yaml(mpijob(spec))})
        home = ImportTarget(load_workspace(root / "after"), "nlp", ImportAnswers(has_licence=True))
        batch = read_import_batch(SOURCE_KINDS["mpijob"], [root / "job.yaml"], home, {})
        judge_import_batch(batch, root / "after")
        (one,) = batch.imported
        assert one.is_right, batch.everything
        assert batch.suggestions == []
        after = planned(root / "after", {one.draft.file: one.text})
    assert different(before, after) == {}, one.text


RENDERED: dict[str, Spec] = {
    "mpi": {"image": "openmpi", "command": ["python", "train.py"], "workers": 2, "gpus": 2, "retries": 1},
    "torch": {"image": "pytorch", "command": ["python", "train.py"], "workers": 2, "gpus": 1},
}


@pytest.mark.parametrize("name", RENDERED)
def test_a_rendered_run_comes_back_without_what_gangplan_adds_to_its_pods(name: str, tmp_path: Path) -> None:
    spec = {"cpu": 4, "memory": "16Gi", "gracePeriod": "45s", "data": {"filings": "/data"}, **RENDERED[name]}
    whole = {"apiVersion": "gangplan.dev/v1", "kind": "TrainingJob", **spec}
    stock = {one: text for one, text in STOCK.items() if not one.endswith("filings.yaml")}
    for folder, files in (
        ("before", {"specs/nlp/job.yaml": dump_object_as_block_yaml(whole)}),
        ("after", {}),
    ):
        write(tmp_path / folder, {**stock, "overlays/lab/cluster.yaml": CLUSTER, **files})
    result = preview_render(Request(tmp_path / "before", engine="serial"))
    (run,) = result.runs
    text = result.texts[run.path]
    assert f"mountPath: {SCRIPTS_FOLDER}" in text
    write(tmp_path, {"run.yaml": text})
    batch = read_import_batch(
        SOURCE_KINDS["trainjob"],
        [tmp_path / "run.yaml"],
        ImportTarget(load_workspace(tmp_path / "after"), "nlp"),
        {},
    )
    judge_import_batch(batch, tmp_path / "after")
    (one,) = batch.imported
    assert one.is_right, batch.everything
    assert "gangplan-launch" not in one.text
    assert not [row for row in one.runs["lab"].differences if row.area in ("command", "volumes", "pods")]
    spec = plain.load(one.text)
    assert (spec["command"], spec["gracePeriod"]) == (["python", "train.py"], "45s")
    assert spec["data"] == {"filings": "/data"}
    assert "files" not in spec


def test_a_different_plan_is_detected(tmp_path: Path) -> None:
    text = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: openmpi\ncommand: [python]\nworkers: 2\n"
    one = planned(tmp_path / "one", {"specs/nlp/job.yaml": text})
    other = planned(tmp_path / "other", {"specs/nlp/job.yaml": text + "env: {A: '1'}\n"})
    assert list(different(one, other)) == ["env"]
    with pytest.raises(AssertionError):
        planned(tmp_path / "none", {"specs/nlp/job.yaml": "kind: TrainingJob\n"})
