"""A failure is retried at one level only: by the job, or by the task of a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.gitops.retried import find_doubly_retried_pipeline_tasks
from gangplan.source import load_all_documents
from tests.pipelines.test_kfp import KFP
from tests.pipelines.test_tekton import TEKTON
from tests.pipelines.worlds import stock
from tests.workspaces import SPEC, gangplan

RUN = "filings-0a1b2c3d"
TWICE, ONCE = {RUN: ("specs/nlp/filings.yaml", 2)}, {RUN: ("specs/nlp/filings.yaml", 0)}
TASK = f"""\
apiVersion: tekton.dev/v1
kind: Pipeline
spec:
  tasks:
  - {{name: other, retries: 3}}
  - name: train
    retries: 1
    params: [{{name: run, value: {RUN}}}]
"""
OWN = f"""\
apiVersion: tekton.dev/v1
kind: PipelineRun
spec: {{pipelineSpec: {{finally: [{{name: t, retries: 1, params: [{{value: {RUN}-template}}]}}]}}}}
"""
NO_TASKS = "apiVersion: tekton.dev/v1\nspec: {tasks: [1, {retries: yes}], pipelineSpec: []}\n"
CALLED = TASK.replace("name: train", "name: filings").replace(RUN, "x")
IR = f"""\
components: {{comp-train: {{executorLabel: exec-train}}}}
deploymentSpec: {{executors: {{exec-train: {{container: {{args: [{RUN}]}}}}}}}}
root:
  dag:
    tasks:
      train:
        componentRef: {{name: comp-train}}
        retryPolicy: {{maxRetryCount: 1}}
"""
# Text, retries of jobs, lines of findings.
CASES = {
    "task and job": (TASK, TWICE, [7]),
    "the task alone": (TASK, ONCE, []),
    "the job alone": (TASK.replace("retries: 1", "retries: 0"), TWICE, []),
    "a task without retries": (TASK.replace("    retries: 1\n", ""), TWICE, []),
    "a task that runs another job": (TASK.replace(RUN, "filings-ffffffff"), TWICE, []),
    "a task called like the job": (CALLED, {"filings": ("a", 1)}, [7]),
    "tasks of a run's own": (OWN, {f"{RUN}-template": ("a", 1)}, [3]),
    "Kubeflow Pipelines": (IR, TWICE, [8]),
    "Kubeflow Pipelines, the task alone": (IR, ONCE, []),
    "something else": ("kind: ConfigMap\ndata: {retries: 3}\n", TWICE, []),
    "tasks that are none": (NO_TASKS, TWICE, []),
}


@pytest.mark.parametrize("name", CASES)
def test_retries_at_two_levels_are_reported(name: str) -> None:
    text, jobs, lines = CASES[name]
    documents, _ = load_all_documents(text.encode(), "p.yaml")
    found = [one for document in documents for one in find_doubly_retried_pipeline_tasks(document, jobs)]
    assert [one.where.line for one in found] == lines
    assert [str(one.rule) for one in found] == ["retry-twice"] * len(lines)
    if name == "task and job":
        assert "tried up to 6 times" in found[0].message


@pytest.mark.parametrize(("engine", "cluster"), [("tekton", TEKTON), ("kfp", KFP)])
def test_check_reads_all_files_in_the_folder(engine: str, cluster: str, root: Path, tmp_path: Path) -> None:
    """Files that gangplan writes retry nothing; files of others are judged as well."""
    stock(
        root,
        {"filings": SPEC + "after: [prepare]\nretries: 2\n", "prepare": SPEC},
        **{"overlays/lab/cluster.yaml": cluster},
    )
    folder = tmp_path / "pipelines"
    made = ("pipeline", engine, "-C", root, "-o", str(folder))
    assert gangplan(*made).code == 0
    assert gangplan(*made, "--check").code == 0
    (folder / "own.yaml").write_text(TASK.replace("name: train", "name: filings"))
    outcome = gangplan(*made, "--check")
    assert outcome.code == 1
    assert [one.rule for one in outcome.findings] == ["retry-twice"]
    assert outcome.findings[0].place.endswith("own.yaml:7:14")
