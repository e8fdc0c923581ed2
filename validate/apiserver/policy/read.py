"""Reading the policies, bindings and parameters among objects, and the mistakes in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from gangplan.findings import Clue, Finding
from gangplan.model.support import parse_line_key
from gangplan.objects import ADMISSION_API, BINDING_KIND, POLICY_KIND, Body
from gangplan.records import dataclass
from gangplan.rules.policy import POLICY_INERT, POLICY_INVALID
from gangplan.validate.apiserver.policy.checks import check_policy_binding, check_policy_object
from gangplan.validate.apiserver.policy.compiled import CompiledPolicy, compile_admission_policy
from gangplan.validate.apiserver.policy.model import (
    Binding,
    PlacedObject,
    admission_policy_binding_of,
    admission_policy_of,
)
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import check_object_against_api_schema as schema_problems

# The policies that come with gangplan compile from this minor on; tests prove it, so a start need not check
# it.
SHIPPED_FROM = 31


# Kind of the clue of a name that another object of the same kind has.
REPEATED_NAME = "repeated"


@dataclass(slots=True)
class PolicyReading:
    """The result of reading objects. `policies` and `bindings` are valid; `others` may be parameters."""

    policies: list[CompiledPolicy] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    others: list[Body] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)


def read_policy_objects(objects: Sequence[PlacedObject], versions: SchemaVersions) -> PolicyReading:
    """Return policies compiled for the cluster's Kubernetes, bindings, and the rest. Never raises."""
    reading = PolicyReading()
    seen: dict[tuple[str, str], PlacedObject] = {}
    names: set[str] = set()
    bound: set[str] = set()  # by invalid bindings
    for written in objects:
        kind = _find_admission_policy_object_kind(written)
        if kind is None:
            reading.others.append(written.body)
            continue
        wrong = (
            []
            if _is_trusted(written, versions)
            else list(_check_admission_policy_manifest(written, kind, versions))
        )
        wrong = wrong or list(_check_repeated_admission_policy_name(written, kind, seen))
        name = (written.body.get("metadata") or {}).get("name") if isinstance(written.body, dict) else None
        if kind == POLICY_KIND and isinstance(name, str):
            names.add(name)
        if wrong:
            reading.problems += wrong
            bound |= _find_badly_bound_admission_policy(written, kind)
        elif kind == BINDING_KIND:
            reading.bindings.append(admission_policy_binding_of(written))
        else:
            _compile_placed_admission_policy(written, versions, reading)
    reading.policies.sort(key=lambda one: one.policy.name)
    reading.bindings.sort(key=lambda one: one.name)
    reading.problems += _check_inert_admission_policies(reading, names, bound)
    return reading


def _find_admission_policy_object_kind(written: PlacedObject) -> str | None:
    """Return which of the two kinds an object is, or None.

    Older API versions have the same fields.
    """
    body = written.body
    if not isinstance(body, dict) or not str(body.get("apiVersion")).startswith(
        "admissionregistration.k8s.io/"
    ):
        return None
    kind = body.get("kind")
    return kind if kind in (POLICY_KIND, BINDING_KIND) else None


def _is_trusted(written: PlacedObject, versions: SchemaVersions) -> bool:
    """Return whether tests have proved that nothing is wrong with an object (tests/packs)."""
    return written.is_shipped and parse_line_key(versions.kubernetes)[1] >= SHIPPED_FROM


def _check_admission_policy_manifest(
    written: PlacedObject, kind: str, versions: SchemaVersions
) -> Iterator[Finding]:
    version = written.body.get("apiVersion")
    if version != ADMISSION_API:
        help = f"Write apiVersion: {ADMISSION_API} (Kubernetes 1.30 and later)."
        yield Finding(
            POLICY_INVALID,
            written.where(("apiVersion",)),
            f"{kind} is read as {ADMISSION_API}, not {version}",
            help,
        )
        return
    problems = schema_problems(written.body, versions)
    if not problems:
        problems = (
            check_policy_object(written.body) if kind == POLICY_KIND else check_policy_binding(written.body)
        )
    for problem in problems:
        yield Finding(POLICY_INVALID, written.where(problem.path), problem.message, problem.help)


def _check_repeated_admission_policy_name(
    written: PlacedObject, kind: str, seen: dict[tuple[str, str], PlacedObject]
) -> Iterator[Finding]:
    key = kind, written.body["metadata"]["name"]
    first = seen.setdefault(key, written)
    if first is not written:
        where = written.where(("metadata", "name"))
        message = f"there is another {kind} '{key[1]}': {first.where(('metadata', 'name'))}"
        yield Finding(POLICY_INVALID, where, message, "Rename one of them.", clue=Clue(kind=REPEATED_NAME))


def _compile_placed_admission_policy(
    written: PlacedObject, versions: SchemaVersions, reading: PolicyReading
) -> None:
    policy = admission_policy_of(written)
    programs = compile_admission_policy(policy, parse_line_key(versions.kubernetes)[1])
    if _is_trusted(written, versions) or not programs.refused:
        reading.policies.append(programs)
        return
    for one in programs.refused:
        message = f"policy '{policy.name}': {one.message}"
        help = one.help or "The API server would refuse the policy: correct the expression."
        reading.problems.append(Finding(one.rule, one.where, message, help))


def _find_badly_bound_admission_policy(written: PlacedObject, kind: str) -> set[str]:
    """Return the policy of an invalid binding.

    The binding is reported already, and reporting a policy without binding would distract from it.
    """
    spec = written.body.get("spec")
    name = spec.get("policyName") if kind == BINDING_KIND and isinstance(spec, dict) else None
    return {name} if isinstance(name, str) else set()


def _check_inert_admission_policies(
    reading: PolicyReading, names: set[str], bound_badly: set[str]
) -> Iterator[Finding]:
    """Yield bindings of missing policies, and policies without bindings: neither has any effect."""
    bound = {one.policy for one in reading.bindings} | bound_badly
    for one in reading.bindings:
        if one.policy not in names:
            where = one.written.where(("spec", "policyName"))
            message = f"binding '{one.name}' names policy '{one.policy}', which is not here: it does nothing"
            help = "Correct policyName, or add the policy."
            yield Finding(POLICY_INERT, where, message, help)
    for compiled_one in reading.policies:
        policy = compiled_one.policy
        if policy.name not in bound:
            where = policy.written.where(("metadata", "name"))
            message = f"policy '{policy.name}' has no binding: it does nothing"
            help = f"Add a {BINDING_KIND} with policyName: {policy.name}."
            yield Finding(POLICY_INERT, where, message, help)
