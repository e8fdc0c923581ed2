"""Read a JobSet: jobset.x-k8s.io/v1alpha2 (JobSet v0.5 to v0.12)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.account import Account, SourceNode
from gangplan.imports.groups import SourcePodGroup, group_imported_pods_into_roles
from gangplan.imports.jobs import (
    map_imported_job_policy,
    map_imported_jobset_metadata,
    map_imported_jobset_policy,
)
from gangplan.imports.numbers import set_jobset_numbers
from gangplan.imports.pods import read_imported_pod_template
from gangplan.imports.sources import OtherObject
from gangplan.imports.steps import convert_replicated_job_to_step, find_source_jobs_before_leads
from gangplan.imports.workload import SetupStep, SourceError, SourceJob, SourceSetting


def read_imported_jobset(account: Account, others: Sequence[OtherObject] = ()) -> SourceJob:
    """Return the workload of a JobSet. Raises SourceError for one without a pod."""
    root = account.root()
    spec = root["spec"]
    name = root.at("metadata", "name").text() or root.at("metadata", "generateName").text()
    groups = [
        one for job in spec["replicatedJobs"].items() if (one := _read_replicated_job_pods(job)) is not None
    ]
    if not groups:
        raise SourceError("no job of it has a container (spec.replicatedJobs[].template.spec.template)")
    groups, before = _split_setup_steps_from_jobset(spec, groups)
    found = group_imported_pods_into_roles(groups)
    work = SourceJob("JobSet", name, found.start, account, found.roles, framework=found.framework or "")
    work.aside = found.aside
    work.before = before
    work.mpi = "OpenMPI" if found.start == "mpi" else ""
    lead = found.roles[0].name
    jobs = "|".join(re.escape(one.name) for one in groups)
    domain = rf"(?:\.{re.escape(spec.at('network', 'subdomain').text() or name)}(?:\.[a-z0-9-]+\.svc(?:\.cluster\.local)?)?)?"
    work.hosts = rf"\b{re.escape(name)}-(?:{jobs})-[0-9]+-[0-9]+\b{domain}"
    work.first_host = rf"\b{re.escape(name)}-{re.escape(lead)}-0-0\b{domain}"
    workers = next(one for one in groups if one.name == found.roles[-1].name)
    work.settings["workers"] = SourceSetting(
        workers.count, workers.node.at("template", "spec", "parallelism")
    )
    if len([one for one in groups if one.node["replicas"].number() not in (None, 1)]):
        _ask_about_imported_jobset_replicas(work, groups)
    set_jobset_numbers(work, spec, groups)
    map_imported_jobset_metadata(root["metadata"], work)
    map_imported_jobset_policy(spec, work)
    for group in groups:
        _map_replicated_job(group.node, work)
    return work


def _split_setup_steps_from_jobset(
    spec: SourceNode, groups: list[SourcePodGroup]
) -> tuple[list[SourcePodGroup], tuple[SetupStep, ...]]:
    """Return the groups that run at the same time, and the steps that end before the last of them starts."""
    jobs = {one["name"].text(): one for one in spec["replicatedJobs"].items()}
    if not any(one["dependsOn"] for one in jobs.values()):
        return groups, ()
    names = find_source_jobs_before_leads(jobs, tuple(one.name for one in groups))
    steps = [step for name in names if (step := convert_replicated_job_to_step(jobs[name])) is not None]
    ended = {one.name for one in steps}
    return [one for one in groups if one.name not in ended], tuple(steps)


def _read_replicated_job_pods(job: SourceNode) -> SourcePodGroup | None:
    """Return the pods of a replicated job; None if there are none."""
    template = job["template"]["spec"]
    pod = read_imported_pod_template(template["template"])
    replicas, parallelism = job["replicas"].count(), template["parallelism"].count()
    count = (1 if replicas is None else replicas) * (1 if parallelism is None else parallelism)
    if pod is None or count < 1:
        job.dropped("it has no pods")
        return None
    return SourcePodGroup(job["name"].text(), count, pod, job)


def _ask_about_imported_jobset_replicas(work: SourceJob, groups: Sequence[SourcePodGroup]) -> None:
    """Ask about jobs of one template: a run has a single job, whose pods are numbered consecutively."""
    for group in groups:
        replicas = group.node["replicas"].count()
        if replicas and replicas > 1 and group.name in [role.name for role in work.roles]:
            asked = format_question_about_jobs_of_one_template(replicas, group.count // replicas)
            work.questions.append((group.node["replicas"], *asked))


def format_question_about_jobs_of_one_template(jobs: int, pods: int) -> tuple[str, str]:
    """Return the question, and what helps, for jobs of one template that become one job of a run."""
    message = (
        f"{jobs} jobs of {pods} pods become {jobs * pods} workers of one job, numbered"
        " through: JOB_COMPLETION_INDEX begins at 0 in each job of the source, and only once in a run"
    )
    return message, "Check what the program makes of the number of its pod and of its job."


def _map_replicated_job(job: SourceNode, work: SourceJob) -> None:
    """Map a replicated job whose pods are workers or the launcher."""
    job["replicas"].mapped("workers")
    for field in ("name", "groupName"):
        job[field].dropped("Trainer names the jobs of a run")
    job["dependsOn"].dropped("Trainer starts workers before the launcher")
    for key, node in job["template"]["metadata"]["annotations"].fields():
        if key.startswith("alpha.jobset.sigs.k8s.io/"):
            node.asked("placement.topology.required keeps workers in one domain")
    job["template"]["metadata"]["labels"].dropped("labels: of the spec adds more")
    job["template"]["metadata"]["name"].dropped("Trainer names the jobs of a run")
    map_imported_job_policy(job["template"]["spec"], work)
