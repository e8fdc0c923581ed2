"""Kubeflow Pipelines: fields are those that the SDK writes, as the SDK itself confirms (`make engines`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.golden import render_example
from tests.pipelines.engines import ask
from tests.pipelines.test_tekton import FLAG, TEXT, fits
from tests.pipelines.worlds import CHAIN, PREPARE, TRAIN, US, name_of, runs, stock
from tests.schedules import worlds
from tests.workspaces import REPOSITORY, SPEC, gangplan

Object = dict[str, Any]
KFP = worlds.CLUSTER + "pipelines: {engine: kfp}\n"
# Fields that the SDK writes (kubeflow/pipelines, sdk/python/test_data/pipelines: pipeline_with_after.yaml,
# container_component_with_no_inputs.yaml, pipeline_with_string_machine_fields.yaml, pipeline_with_env.yaml).
SPEC_SHAPE = {
    "components": {"*": {"executorLabel": TEXT}},
    "deploymentSpec": {
        "executors": {
            "*": {
                "container": {
                    "command": [TEXT],
                    "args": [TEXT],
                    "image": TEXT,
                    "env": [{"name": TEXT, "value": TEXT}],
                    "resources": {
                        "resourceCpuLimit": TEXT,
                        "resourceCpuRequest": TEXT,
                        "resourceMemoryLimit": TEXT,
                        "resourceMemoryRequest": TEXT,
                    },
                }
            }
        }
    },
    "pipelineInfo": {"name": TEXT},
    "root": {
        "dag": {
            "tasks": {
                "*": {
                    "cachingOptions": {"enableCache": FLAG},
                    "componentRef": {"name": TEXT},
                    "dependentTasks": [TEXT],
                    "taskInfo": {"name": TEXT},
                }
            }
        }
    },
    "schemaVersion": TEXT,
    "sdkVersion": TEXT,
}
# The same for kubernetes_platform/python/test/snapshot/data: config_map_as_vol.yaml, secret_as_vol.yaml.
VOLUME = {"mountPath": TEXT, "optional": FLAG}
PLATFORM_SHAPE = {
    "platforms": {
        "kubernetes": {
            "deploymentSpec": {
                "executors": {
                    "*": {
                        "configMapAsVolume": [{**VOLUME, "configMapName": TEXT}],
                        "secretAsVolume": [{**VOLUME, "secretName": TEXT}],
                        "podMetadata": {"labels": {"*": TEXT}},
                        "securityContext": {"runAsUser": TEXT, "runAsGroup": TEXT, "runAsNonRoot": FLAG},
                    }
                }
            }
        }
    }
}


def kfp(root: Path) -> tuple[Object, Object]:
    """Return the pipeline and its platform specification, both checked against their shapes."""
    outcome = gangplan("pipeline", "kfp", "-C", root)
    assert outcome.code == 0, outcome.err
    spec, platform = plain.load_all(outcome.out)
    fits(spec, SPEC_SHAPE)
    fits(platform, PLATFORM_SHAPE)
    return spec, platform


def test_a_pipeline_has_a_task_for_each_job_in_order(root: Path) -> None:
    jobs = {**CHAIN, "judge": SPEC + "after: [filings, prepare]\n"}
    stock(root, jobs, **{"overlays/lab/cluster.yaml": KFP})
    made = runs(root)
    spec, platform = kfp(root)
    tasks = spec["root"]["dag"]["tasks"]
    before = {name: task.get("dependentTasks", []) for name, task in tasks.items()}
    assert before == {"prepare": [], "filings": ["prepare"], "judge": ["filings", "prepare"]}
    executors = spec["deploymentSpec"]["executors"]
    for name, task in tasks.items():
        label = spec["components"][task["componentRef"]["name"]]["executorLabel"]
        assert executors[label]["container"]["args"][1] == name_of(made[name])
        assert task["cachingOptions"] == {}  # a cached step would wait for nothing
    kubernetes = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert set(kubernetes) == set(executors)
    assert "configMapAsVolume" not in kubernetes["exec-prepare"]
    (volume,) = kubernetes["exec-filings"]["configMapAsVolume"]
    assert volume["configMapName"] == f"{name_of(made['filings'])}-template"
    assert kubernetes["exec-filings"]["podMetadata"]["labels"]["gangplan.dev/role"] == "scheduler"
    assert kubernetes["exec-filings"]["securityContext"]["runAsNonRoot"] is True


def test_a_step_on_another_cluster_asks_that_cluster(root: Path) -> None:
    jobs = {"prepare": PREPARE + "clusters: [us]\n", "filings": TRAIN + "clusters: [lab]\n"}
    us = US + "pipelines: {engine: kfp}\n"
    stock(root, jobs, **{"overlays/lab/cluster.yaml": KFP, "overlays/us/cluster.yaml": us})
    spec, platform = kfp(root)
    container = spec["deploymentSpec"]["executors"]["exec-prepare-us"]["container"]
    assert {"name": "CONTEXT", "value": "us"} in container["env"]
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert executors["exec-prepare-us"]["secretAsVolume"][0]["mountPath"] == "/kubeconfig"


def test_the_pipeline_has_no_placeholder_of_the_sdk(root: Path) -> None:
    stock(root, **{"overlays/lab/cluster.yaml": KFP})
    assert "{{" not in gangplan("pipeline", "kfp", "-C", root).out


# A step on this cluster, one on another, and one after both.
BOTH = {
    "prepare": PREPARE + "clusters: [us]\n",
    "filings": TRAIN + "clusters: [lab]\n",
    "judge": SPEC + "clusters: [lab]\nafter: [filings, prepare]\n",
}


@pytest.fixture
def sdk(root: Path) -> tuple[list[Object], Object]:
    """Return a pipeline, and what the SDK makes of it."""
    us = US + "pipelines: {engine: kfp}\n"
    stock(root, BOTH, **{"overlays/lab/cluster.yaml": KFP, "overlays/us/cluster.yaml": us})
    text = gangplan("pipeline", "kfp", "-C", root).out
    return list(plain.load_all(text)), json.loads(ask("kfp", "read_kfp.py", given=text))


def test_the_compiler_of_the_sdk_writes_the_same_pipeline(sdk: tuple[list[Object], Object]) -> None:
    ours, theirs = sdk
    assert theirs["again"] == ours


def test_the_sdk_writes_every_field_of_the_pipeline(sdk: tuple[list[Object], Object]) -> None:
    """In addition to what we write, the SDK writes fields for earlier versions."""
    ours, theirs = sdk
    for pipeline in (ours[0], theirs["written"][0]):
        assert pipeline.pop("sdkVersion").startswith("kfp-2.")
        for task in pipeline["root"]["dag"]["tasks"].values():
            task["dependentTasks"] = sorted(task.get("dependentTasks", []))
    assert beyond(ours, theirs["written"]) == []


def test_the_sdk_knows_every_field_of_the_platform(sdk: tuple[list[Object], Object]) -> None:
    ours, theirs = sdk
    executors = ours[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    assert theirs["read"] == executors
    assert set(executors) == {"exec-prepare-us", "exec-filings", "exec-judge"}


def beyond(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Return the places where ours differs from theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [one for key in ours for one in beyond(ours[key], theirs.get(key), f"{path}/{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [found for index, pair in pairs for found in beyond(*pair, f"{path}/{index}")]
    return [] if ours == theirs else [f"{path}: {ours!r}, {theirs!r}"]


def test_the_example_for_kubeflow_pipelines_is_readable_and_enough(tmp_path: Path) -> None:
    """The example binds the role that creates runs, and lets out pods that Argo Workflows labels."""
    binding, policy = plain.load_all((REPOSITORY / "docs/examples/kubeflow-pipelines.yaml").read_text())
    example = render_example("pipeline") / "lab"
    bodies = [body for path in example.rglob("*.yaml") for body in plain.load_all(path.read_text())]
    roles = [body["metadata"]["name"] for body in bodies if body["kind"] == "ClusterRole"]
    assert binding["roleRef"]["name"] in roles
    ways = [
        body["spec"]["egress"]
        for body in bodies
        if body["metadata"]["name"] == "gangplan-scheduler" and body["kind"] == "NetworkPolicy"
    ]
    assert policy["spec"]["egress"][0] in ways[0]
