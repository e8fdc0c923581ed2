"""Tekton: Tasks, Pipeline and PipelineRun match each other and the CRDs, and name the runs of rendered/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests import plain
from tests.pipelines.worlds import CHAIN, PREPARE, TRAIN, US, name_of, runs, stock
from tests.schedules import worlds
from tests.workspaces import SPEC, gangplan, write

Object = dict[str, Any]
TEKTON = worlds.CLUSTER + "pipelines: {engine: tekton}\n"
# Fields and types of tekton.dev/v1 that are used (tektoncd/pipeline,
# config/300-crds/300-{task,pipeline,pipelinerun}.yaml).
TEXT, NUMBER, FLAG, ANY = str, int, bool, object
PARAM = {"name": TEXT, "type": TEXT, "default": ANY, "value": ANY}
RESOURCES = {"requests": {"*": TEXT}, "limits": {"*": TEXT}}
SECURITY = {
    **dict.fromkeys(("allowPrivilegeEscalation", "readOnlyRootFilesystem", "runAsNonRoot"), FLAG),
    **dict.fromkeys(("runAsUser", "runAsGroup"), NUMBER),
    "seccompProfile": {"type": TEXT},
    "capabilities": {"drop": [TEXT]},
}
TASK = {
    "description": TEXT,
    "params": [PARAM],
    "workspaces": [{"name": TEXT, "description": TEXT, "readOnly": FLAG}],
    "steps": [
        {
            **dict.fromkeys(("name", "image"), TEXT),
            "command": [TEXT],
            "args": [TEXT],
            "env": [{"name": TEXT, "value": TEXT}],
            "computeResources": RESOURCES,
            "securityContext": SECURITY,
            "volumeMounts": [{"name": TEXT, "mountPath": TEXT, "readOnly": FLAG}],
        }
    ],
    "volumes": [
        {"name": TEXT, "configMap": {"name": TEXT, "optional": FLAG}, "emptyDir": {"sizeLimit": TEXT}}
    ],
}
PIPELINE = {
    "workspaces": [{"name": TEXT, "description": TEXT}],
    "tasks": [
        {
            "name": TEXT,
            "taskRef": {"kind": TEXT, "name": TEXT},
            "runAfter": [TEXT],
            "retries": NUMBER,
            "timeout": TEXT,
            "params": [PARAM],
            "workspaces": [{"name": TEXT, "workspace": TEXT}],
        }
    ],
}
RUN = {
    "pipelineRef": {"name": TEXT},
    "timeouts": {"pipeline": TEXT},
    "taskRunTemplate": {
        "serviceAccountName": TEXT,
        "podTemplate": {
            "automountServiceAccountToken": FLAG,
            "enableServiceLinks": FLAG,
            "securityContext": SECURITY,
        },
    },
    "workspaces": [{"name": TEXT, "secret": {"secretName": TEXT}}],
}
SHAPES = {"Task": TASK, "Pipeline": PIPELINE, "PipelineRun": RUN}


def fits(value: Any, shape: Any, at: str = "") -> None:
    """Check that every field is in the shape and has its type."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), at
        for key, one in value.items():
            assert key in shape or "*" in shape, f"{at}.{key}"
            fits(one, shape.get(key, shape.get("*")), f"{at}.{key}")
    elif isinstance(shape, list):
        assert isinstance(value, list), at
        for index, one in enumerate(value):
            fits(one, shape[0], f"{at}[{index}]")
    else:
        assert isinstance(value, shape), f"{at}: {value!r}"


def tekton(root: Path, *flags: str) -> dict[str, Object]:
    """Return what the command writes, by kind and name."""
    outcome = gangplan("pipeline", "tekton", "-C", root, *flags)
    assert outcome.code == 0, outcome.err
    return {
        f"{body['kind']}/{body['metadata'].get('name') or body['metadata']['generateName']}": body
        for body in plain.load_all(outcome.out)
    }


def steps(found: dict[str, Object]) -> dict[str, Object]:
    return {one["name"]: one for one in found["Pipeline/gangplan-nlp"]["spec"]["tasks"]}


def value(step: Object, name: str) -> Any:
    return next((one["value"] for one in step["params"] if one["name"] == name), None)


def test_a_pipeline_has_a_step_for_each_job_in_order(root: Path) -> None:
    judge = SPEC + "after: [filings, prepare]\n"
    stock(root, {**CHAIN, "judge": judge, "alone": PREPARE}, **{"overlays/lab/cluster.yaml": TEKTON})
    made = runs(root)
    found = steps(tekton(root))
    assert list(found) == ["prepare", "filings", "judge"]
    assert [found[name].get("runAfter", []) for name in found] == [[], ["prepare"], ["filings", "prepare"]]
    for name, step in found.items():
        assert value(step, "run") == name_of(made[name])
        assert value(step, "template") == ("-" if name == "prepare" else "/template/run.yaml")
        assert value(step, "config-map") == f"{name_of(made[name])}-template"
        assert (step["retries"], step["timeout"]) == (0, "0")
    assert [body["kind"] for body in made["filings"]] == ["NetworkPolicy", "TrainingRuntime", "ConfigMap"]


def test_objects_match_the_crds(root: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": TEKTON})
    found = tekton(root)
    assert sorted(found) == ["Pipeline/gangplan-nlp", "PipelineRun/gangplan-nlp-", "Task/gangplan-run"]
    for body in found.values():
        assert (body["apiVersion"], body["metadata"]["namespace"]) == ("tekton.dev/v1", "nlp")
        fits(body["spec"], SHAPES[body["kind"]], body["kind"])


def test_tasks_declare_what_they_read_and_pipelines_provide_it(root: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": TEKTON})
    found = tekton(root)
    task = found["Task/gangplan-run"]["spec"]
    declared = {one["name"]: "default" in one for one in task["params"]}
    read = set(re.findall(r"\$\(params\.([\w-]+)(?:\[\*\])?\)", str(task)))
    assert read == set(declared)
    for step in steps(found).values():
        given = {one["name"] for one in step["params"]}
        assert {name for name, has_default in declared.items() if not has_default} <= given <= set(declared)
    script = task["steps"][0]["command"][2]
    assert "$(params." not in script


def test_pods_of_steps_have_the_account_and_may_reach_the_api_server(root: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": TEKTON})
    found = tekton(root)
    assert (
        found["PipelineRun/gangplan-nlp-"]["spec"]["taskRunTemplate"]["serviceAccountName"]
        == "gangplan-scheduler"
    )
    labels = found["Task/gangplan-run"]["metadata"]["labels"]
    standing = worlds.rendered(root, "tenants")
    way = worlds.one(standing, "NetworkPolicy", "gangplan-scheduler")["spec"]["podSelector"]["matchLabels"]
    assert way.items() <= labels.items()
    assert not any(key in labels for key in ("gangplan.dev/run", "gangplan.dev/job"))


def test_a_step_on_another_cluster_asks_that_cluster(root: Path) -> None:
    jobs = {"prepare": PREPARE + "clusters: [us]\n", "filings": TRAIN + "clusters: [lab]\n"}
    us = US + "context: us-prod\npipelines: {engine: tekton}\n"
    stock(root, jobs, **{"overlays/lab/cluster.yaml": TEKTON, "overlays/us/cluster.yaml": us})
    made = runs_of(root, "us")
    found = tekton(root)
    step = steps(found)["prepare-us"]
    assert step["taskRef"]["name"] == "gangplan-run-elsewhere"
    assert (value(step, "context"), value(step, "run")) == ("us-prod", made)
    assert steps(found)["filings"]["runAfter"] == ["prepare-us"]
    env = {
        one["name"]: one["value"] for one in found["Task/gangplan-run-elsewhere"]["spec"]["steps"][0]["env"]
    }
    assert env["CONTEXT"] == "$(params.context)"
    for body in found.values():
        fits(body["spec"], SHAPES[body["kind"]], body["kind"])


def runs_of(root: Path, cluster: str) -> str:
    """Return the name of the only run on a cluster."""
    assert gangplan("render", "-C", root).code == 0
    (file,) = (root / f"rendered/{cluster}/runs/nlp").glob("*-*.yaml")
    return file.stem


def test_files_are_written_and_compared(root: Path, tmp_path: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": TEKTON})
    folder = str(tmp_path / "pipelines")
    assert gangplan("pipeline", "tekton", "-C", root, "-o", folder).code == 0
    assert [path.name for path in Path(folder).iterdir()] == ["lab-nlp.yaml"]
    assert gangplan("pipeline", "tekton", "-C", root, "-o", folder, "--check").code == 0
    write(root, {"specs/nlp/prepare.yaml": PREPARE.replace("prepare.py", "better.py")})
    stale = gangplan("pipeline", "tekton", "-C", root, "-o", folder, "--check")
    assert stale.code == 1
    assert f"gangplan pipeline tekton -o {folder}" in stale.out


def test_without_jobs_for_the_engine_nothing_is_written(root: Path) -> None:
    stock(root)
    outcome = gangplan("pipeline", "tekton", "-C", root)
    assert outcome.code == 2
    assert "pipelines.engine is tekton" in outcome.err
    assert "Write pipelines: {engine: tekton} into overlays/lab/cluster.yaml" in outcome.err
    assert "after:" not in outcome.err, "a job comes after another"
    write(root, {"overlays/lab/cluster.yaml": worlds.CLUSTER + "pipelines: {engine: kfp}\n"})
    outcome = gangplan("pipeline", "tekton", "-C", root)
    assert "Write pipelines: {engine: tekton} into overlays/lab/cluster.yaml" in outcome.err
    write(root, {"overlays/lab/cluster.yaml": TEKTON, "specs/nlp/filings.yaml": SPEC})
    outcome = gangplan("pipeline", "tekton", "-C", root)
    assert "help: Write after: [JOB] into a spec" in outcome.err


def test_pods_of_steps_get_the_token_that_the_account_does_not_mount(root: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": TEKTON})
    (run,) = (
        body
        for body in plain.load_all(gangplan("pipeline", "tekton", "-C", root).out)
        if body["kind"] == "PipelineRun"
    )
    assert run["spec"]["taskRunTemplate"]["podTemplate"]["automountServiceAccountToken"] is True
