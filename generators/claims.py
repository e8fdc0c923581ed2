"""ResourceClaimTemplate: the devices that each worker gets by dynamic resource allocation; as immutable as
the run."""

from __future__ import annotations

from gangplan.generators.common import (
    TemplateRenderer,
    generate_run_labels,
    generate_run_part_annotations,
    name_claim_template,
    render_to_objects,
)
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.objects import Body
from gangplan.plan import RunPlan


def generate_resource_claim_templates(
    unit: RunPlan, write: TemplateRenderer = render_to_objects
) -> list[Body]:
    """Return a template for each claim of a worker.

    Every claim asks for a number of devices: Kueue admits no request for all of them (v0.18.2 and v0.19.2,
    pkg/dra/claims.go, countDevicesPerClass).
    """
    values = {
        "namespace": unit.job.namespace,
        "labels": generate_run_labels(unit),
        "annotations": generate_run_part_annotations(unit, CLAIM_TEMPLATE_KIND),
    }
    return [
        body
        for claim in unit.job.resources.claims
        for body in write(
            "claim.yaml.j2", {**values, "claim": claim, "name": name_claim_template(unit.run_name, claim)}
        )
    ]
