"""What creates the runs of schedules: its account, and what its pod asks for."""

from __future__ import annotations

# The account that creates dated runs, and the name of its role, binding and network policy.
ACCOUNT = "gangplan-scheduler"
# What the pod that creates a run asks for: kubectl alone.
CPU, MEMORY = "100m", "128Mi"
# Schedules of a team that may start at once while its runs use all that their queue gives.
TOGETHER = 10
# Where the pod of a run that comes after others finds the template of it, and seconds between two looks.
MOUNT, PAUSE_S = "/template/run.yaml", 30
