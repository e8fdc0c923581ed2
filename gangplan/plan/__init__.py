"""Plan one run of a job on one cluster: its counts, the limit on its name and its final command."""

from gangplan.plan.layout import RunLayout
from gangplan.plan.unit import LaunchPlan, RunPlan, plan_run

__all__ = ["LaunchPlan", "RunLayout", "RunPlan", "plan_run"]
