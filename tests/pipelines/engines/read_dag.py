"""Show what Airflow's DagBag makes of a folder; the Python of an environment with Airflow runs this.

The answer has errors, and for each task those before it, its retries, and the pod that it would create.
"""

import json
import logging
import sys
import warnings
from pathlib import Path

warnings.simplefilter("error", DeprecationWarning)

from airflow.dag_processing.dagbag import DagBag  # noqa: E402
from kubernetes.client import ApiClient  # noqa: E402


def pod(task):
    """Return the pod of a task, with its templates filled in."""
    task.render_template_fields({})
    return ApiClient().sanitize_for_serialization(task.build_pod_request_obj(None, dry_run=True))


def main():
    logging.disable()
    bag = DagBag(sys.argv[1])
    tasks = {
        f"{name}/{task.task_id}": {
            "after": sorted(task.upstream_task_ids),
            "retries": task.retries,
            "pod": pod(task),
        }
        for name, dag in bag.dags.items()
        for task in dag.tasks
    }
    Path(sys.argv[2]).write_text(json.dumps({"errors": bag.import_errors, "tasks": tasks}), encoding="utf-8")


main()
