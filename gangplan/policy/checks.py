"""Judge rendered objects by a workspace's policies, and report each breach at the field that causes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from gangplan.component import Undone
from gangplan.findings import Finding, Location
from gangplan.model.support import KUBERNETES
from gangplan.objects import BINDING, POLICY, Body, Path, Ref, ref_of
from gangplan.packs.checks import check_packs
from gangplan.packs.files import check_files
from gangplan.packs.read import PolicySource
from gangplan.plan.names import PLACEHOLDER
from gangplan.policy.choose import ChosenPolicy, chosen
from gangplan.policy.limits import too_large
from gangplan.policy.objects import cluster_objects
from gangplan.policy.places import blamed_place
from gangplan.records import dataclass
from gangplan.resolve.facts import facts
from gangplan.resolve.platform import resolve_platform
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
from gangplan.validate.apiserver.policy.kinds import kinds_of
from gangplan.validate.apiserver.policy.model import Written
from gangplan.validate.apiserver.policy.obstruction import obstructing
from gangplan.validate.apiserver.policy.read import REPEATED, PolicyReading, read
from gangplan.validate.apiserver.policy.resources import served, unknown_parameters, unknown_resources
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import problems as schema_problems
from gangplan.validate.problems import dotted
from gangplan.validate.versions import versions_of
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


def policy_sources(
    workspace: Workspace, cluster: str
) -> tuple[list[PolicySource], dict[str, ChosenPolicy], list[Finding]]:
    """Return the policy objects of a cluster, the chosen policies of packs by name, and findings
    about them."""
    file = workspace.clusters[cluster]
    findings = list(workspace.policies.findings)
    taken: list[ChosenPolicy] = []
    if file.spec.policies.packs or file.spec.policies.actions or file.spec.policies.params:
        taken, more = chosen(workspace.policies, file, facts(workspace, cluster))
        findings = [*findings, *more]
    sources = [*cluster_objects(taken, file.document.file), *workspace.policies.sources]
    return sources, {one.name: one for one in taken}, findings


def check_own(workspace: Workspace) -> list[Finding]:
    """Check the files in policies/, for all clusters at once."""
    own = workspace.policies
    return [*check_files(workspace.root), *own.findings, *check_packs(own)]


def check_policies(workspace: Workspace, clusters: Iterable[str] = ()) -> list[Finding]:
    """Check the policies of clusters (default: all) before they judge any object."""
    findings = check_own(workspace)
    is_taken = any(one.rule == PACK_INVALID for one in findings)  # then a repeated name is reported already
    for cluster in clusters or workspace.clusters:
        sources, _, wrong = policy_sources(workspace, cluster)
        findings += wrong
        versions = _versions(workspace, cluster)
        if versions.kubernetes in KUBERNETES:  # any other is reported where it is stated
            findings += _problems(_read(sources, versions), without_repeats=is_taken)
            findings += too_large(sources)
            own = [one for one in sources if one.document and not one.is_shipped]
            findings += _own_problems(own, versions)
    return findings


def _own_problems(own: Sequence[PolicySource], versions: SchemaVersions) -> Iterator[Finding]:
    """Yield findings about a workspace's own objects: policies that cannot work, and parameters that break
    their schema."""
    if not own:
        return
    groups = served(versions, kinds_of(versions))
    for source in own:
        written = Written(source.body, source.document, source.file)
        if source.body.get("kind") == POLICY:
            if isinstance(source.body.get("spec"), dict):
                for one in unknown_resources(source.body, groups):
                    yield Finding(POLICY_INERT, written.where(one.path), one.message, one.help)
                for one in unknown_parameters(source.body, groups, versions):
                    yield Finding(POLICY_PARAM_KIND, written.where(one.path), one.message, one.help)
                for one in obstructing(source.body):
                    yield Finding(POLICY_OBSTRUCTS, written.where(one.path), one.message, one.help)
        elif source.body.get("kind") != BINDING:
            for one in schema_problems(source.body, versions):
                rule = one.rule if one.rule == SCHEMA_MISSING else POLICY_INVALID
                yield Finding(
                    rule, written.where(one.path), f"{ref_of(source.body)}: {one.message}", one.help
                )


def _versions(workspace: Workspace, cluster: str) -> SchemaVersions:
    return versions_of(resolve_platform(workspace.clusters[cluster]))


def _read(sources: Iterable[PolicySource], versions: SchemaVersions) -> PolicyReading:
    return read([Written(one.body, one.document, one.file, one.is_shipped) for one in sources], versions)


def _problems(reading: PolicyReading, without_repeats: bool) -> Iterator[Finding]:
    for one in reading.problems:
        if not (without_repeats and one.clue.kind == REPEATED):
            yield one


def checker_of(workspace: Workspace, cluster: str, standing: Sequence[Body]) -> PolicyChecker:
    """Return the checker of a cluster's policies, which knows the cluster's objects.

    `check_policies` reports what is wrong with the policies themselves.
    """
    sources, pages, _ = policy_sources(workspace, cluster)
    versions = _versions(workspace, cluster)
    reading = _read(sources, versions)
    if not reading.policies:
        return PolicyChecker(PolicyEvaluator(versions, (), ()))
    namespaces = Namespaces([*standing, *reading.others], versions)
    evaluator = PolicyEvaluator(
        versions,
        reading.policies,
        reading.bindings,
        _once_each([*reading.others, *standing]),
        namespaces,
        kinds_of(versions),
    )
    return PolicyChecker(evaluator, pages, workspace.clusters[cluster].document, workspace.rulebook)


def _once_each(bodies: Iterable[Body]) -> list[Body]:
    """Return the objects without repeats: parameter objects may also be among the rendered objects."""
    found: dict[Ref, Body] = {}
    for body in bodies:
        found.setdefault(ref_of(body), body)
    return list(found.values())


def policy_findings(
    checker: PolicyChecker,
    bodies: Sequence[Body],
    tracer: Tracer,
    others: Iterable[Finding] = (),
    undone: Undone | None = None,
) -> list[Finding]:
    """Return what the policies report about objects, each cause once.

    `others` are findings about the same objects: where one of their rules reports the cause already
    (`told_by` of a pack), the policy reports nothing. `undone` are the operations of patches on the objects.
    """
    told = {finding.rule for finding in others}
    found: dict[tuple[str, Location, str], Finding] = {}
    for violation in _once(checker.evaluator.judge(bodies)):
        page = checker.chosen(violation)
        if page is not None and told & set(page.page.told_by):
            continue
        place = blamed_place(violation, tracer, page, checker.cluster, undone)
        finding = _finding(violation, bodies[violation.index], place, page, checker)
        found.setdefault((finding.rule, finding.where, finding.message), finding)
    return list(found.values())


def _once(violations: Sequence[Violation]) -> Iterator[Violation]:
    """Yield each violation of a validation by an object once, with the highest severity among its
    bindings."""
    worst: dict[tuple[int, str, int, str], Violation] = {}
    for one in violations:
        key = one.index, one.policy.name, one.validation, "" if one.validation >= 0 else one.message
        if key not in worst or one.severity > worst[key].severity:
            worst[key] = one
    yield from worst.values()


def _finding(
    violation: Violation,
    body: Body,
    place: tuple[Location, Path],
    page: ChosenPolicy | None,
    checker: PolicyChecker,
) -> Finding:
    name, (where, path), home = violation.policy.name, place, home_of(violation)
    help = page.page.fix if page else f"Follow the policy in {home}, or change it."
    if violation.is_undecided:
        help = f"Judge it in the cluster, or write policy '{name}' so that Git is enough."
    elif violation.is_error:
        help = f"The policy could not be evaluated: correct the object, or guard the field in {home}."
    return Finding(
        POLICY_UNDECIDED if violation.is_undecided else checker.rulebook.policy(name),
        where,
        plain(violation.message),
        help,
        plain(str(ref_of(body))),
        dotted(path),
        level=None if violation.is_undecided else violation.severity,
    )


def home_of(violation: Violation) -> Location:
    """Return the place in a policy to look at: the validation that fails, or the policy's name."""
    policy = violation.policy
    if 0 <= violation.validation < len(policy.validations):
        return policy.written.where((*policy.validations[violation.validation].path, "expression"))
    return policy.written.where(("metadata", "name"))


def plain(text: str) -> str:
    """Return a text without the placeholder for a run's hash."""
    return text.replace(f"-{PLACEHOLDER}", "")
