"""Read a Job (batch/v1 of Kubernetes v1.34) whose pods train alone or know each other by their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.imports.account import Account
from gangplan.imports.groups import SourcePodGroup, group_imported_pods_into_roles
from gangplan.imports.jobs import map_imported_job_policy
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.sources import OtherObject
from gangplan.imports.workload import SourceError, SourceJob, SourceSetting


def read_imported_plain_job(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a Job.

    Raises SourceError for one without a container or pods, or whose pods run one after another.
    """
    root = account.root()
    spec = root["spec"]
    name = root.at("metadata", "name").text() or root.at("metadata", "generateName").text()
    pod = read_imported_pod_template(spec["template"])
    if pod is None:
        raise SourceError("it has no container (spec.template.spec.containers)")
    parallel, completions = spec["parallelism"].count(), spec["completions"].count()
    count = 1 if parallel is None else parallel
    if count < 1:
        raise SourceError("it has no pods (spec.parallelism is 0)", "Write how many pods it has.")
    if completions is not None and completions > count:
        raise SourceError(
            f"it has {completions} pods, {count} at a time; all workers of a run start together",
            "Import one of its pods with completions: 1, and write a Sweep for the others (docs/sweeps.md).",
        )
    found = group_imported_pods_into_roles([SourcePodGroup(name, count, pod, root)])
    work = SourceJob("Job", name, found.start, account, found.roles, framework=found.framework or "")
    work.settings["workers"] = SourceSetting(count, spec["parallelism"] if spec["parallelism"] else root)
    limit = spec["backoffLimit"]
    if (retries := limit.number()) is not None:
        work.settings["retries"] = SourceSetting(retries, limit)
    map_imported_job_policy(spec, work)
    return work
