"""Tekton: a Task that creates runs and waits for them, and a Pipeline that orders the jobs of a team.

Sources: tekton.dev/v1 (tektoncd/pipeline, config/300-crds; docs/pipelineruns.md). A TaskRun ends after one
hour unless its timeout is 0.
"""

from __future__ import annotations

from gangplan.gitops.steps import Chain
from gangplan.model.schedule import CHECK_PAUSE_S, CREATOR_CPU, CREATOR_MEMORY, SCHEDULER_ACCOUNT
from gangplan.template import render_yaml


def render_tekton_pipeline(chain: Chain) -> str:
    """Render the Tasks, the Pipeline and a PipelineRun of a team, for one file."""
    values = {
        "chain": chain,
        "account": SCHEDULER_ACCOUNT,
        "pause": str(CHECK_PAUSE_S),
        "no_limit": "0",
        "cpu": CREATOR_CPU,
        "memory": CREATOR_MEMORY,
    }
    return render_yaml("pipeline/tekton.yaml.j2", values)
