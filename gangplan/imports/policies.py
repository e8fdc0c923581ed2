"""Map the policies that jobs of Kubeflow's operators have in common (`runPolicy`)."""

from __future__ import annotations

from gangplan.imports.account import SourceNode
from gangplan.imports.workload import SourceSetting

POD_GROUP_REASON = "Kueue admits a run as a whole, in its team's queue"


def map_imported_run_policy(policy: SourceNode, settings: dict[str, SourceSetting]) -> None:
    """Map RunPolicy of mpi-operator v0.8 (v2beta1) and training-operator v1.9 (kubeflow.org/v1)."""
    deadline = policy["activeDeadlineSeconds"]
    if (seconds := deadline.number()) is not None:
        settings["timeout"] = SourceSetting(seconds, deadline)
    limit = policy["backoffLimit"]
    if (count := limit.number()) is not None:
        settings["retries"] = SourceSetting(count, limit)
    policy["cleanPodPolicy"].dropped("the pods of a run end with it")
    policy["ttlSecondsAfterFinished"].dropped("a run stays until Git retires it (gangplan retire)")
    policy["managedBy"].dropped("the cluster file says whether runs are dispatched (multiKueue)")
    account_for_suspend(policy["suspend"])
    scheduling = policy["schedulingPolicy"]
    if name := scheduling["priorityClass"].text():
        settings["priority"] = SourceSetting(name, scheduling["priorityClass"])
    scheduling.dropped(POD_GROUP_REASON)


def account_for_suspend(node: SourceNode) -> None:
    """Account for `suspend` of a job: a run waits until its queue admits it."""
    if node.value is True:
        node.dropped("Kueue suspends and admits runs; state: stopped keeps one from running")
    else:
        node.same("Kueue suspends and admits runs")


def account_for_restart_policy(node: SourceNode) -> None:
    """Account for the restart policy of a replica."""
    if node.text() == "Never":
        node.same("pods of a run are not restarted one by one")
    else:
        node.dropped("a failed worker fails the run; retries restart it as a whole")
