"""Jobs in, units out: one run on one cluster, with its counts, its name budget and its final command."""

from gangplan.plan.layout import Layout
from gangplan.plan.unit import Launch, Unit, plan_unit

__all__ = ["Launch", "Layout", "Unit", "plan_unit"]
