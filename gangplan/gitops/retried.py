"""Pipelines in files: tasks that are retried although the job that they run has retries, too.

Tekton v1: `retries` of a task of a Pipeline or of a PipelineRun's own (tektoncd/pipeline, docs/pipelines.md).
Kubeflow Pipelines IR 2.1.0: `retryPolicy.maxRetryCount` of a task (api/v2alpha1/pipeline_spec.proto).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gangplan.findings import FieldPath, Finding
from gangplan.objects import walk_leaves
from gangplan.records import dataclass
from gangplan.rules.after import RETRY_TWICE
from gangplan.source import Document

_HELP = (
    "Write retries: 0 for the task, or retries: 0 into {}: what is tried again at one level is counted there."
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a pipeline: the path to its number of retries, that number, and all texts in it."""

    name: str
    at: FieldPath
    tries: int
    texts: frozenset[str]


def find_doubly_retried_pipeline_tasks(
    document: Document, retries: Mapping[str, tuple[str, int]]
) -> Iterator[Finding]:
    """Yield a finding for each task that is retried at two levels; `retries` maps the names of jobs, runs and
    templates to spec and retries."""
    for task in (*_find_tekton_tasks(document.value), *_find_kfp_tasks(document.value)):
        if task.tries < 1:
            continue
        found = {retries[text] for text in task.texts | {task.name} if text in retries}
        for source, times in sorted(one for one in found if one[1]):
            message = (
                f"task {task.name} is tried again up to {task.tries} times, and its job {source} has retries:"
                f" {times}: a failure is tried up to {(task.tries + 1) * (times + 1)} times"
            )
            yield Finding(RETRY_TWICE, document.where(task.at), message, _HELP.format(source))


def _find_tekton_tasks(body: Any) -> Iterator[Task]:
    if not isinstance(body, dict) or not str(body.get("apiVersion", "")).startswith("tekton.dev/"):
        return
    for path in (("spec",), ("spec", "pipelineSpec")):
        spec = _get_mapping_at_path(body, path)
        for part in ("tasks", "finally"):
            tasks = spec.get(part)
            for index, one in enumerate(tasks if isinstance(tasks, list) else ()):
                if isinstance(one, dict):
                    at = (*path, part, index, "retries")
                    yield Task(
                        str(one.get("name", "")),
                        at,
                        _read_retry_count(one.get("retries")),
                        _collect_task_texts([one]),
                    )


def _find_kfp_tasks(body: Any) -> Iterator[Task]:
    tasks = _get_mapping_at_path(body, ("root", "dag", "tasks"))
    for name, one in tasks.items():
        if isinstance(one, dict):
            component = _get_mapping_at_path(
                body, ("components", str(_get_mapping_at_path(one, ("componentRef",)).get("name", "")))
            )
            label = str(component.get("executorLabel", ""))
            texts = _collect_task_texts(
                [one, _get_mapping_at_path(body, ("deploymentSpec", "executors", label))]
            )
            at = ("root", "dag", "tasks", name, "retryPolicy", "maxRetryCount")
            yield Task(
                str(name),
                at,
                _read_retry_count(_get_mapping_at_path(one, ("retryPolicy",)).get("maxRetryCount")),
                texts,
            )


def _get_mapping_at_path(body: Any, path: Iterable[str]) -> dict[str, Any]:
    for step in path:
        body = body.get(step) if isinstance(body, dict) else None
    return body if isinstance(body, dict) else {}


def _collect_task_texts(parts: Iterable[Any]) -> frozenset[str]:
    return frozenset(value for part in parts for _, value in walk_leaves(part) if isinstance(value, str))


def _read_retry_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
