"""WorkloadPriorityClass: what a spec's priority means in the queue."""

from __future__ import annotations

from gangplan.generators.common import PREFIX, objects_of
from gangplan.generators.localqueue import API_VERSION
from gangplan.model.site import Site
from gangplan.objects import Body

WAVE = -15

# Founding requirements, SCH-10 (S0 Q3); critical is the project's own.
VALUES = {"low": 100, "normal": 500, "high": 1000, "critical": 2000}
MEANINGS = {
    "low": "Experiments: they give way to everything else",
    "normal": "The usual priority",
    "high": "Production training",
    "critical": "For platform administrators only",
}


def priorities(site: Site) -> list[Body]:
    """One class per priority that the cluster has; none without Kueue."""
    if site.platform.kueue is None:
        return []
    annotations = (("argocd.argoproj.io/sync-wave", str(WAVE)), (f"{PREFIX}source", site.source))
    values = {"kueue_api": API_VERSION, "annotations": annotations}
    return [
        body
        for name in site.priorities
        for body in objects_of(
            "platform/priority.yaml.j2",
            {**values, "name": name, "value": VALUES[name], "description": MEANINGS[name]},
        )
    ]
