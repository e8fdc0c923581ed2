"""Map what JobSets and Jobs specify outside their pods (JobSet v0.12, batch/v1 of Kubernetes 1.34)."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.imports.account import SourceNode
from gangplan.imports.policies import account_for_suspend
from gangplan.imports.workload import SourceJob, SourceSetting

_WHOLE = "a failed worker fails the run; retries restart it as a whole"
_OF_THE_RUN = "Trainer and JobSet set it for the pods of a run"
_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
# The list of exitCodes for a rule that fails a Job, by its operator.
_FIELDS = {"In": "fail", "NotIn": "retry"}


def map_imported_jobset_policy(spec: SourceNode, work: SourceJob) -> None:
    """Map the spec of a JobSet, except its jobs."""
    network = spec["network"]
    if network["enableDNSHostnames"].value is False:
        network["enableDNSHostnames"].asked("pods of a run have names in DNS")
    network.same(_OF_THE_RUN)
    spec["successPolicy"].dropped("a run is complete once the program is")
    spec["startupPolicy"].dropped("Trainer starts workers before the launcher")
    spec["ttlSecondsAfterFinished"].dropped("a run stays until Git retires it (gangplan retire)")
    spec["managedBy"].dropped("the cluster file says whether runs are dispatched (multiKueue)")
    spec["coordinator"].dropped("the workers of a run meet at the first of them")
    account_for_suspend(spec["suspend"]) if spec["suspend"] else None
    failure = spec["failurePolicy"]
    restarts = failure["maxRestarts"]
    if (count := restarts.number()) is not None:
        work.settings.setdefault("retries", SourceSetting(count, restarts))
    failure["restartStrategy"].dropped("a run restarts as a whole")
    for rule in failure["rules"].items():
        if rule["action"].value == "RestartJobSet" and not rule["onJobFailureReasons"]:
            rule.same("a run restarts as a whole")
        rule.asked("retries and exitCodes decide what restarts a run")
    spec["volumeClaimPolicies"].asked("a run mounts claims that exist; scratch gives it room of its own")


def map_imported_jobset_metadata(metadata: SourceNode, work: SourceJob) -> None:
    """Map annotations of a JobSet about where its pods go; `map_identity` does the rest."""
    for key, node in metadata["annotations"].fields():
        if key == _TOPOLOGY:
            work.questions.append(
                (
                    node,
                    f"each job of the set has a {node.text()} to itself; a run has its nodes together",
                    "Write placement.topology.required with the cluster's level for it.",
                )
            )
            node.asked("placement.topology.required keeps workers in one domain")
        elif key.startswith("alpha.jobset.sigs.k8s.io/"):
            node.dropped(_OF_THE_RUN)


def map_imported_job_policy(spec: SourceNode, work: SourceJob) -> None:
    """Map the spec of a Job, except its pods."""
    for name in ("parallelism", "completions"):
        spec[name].mapped("workers")
    if spec["completionMode"].value == "Indexed":
        spec["completionMode"].same("workers of a run are numbered")
    spec["completionMode"].dropped("workers of a run are numbered")
    deadline = spec["activeDeadlineSeconds"]
    if (seconds := deadline.number()) is not None:
        work.settings.setdefault("timeout", SourceSetting(seconds, deadline))
    for name in ("backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes", "podReplacementPolicy"):
        spec[name].dropped(_WHOLE)
    for name in (
        "ttlSecondsAfterFinished",
        "suspend",
        "manualSelector",
        "selector",
        "managedBy",
        "successPolicy",
    ):
        spec[name].dropped(_OF_THE_RUN)
    for rule in spec["podFailurePolicy"]["rules"].items():
        _map_pod_failure_rule(rule, work)


def _map_pod_failure_rule(rule: SourceNode, work: SourceJob) -> None:
    """Map a rule about failed pods: exit codes that fail the whole job, or disruptions that do not count."""
    codes = rule["onExitCodes"]
    action, operator = rule["action"].text(), codes["operator"].text()
    values = list(_read_exit_codes(codes["values"]))
    if action == "Ignore" and rule["onPodConditions"]:
        rule.same("a drained or reclaimed node uses up no retry")
    elif action == "FailJob" and values and operator in _FIELDS:
        work.exit_codes.append((_FIELDS[operator], tuple(values), rule))
    else:
        rule.asked("exitCodes says which codes end a run, and which use a retry")


def _read_exit_codes(values: SourceNode) -> Iterator[int]:
    return (code for one in values.items() if (code := one.number()) is not None)
