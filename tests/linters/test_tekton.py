"""Tekton: the code of its webhook decodes, defaults and validates what gangplan writes."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import plain
from tests.gitops.test_ci import made
from tests.lab import programs as lab
from tests.linters import programs
from tests.workspaces import REPOSITORY, gangplan

Object = dict[str, Any]
IMAGE = "registry.example.com/ci@sha256:" + "0" * 64
VARIANTS = {
    "plain": (),
    "argocd": ("--wait", "argocd", "--namespace", "tools"),
    "flux": ("--wait", "flux", "--forge", "gitlab", "--image", IMAGE, "--prefix", "ml/jobs"),
    "in-cluster": ("--sync", "in-cluster", "--cluster", "lab"),
    "kubeconfig": ("--sync", "kubeconfig"),
}


def said(objects: list[Object]) -> list[str]:
    """Return the webhook's complaint about each object, '' if it accepts the object."""
    program = programs.go(lab.TEKTON_CHECK)
    text = json.dumps([_named(body) for body in objects])
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    answers: list[str] = json.loads(done.stdout)
    return answers


def _named(body: Object) -> Object:
    """Return the object with a name, which the API server generates before it calls validating webhooks."""
    metadata = body["metadata"]
    return {**body, "metadata": {"name": metadata.get("generateName", "") + "x7k2p", **metadata}}


def of_tekton(texts: list[str]) -> list[Object]:
    """Return Tekton's objects in some files."""
    found = [body for text in texts for body in plain.load_all(text)]
    return [body for body in found if body["apiVersion"].startswith("tekton.dev/")]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_webhook_accepts_the_recipe(name: str, tmp_path: Path) -> None:
    objects = of_tekton(list(made("tekton", tmp_path, *VARIANTS[name]).values()))
    assert {body["kind"] for body in objects} == {"Task", "Pipeline", "PipelineRun"}
    assert said(objects) == [""] * len(objects)


def test_the_webhook_accepts_pipelines_of_runs(tmp_path: Path) -> None:
    root = tmp_path / "jobs"
    shutil.copytree(REPOSITORY / "tests/examples/pipeline/input", root)
    with (root / "overlays/lab/cluster.yaml").open("a") as cluster:
        cluster.write("pipelines: {engine: tekton}\n")
    assert gangplan("render", "-C", root).code in (0, 1)
    outcome = gangplan("pipeline", "tekton", "-C", root, "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    objects = of_tekton([file.read_text() for file in sorted((tmp_path / "out").rglob("*.yaml"))])
    assert {body["kind"] for body in objects} == {"Task", "Pipeline", "PipelineRun"}
    assert said(objects) == [""] * len(objects)


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        ("Task", '"steps"', '"stepz"', 'unknown field "stepz"'),
        ("Task", "$(params.revision)", "$(params.revison)", "non-existent variable"),
        ("Pipeline", '"runAfter": ["fetch"]', '"runAfter": ["fetched"]', "invalid value"),
        ("Pipeline", "$(tasks.check.status)", "$(tasks.chek.status)", "chek"),
        ("PipelineRun", '"pipeline": "15m"', '"pipeline": "-1m"', "timeouts"),
    ],
)
def test_the_webhook_refuses_mistakes_in_the_recipe(
    kind: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    texts = [json.dumps(body) for body in of_tekton(list(made("tekton", tmp_path).values()))]
    changed = [
        json.loads(text.replace(old, new)) for text in texts if f'"kind": "{kind}"' in text and old in text
    ]
    assert changed
    assert all(words in answer for answer in said(changed))
