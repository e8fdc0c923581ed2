"""The requests that count against quota, after the manager's exclusions and transformations.

Ported from `dropExcludedResources` and `applyResourceTransformations` of pkg/workload/workload.go, Kueue
v0.15.2, v0.18.2 and v0.19.2. Up to v0.18.2 an input counts in whole units, rounded up (`Quantity.Value`);
v0.19.2 multiplies exactly. Neither version transforms the outputs of a transformation again.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.kueue.units import NANO
from gangplan.model.manager import ManagerSettings
from gangplan.model.support import KueueLine


def apply_kueue_resource_transformations(
    requests: Mapping[str, int], manager: ManagerSettings, kueue: KueueLine
) -> dict[str, int]:
    """Return the requests of a pod, in billionths, as quota counts them."""
    kept = {name: nano for name, nano in requests.items() if not manager.is_excluded(name)}
    made: dict[str, int] = {}
    out: dict[str, int] = {}
    for name, nano in kept.items():
        rule = manager.of(name)
        if rule is None or not rule.replaces:
            out[name] = nano
        if rule is not None:
            units = nano if kueue.counts_exactly else -(-nano // NANO) * NANO
            for output, factor in rule.outputs:
                made[output] = made.get(output, 0) + units * factor // NANO
    for name, nano in made.items():
        out[name] = out.get(name, 0) + nano
    return out
