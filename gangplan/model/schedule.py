"""What creates the runs of schedules: its service account, and the resources of its pod."""

from __future__ import annotations

# The service account that creates dated runs, and the name of its role, binding and network policy.
SCHEDULER_ACCOUNT = "gangplan-scheduler"
# The resources of the pod that creates a run; it only runs kubectl.
CREATOR_CPU, CREATOR_MEMORY = "100m", "128Mi"
# How many schedules of a team may start at once while its runs use the whole quota of their queue.
MAX_STARTS_TOGETHER = 10
# The path of a run's template in the pod that waits for other runs, and the seconds between two checks.
TEMPLATE_MOUNT, CHECK_PAUSE_S = "/template/run.yaml", 30
