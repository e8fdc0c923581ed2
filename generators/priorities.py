"""PriorityClass and WorkloadPriorityClass: what a spec's priority means for pods and for the queue.

Under Kueue, pods never preempt: the scheduler would end pods of runs that Kueue has admitted. A scheduler
that gathers the pods of a run itself also preempts.
"""

from __future__ import annotations

from gangplan.generators.common import KUEUE_API, generate_platform_annotations, render_to_objects
from gangplan.model.site import Site
from gangplan.objects import Body

# From the founding requirements; `critical` is gangplan's own.
VALUES = {"low": 100, "normal": 500, "high": 1000, "critical": 2000}
MEANINGS = {
    "low": "Experiments: they give way to everything else",
    "normal": "The usual priority",
    "high": "Production training",
    "critical": "For platform administrators only",
}


def generate_priority_classes(site: Site) -> list[Body]:
    """Return the PriorityClass of each priority of the cluster, and with Kueue its WorkloadPriorityClass."""
    values = {
        "kueue_api": KUEUE_API,
        "annotations": generate_platform_annotations(site, "PriorityClass"),
        "preemption": "PreemptLowerPriority" if site.platform.has_pod_group else "Never",
    }
    templates = ["platform/podpriority.yaml.j2"]
    if site.platform.kueue is not None:
        templates.append("platform/priority.yaml.j2")
    return [
        body
        for template in templates
        for name in site.priorities
        for body in render_to_objects(
            template, {**values, "name": name, "value": VALUES[name], "description": MEANINGS[name]}
        )
    ]
