"""Judge rendered objects by a workspace's policies, and report each breach at the field that causes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from gangplan.component import OperationStates
from gangplan.findings import FieldPath, Finding, Location
from gangplan.model.support import KUBERNETES_LINES
from gangplan.objects import BINDING_KIND, POLICY_KIND, Body, Ref, ref_of
from gangplan.packs.checks import check_packs
from gangplan.packs.files import check_files_outside_packs
from gangplan.packs.read import PolicySource
from gangplan.plan.names import HASH_PLACEHOLDER
from gangplan.policy.choose import ChosenPolicy, choose_policies
from gangplan.policy.limits import check_policy_sizes
from gangplan.policy.objects import build_policy_objects
from gangplan.policy.places import find_policy_violation_place
from gangplan.records import dataclass
from gangplan.resolve.facts import resolve_cluster_facts_for_policies
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.rulebook import Rulebook
from gangplan.rules.objects import SCHEMA_MISSING
from gangplan.rules.policy import (
    PACK_INVALID,
    POLICY_INERT,
    POLICY_INVALID,
    POLICY_OBSTRUCTS,
    POLICY_PARAM_KIND,
    POLICY_UNDECIDED,
)
from gangplan.source import Document
from gangplan.trace import Tracer
from gangplan.validate.apiserver.policy.judge import Namespaces, PolicyEvaluator, Violation
from gangplan.validate.apiserver.policy.kinds import read_extra_kinds
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.obstruction import check_admission_policy_obstruction
from gangplan.validate.apiserver.policy.read import REPEATED_NAME, PolicyReading, read_policy_objects
from gangplan.validate.apiserver.policy.resources import (
    check_admission_policy_param_kind,
    check_admission_policy_resources,
    list_served_resource_plurals,
)
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import check_object_against_api_schema as schema_problems
from gangplan.validate.expand import merge_train_jobs_into_runtimes
from gangplan.validate.problems import format_path
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class PolicyChecker:
    """The evaluator of a cluster's policies, and the cluster's file; `pages` are the chosen policies of
    packs, by name."""

    evaluator: PolicyEvaluator
    pages: Mapping[str, ChosenPolicy] = field(default_factory=dict)
    cluster: Document | None = None
    rulebook: Rulebook = field(default_factory=Rulebook)
    of_controllers: dict[str, PolicyEvaluator] = field(
        default_factory=dict
    )  # by user of the requests (made.py)

    def chosen(self, violation: Violation) -> ChosenPolicy | None:
        """Return the chosen policy of a violation by its binding, since a policy can have several
        bindings."""
        name = violation.binding.name
        return (
            self.pages.get(name)
            or self.pages.get(name.removesuffix("-object"))
            or self._named(violation.policy.name)
        )

    def _named(self, policy: str) -> ChosenPolicy | None:
        return next((one for one in self.pages.values() if one.policy == policy), None)

    def __bool__(self) -> bool:
        """Return whether there is any policy."""
        return bool(self.evaluator.policies)

    @property
    def has_own(self) -> bool:
        """Whether any of the policies is the workspace's own."""
        return any(not one.policy.written.is_shipped for one in self.evaluator.policies)

    @property
    def names(self) -> frozenset[str]:
        """The names of the policies that judge objects."""
        return self.evaluator.names


def collect_policy_sources(
    workspace: Workspace, cluster: str
) -> tuple[list[PolicySource], dict[str, ChosenPolicy], list[Finding]]:
    """Return the policy objects of a cluster, the chosen policies of packs by name, and findings
    about them."""
    file = workspace.clusters[cluster]
    findings = list(workspace.policies.findings)
    taken: list[ChosenPolicy] = []
    if file.spec.policies.packs or file.spec.policies.actions or file.spec.policies.params:
        taken, more = choose_policies(
            workspace.policies, file, resolve_cluster_facts_for_policies(workspace, cluster)
        )
        findings = [*findings, *more]
    sources = [*build_policy_objects(taken, file.document.file), *workspace.policies.sources]
    return sources, {one.name: one for one in taken}, findings


def check_own_policies(workspace: Workspace) -> list[Finding]:
    """Check the files in policies/, for all clusters at once."""
    own = workspace.policies
    return [*check_files_outside_packs(workspace.root), *own.findings, *check_packs(own)]


def check_policies(workspace: Workspace, clusters: Iterable[str] = ()) -> list[Finding]:
    """Check the policies of clusters (default: all) before they judge any object."""
    findings = check_own_policies(workspace)
    is_taken = any(one.rule == PACK_INVALID for one in findings)  # then a repeated name is reported already
    for cluster in clusters or workspace.clusters:
        sources, _, wrong = collect_policy_sources(workspace, cluster)
        findings += wrong
        versions = _resolve_schema_versions(workspace, cluster)
        if versions.kubernetes in KUBERNETES_LINES:  # any other is reported where it is stated
            findings += _list_reading_problems(
                _read_policy_sources(sources, versions), without_repeats=is_taken
            )
            findings += check_policy_sizes(sources)
            own = [one for one in sources if one.document and not one.is_shipped]
            findings += _check_own_policy_objects(own, versions)
    return findings


def _check_own_policy_objects(own: Sequence[PolicySource], versions: SchemaVersions) -> Iterator[Finding]:
    """Yield findings about a workspace's own objects: policies that cannot work, and parameters that break
    their schema."""
    if not own:
        return
    groups = list_served_resource_plurals(versions, read_extra_kinds(versions))
    for source in own:
        written = PlacedObject(source.body, source.document, source.file)
        if source.body.get("kind") == POLICY_KIND:
            if isinstance(source.body.get("spec"), dict):
                for one in check_admission_policy_resources(source.body, groups):
                    yield Finding(POLICY_INERT, written.where(one.path), one.message, one.help)
                for one in check_admission_policy_param_kind(source.body, groups, versions):
                    yield Finding(POLICY_PARAM_KIND, written.where(one.path), one.message, one.help)
                for one in check_admission_policy_obstruction(source.body):
                    yield Finding(POLICY_OBSTRUCTS, written.where(one.path), one.message, one.help)
        elif source.body.get("kind") != BINDING_KIND:
            for one in schema_problems(source.body, versions):
                rule = one.rule if one.rule == SCHEMA_MISSING else POLICY_INVALID
                yield Finding(
                    rule, written.where(one.path), f"{ref_of(source.body)}: {one.message}", one.help
                )


def _resolve_schema_versions(workspace: Workspace, cluster: str) -> SchemaVersions:
    return choose_schema_versions_of(resolve_platform_of_cluster_file(workspace.clusters[cluster]))


def _read_policy_sources(sources: Iterable[PolicySource], versions: SchemaVersions) -> PolicyReading:
    return read_policy_objects(
        [PlacedObject(one.body, one.document, one.file, one.is_shipped) for one in sources], versions
    )


def _list_reading_problems(reading: PolicyReading, without_repeats: bool) -> Iterator[Finding]:
    for one in reading.problems:
        if not (without_repeats and one.clue.kind == REPEATED_NAME):
            yield one


def build_policy_checker(workspace: Workspace, cluster: str, standing: Sequence[Body]) -> PolicyChecker:
    """Return the checker of a cluster's policies, which knows the cluster's objects.

    `check_policies` reports what is wrong with the policies themselves.
    """
    sources, pages, _ = collect_policy_sources(workspace, cluster)
    versions = _resolve_schema_versions(workspace, cluster)
    reading = _read_policy_sources(sources, versions)
    if not reading.policies:
        return PolicyChecker(PolicyEvaluator(versions, (), ()))
    namespaces = Namespaces([*standing, *reading.others], versions)
    evaluator = PolicyEvaluator(
        versions,
        reading.policies,
        reading.bindings,
        _remove_repeated_policy_objects([*reading.others, *standing]),
        namespaces,
        read_extra_kinds(versions),
    )
    return PolicyChecker(evaluator, pages, workspace.clusters[cluster].document, workspace.rulebook)


def _remove_repeated_policy_objects(bodies: Iterable[Body]) -> list[Body]:
    """Return the objects without repeats: parameter objects may also be among the rendered objects."""
    found: dict[Ref, Body] = {}
    for body in bodies:
        found.setdefault(ref_of(body), body)
    return list(found.values())


def judge_objects_by_policies(
    checker: PolicyChecker,
    bodies: Sequence[Body],
    tracer: Tracer,
    others: Iterable[Finding] = (),
    undone: OperationStates | None = None,
) -> list[Finding]:
    """Return what the policies report about objects, each cause once.

    `others` are findings about the same objects: where one of their rules reports the cause already
    (`told_by` of a pack), the policy reports nothing. `undone` are the operations of patches on the objects.
    """
    told = {finding.rule for finding in others}
    found: dict[tuple[str, Location, str], Finding] = {}
    for violation in _merge_repeated_policy_violations(
        checker.evaluator.judge(merge_train_jobs_into_runtimes(bodies))
    ):
        page = checker.chosen(violation)
        if page is not None and told & set(page.page.told_by):
            continue
        place = find_policy_violation_place(violation, tracer, page, checker.cluster, undone)
        finding = _build_policy_violation_finding(violation, bodies[violation.index], place, page, checker)
        found.setdefault((finding.rule, finding.where, finding.message), finding)
    return list(found.values())


def _merge_repeated_policy_violations(violations: Sequence[Violation]) -> Iterator[Violation]:
    """Yield each violation of a validation by an object once, with the highest severity among its
    bindings."""
    worst: dict[tuple[int, str, int, str], Violation] = {}
    for one in violations:
        key = one.index, one.policy.name, one.validation, "" if one.validation >= 0 else one.message
        if key not in worst or one.severity > worst[key].severity:
            worst[key] = one
    yield from worst.values()


def _build_policy_violation_finding(
    violation: Violation,
    body: Body,
    place: tuple[Location, FieldPath],
    page: ChosenPolicy | None,
    checker: PolicyChecker,
) -> Finding:
    name, (where, path), home = violation.policy.name, place, find_violated_policy_location(violation)
    help = page.page.fix if page else f"Follow the policy in {home}, or change it."
    if violation.is_undecided:
        help = f"Judge it in the cluster, or write policy '{name}' so that Git is enough."
    elif violation.is_error:
        help = f"The policy could not be evaluated: correct the object, or guard the field in {home}."
    return Finding(
        POLICY_UNDECIDED if violation.is_undecided else checker.rulebook.policy(name),
        where,
        drop_hash_placeholder(violation.message),
        help,
        drop_hash_placeholder(str(ref_of(body))),
        format_path(path),
        level=None if violation.is_undecided else violation.severity,
    )


def find_violated_policy_location(violation: Violation) -> Location:
    """Return the place in a policy to look at: the validation that fails, or the policy's name."""
    policy = violation.policy
    if 0 <= violation.validation < len(policy.validations):
        return policy.written.where((*policy.validations[violation.validation].path, "expression"))
    return policy.written.where(("metadata", "name"))


def drop_hash_placeholder(text: str) -> str:
    """Return a text without the placeholder for a run's hash."""
    return text.replace(f"-{HASH_PLACEHOLDER}", "")
