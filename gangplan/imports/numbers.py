"""The numbers that JobSet gives its jobs and their pods, as pods of a run have them.

Sources: JobSet v0.12 (pkg/controllers/jobset_controller.go, labelAndAnnotateObject) and the Job controller of
Kubernetes 1.34. A run has one job in place of each replicated job, so that its job-index is always 0 and its
completion index counts all of their pods.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.groups import SourcePodGroup
from gangplan.imports.workload import BY_INDEX, NOT_IN_RUN, PodNumbers, SourceJob

_JOBSET = "jobset.sigs.k8s.io/"
_POD = ("batch.kubernetes.io/job-completion-index", "JOB_COMPLETION_INDEX")


def set_jobset_numbers(work: SourceJob, spec: SourceNode, groups: Sequence[SourcePodGroup]) -> None:
    """Set what the labels of each group's pods say, and what their scripts learn in a run."""
    jobs = list(spec["replicatedJobs"].items())
    counts = [1 if (count := one["replicas"].count()) is None else count for one in jobs]
    teams = [one["groupName"].text() or "default" for one in jobs]
    names = [one["name"].text() for one in jobs]
    for group in groups:
        at = names.index(group.name)
        replicas, pods = counts[at], group.count // counts[at]
        same = [count for count, team in zip(counts, teams, strict=True) if team == teams[at]]
        before = [count for count, team in zip(counts[:at], teams[:at], strict=True) if team == teams[at]]
        labels = {
            f"{_JOBSET}replicatedjob-name": group.name,
            f"{_JOBSET}replicatedjob-replicas": str(replicas),
            f"{_JOBSET}global-replicas": str(sum(counts)),
            f"{_JOBSET}group-name": teams[at],
            f"{_JOBSET}group-replicas": str(sum(same)),
            f"{_JOBSET}job-index": _number_job(0, replicas, pods),
            f"{_JOBSET}job-global-index": _number_job(sum(counts[:at]), replicas, pods),
            f"{_JOBSET}job-group-index": _number_job(sum(before), replicas, pods),
        }
        exports = {}
        if replicas > 1:
            labels[f"{_JOBSET}job-key"] = NOT_IN_RUN
            labels[_POD[0]] = "0" if pods == 1 else NOT_IN_RUN
            exports[_POD[1]] = "0" if pods == 1 else f"$(({_POD[1]} % {pods}))"
        work.numbers.append(PodNumbers(group.pod, labels, exports))
    _ask_about_numbers_of_several_jobs(work)


def _number_job(first: int, replicas: int, pods: int) -> str:
    """Return the number of a job as its pods have it in a run: that of the pod, where each job has one."""
    if replicas == 1:
        return str(first)
    return BY_INDEX if first == 0 and pods == 1 else NOT_IN_RUN


def _ask_about_numbers_of_several_jobs(work: SourceJob) -> None:
    """Ask about scripts that read the number of their pod, where pods of several jobs become workers."""
    trained = [role for role in work.roles if role is not work.launcher]
    if len(trained) < 2:
        return
    for role in trained:
        for one in work.numbers:
            if one.pod is role.pod:
                one.labels[_POD[0]] = NOT_IN_RUN
                one.exports.clear()
        main = role.pod.main
        if any(_POD[1] in word for word in main.command):
            message = f"{' and '.join(each.name for each in trained)} become workers of one job, numbered through: {_POD[1]} begins at 0 in each job of the source"
            work.questions.append(
                (main.node["command"] or main.node["args"], message, "Check what the program makes of it.")
            )
            return
