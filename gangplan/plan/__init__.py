"""Plan one run of a job on one cluster: its counts, the limit on its name and its final command."""

from gangplan.plan.layout import Layout
from gangplan.plan.unit import Launch, Unit, plan_unit

__all__ = ["Launch", "Layout", "Unit", "plan_unit"]
