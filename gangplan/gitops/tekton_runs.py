"""Tekton: a Task that creates runs and waits for them, and a Pipeline that orders the jobs of a team.

Sources: tekton.dev/v1 (tektoncd/pipeline, config/300-crds; docs/pipelineruns.md). A TaskRun ends after one
hour unless its timeout is 0.
"""

from __future__ import annotations

from gangplan.gitops.steps import Chain
from gangplan.model.schedule import ACCOUNT, CPU, MEMORY, PAUSE_S
from gangplan.template import render_yaml


def tekton_text(chain: Chain) -> str:
    """Render the Tasks, the Pipeline and a PipelineRun of a team, for one file."""
    values = {
        "chain": chain,
        "account": ACCOUNT,
        "pause": str(PAUSE_S),
        "no_limit": "0",
        "cpu": CPU,
        "memory": MEMORY,
    }
    return render_yaml("pipeline/tekton.yaml.j2", values)
