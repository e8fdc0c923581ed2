"""Waivers and findings: which waiver excuses which finding, and the mark of a waived object.

A policy is judged twice, here and by the API server. Here its findings are kept and excused; there the
policies' bindings skip objects with the label `gangplan.dev/waived-<policy>`, which only the generators set,
from these files. Nothing here depends on the date, because rendering must not: an expired waiver goes on
excusing rendered objects until `validate` demands that it is renewed or removed.
"""

from __future__ import annotations

import copy
import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from gangplan.findings import Finding, Waived
from gangplan.model.job import Job
from gangplan.model.quantity import Quantity
from gangplan.objects import Body
from gangplan.records import dataclass
from gangplan.rules.model import Rule
from gangplan.spec.waiver import Waiver
from gangplan.spec.waiver_files import WaiverFile

# The prefix of labels whose objects the bindings of policies skip; specs may not set labels of gangplan.dev/.
WAIVED_PREFIX = "gangplan.dev/waived-"

Waivers = Sequence[WaiverFile]


@dataclass(frozen=True, slots=True)
class Subject:
    """The cluster, team and job that findings are about.

    An empty one means that they are not about a single cluster (team, job), so no waiver for one covers them.
    `amounts` are what the job requests, by the names of `WaiverLimit`.
    """

    cluster: str = ""
    team: str = ""
    job: str = ""
    amounts: Mapping[str, int | Quantity] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Job) -> Subject:
        """Return the subject of a job on its cluster."""
        amounts: dict[str, int | Quantity] = {
            "timeout": job.timeout_s,
            "workers": job.workers,
            "gpus": job.gpus,
            "cpu": job.resources.cpu,
            "memory": job.resources.memory,
            "retries": job.retries,
        }
        return cls(job.platform.cluster, job.team, job.name, amounts)


def apply_waivers_to_findings(
    findings: Iterable[Finding], waivers: Waivers, subject: Subject
) -> list[Finding]:
    """Return the findings about one subject, each with the waiver that covers it, if any."""
    if not waivers:
        return list(findings)
    return [
        replace(one, waiver=_build_waived_record(found))
        if one.waiver is None and (found := find_covering_waiver(waivers, one.rule, subject)) is not None
        else one
        for one in findings
    ]


def excuse_waived_findings_by_file(findings: Iterable[Finding], waivers: Waivers) -> list[Finding]:
    """Excuse findings about files of the platform and of teams, each for the cluster or team of its file."""
    return [
        one
        for finding in findings
        for one in apply_waivers_to_findings([finding], waivers, _find_file_subject(finding.where.file))
    ]


def excuse_waived_cluster_findings(
    findings: Iterable[Finding], waivers: Waivers, cluster: str, owners: Mapping[str, str]
) -> list[Finding]:
    """Excuse findings about the platform and tenant objects of a cluster; `owners` are teams by namespace."""

    def subject(finding: Finding) -> Subject:
        kind, name, *rest = [*finding.object_ref.split("/"), ""]
        is_spaced = len(rest) > 1 or kind == "Namespace"
        return Subject(cluster, owners.get(name, "") if is_spaced else "")

    return [
        one for finding in findings for one in apply_waivers_to_findings([finding], waivers, subject(finding))
    ]


def _find_file_subject(file: str) -> Subject:
    top, name, *rest = [*file.split("/"), "", ""]
    if top == "overlays" and rest[0]:
        return Subject(cluster=name)
    return Subject(team=name) if top == "specs" and rest[0] == "team.yaml" else Subject()


def list_waived_policies(waivers: Waivers, subject: Subject) -> tuple[str, ...]:
    """Return the policies that are waived for the whole subject, sorted."""
    wanted = {policy for one in waivers for policy in one.policies}
    return tuple(sorted(str(rule) for rule in wanted if find_covering_waiver(waivers, rule, subject)))


def build_mark_labels(policies: Iterable[str]) -> dict[str, str]:
    """Return the labels of an object for which these policies are waived."""
    return {f"{WAIVED_PREFIX}{policy}": "true" for policy in policies}


def remove_waiver_marks(body: Body, policies: Collection[str]) -> Body:
    """Return a copy of an object without these marks in any labels, or the object itself if it has none.

    So a policy is judged as if nothing were waived, and its findings can be shown with their waivers.
    """
    if not policies or WAIVED_PREFIX not in repr(body):
        return body
    bare = copy.deepcopy(body)
    _remove_waiver_labels(bare, {f"{WAIVED_PREFIX}{policy}" for policy in policies})
    return bare


def _remove_waiver_labels(value: Any, labels: set[str]) -> None:
    if isinstance(value, dict):
        found = value.get("labels")
        if isinstance(found, dict):
            for label in labels & found.keys():
                del found[label]
        for inner in value.values():
            _remove_waiver_labels(inner, labels)
    elif isinstance(value, list):
        for inner in value:
            _remove_waiver_labels(inner, labels)


def find_covering_waiver(waivers: Waivers, rule: Rule, subject: Subject) -> WaiverFile | None:
    """Return the waiver that covers a rule for a subject, if any; of several, the one that expires last."""
    if not rule.may_be_waived:
        return None
    same = {rule, *rule.formerly, *rule.told_by}
    fitting = [one for one in waivers if one.spec.rule in same and _is_subject_waived(one.spec, subject)]
    return max(fitting, key=lambda one: (one.spec.expires, one.name), default=None)


def _is_subject_waived(waiver: Waiver, subject: Subject) -> bool:
    scope = waiver.scope
    pairs = ((scope.cluster, subject.cluster), (scope.team, subject.team), (scope.job, subject.job))
    if any(wanted is not None and not _matches_scope_pattern(name, wanted) for wanted, name in pairs):
        return False
    if waiver.limit is None:
        return True
    limits = {name: getattr(waiver.limit, name) for name in type(waiver.limit).model_fields}
    return all(
        name in subject.amounts and subject.amounts[name] <= most
        for name, most in limits.items()
        if most is not None
    )


def _matches_scope_pattern(name: str, pattern: str) -> bool:
    return bool(name) and fnmatch.fnmatchcase(name, pattern)


def _build_waived_record(file: WaiverFile) -> Waived:
    spec = file.spec
    return Waived(file.where, spec.expires, " ".join(spec.reason.split()), spec.approver.strip())
