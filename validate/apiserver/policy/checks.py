"""What the API server refuses in a policy or binding whose fields fit their schema.

Ported from k8s.io/kubernetes v1.34 pkg/apis/admissionregistration/validation; `compiled` compiles the
expressions. Each check yields the path of the field and a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.cel.lexer import CEL_RESERVED_WORDS
from gangplan.findings import FieldPath
from gangplan.objects import Body
from gangplan.validate.apiserver.forms import is_dns_1035_label, is_qualified, is_subdomain
from gangplan.validate.apiserver.policy.checks_match import (
    Problems,
    check_admission_match_resources,
    check_admission_policy_selector,
    check_one_of,
    report_wrong_field,
)
from gangplan.validate.apiserver.schema_messages import shorten_repr
from gangplan.validate.problems import Problem

MOST_CONDITIONS, MOST_ANNOTATIONS, MOST_ANNOTATION_BYTES = 64, 20, 5 * 1024
REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
ACTIONS = ("Audit", "Deny", "Warn")
IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*", re.ASCII)


def check_policy_object(body: Body) -> list[Problem]:
    """Return the problems of a ValidatingAdmissionPolicy, apart from its expressions."""
    return list(_check_admission_policy_fields(body))


def check_policy_binding(body: Body) -> list[Problem]:
    """Return the problems of a ValidatingAdmissionPolicyBinding."""
    return list(_check_admission_binding_fields(body))


def _check_admission_policy_fields(body: Body) -> Problems:
    yield from _check_policy_name(body)
    spec = body.get("spec")
    if not isinstance(spec, dict):
        yield report_wrong_field(("spec",), "is missing", "A policy without spec says nothing.")
        return
    at: FieldPath = ("spec",)
    yield from check_one_of((*at, "failurePolicy"), spec.get("failurePolicy", "Fail"), ("Fail", "Ignore"))
    if spec.get("paramKind") is not None:
        yield from _check_admission_param_kind(spec["paramKind"], (*at, "paramKind"))
    constraints = spec.get("matchConstraints")
    if constraints is None:
        yield report_wrong_field(
            (*at, "matchConstraints"), "is missing", "Name the resources with resourceRules."
        )
    else:
        yield from check_admission_match_resources(constraints, (*at, "matchConstraints"))
        if not constraints.get("resourceRules"):
            where = (*at, "matchConstraints", "resourceRules")
            yield report_wrong_field(where, "names no resource", "At least one rule is needed.")
    yield from _check_admission_match_conditions(spec.get("matchConditions") or (), (*at, "matchConditions"))
    yield from _check_admission_policy_variables(spec.get("variables") or (), (*at, "variables"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield report_wrong_field(
            (*at, "validations"), "there is none", "Write a validation or an audit annotation."
        )
    for index, validation in enumerate(spec.get("validations") or ()):
        yield from _check_admission_policy_validation(validation, (*at, "validations", index))
    yield from _check_admission_audit_annotations(
        body, spec.get("auditAnnotations") or (), (*at, "auditAnnotations")
    )


def _check_admission_binding_fields(body: Body) -> Problems:
    yield from _check_policy_name(body)
    spec = body.get("spec")
    if not isinstance(spec, dict):
        yield report_wrong_field(("spec",), "is missing", "A binding without spec binds nothing.")
        return
    name = spec.get("policyName") or ""
    if not name:
        yield report_wrong_field(("spec", "policyName"), "is empty", "Name the policy that is bound.")
    elif not is_subdomain(name):
        yield report_wrong_field(("spec", "policyName"), f"{name!r} is not the name of an object")
    if spec.get("paramRef") is not None:
        yield from _check_admission_param_ref(spec["paramRef"], ("spec", "paramRef"))
    if spec.get("matchResources") is not None:
        yield from check_admission_match_resources(spec["matchResources"], ("spec", "matchResources"))
    yield from _check_admission_validation_actions(
        spec.get("validationActions") or (), ("spec", "validationActions")
    )


def _check_policy_name(body: Body) -> Problems:
    name = (body.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not is_subdomain(name):
        help = "Lower-case letters, digits, '-' and '.', starting and ending with a letter or digit."
        yield report_wrong_field(("metadata", "name"), f"{shorten_repr(name)} cannot be a name", help)


def _is_blank_text(text: Any) -> bool:
    return not isinstance(text, str) or not text.strip()


# --- parts of a policy ---------------------------------------------------------------------------------


def _check_admission_param_kind(kind: Mapping[str, Any], path: FieldPath) -> Problems:
    api_version = kind.get("apiVersion") or ""
    group, _, version = api_version.rpartition("/")
    if not api_version:
        yield report_wrong_field((*path, "apiVersion"), "is empty", "Write v1 for a ConfigMap.")
    elif "/" in group or (group and not is_subdomain(group)):
        yield report_wrong_field((*path, "apiVersion"), f"{api_version!r} is not a group and a version")
    elif not is_dns_1035_label(version):
        yield report_wrong_field((*path, "apiVersion"), f"{api_version!r} has no version")
    name = kind.get("kind") or ""
    if not name:
        yield report_wrong_field(
            (*path, "kind"), "is empty", "Write ConfigMap, or the kind of your parameters."
        )
    elif not is_dns_1035_label(name.lower()):
        yield report_wrong_field((*path, "kind"), f"{name!r} is not a kind")


def _check_admission_match_conditions(conditions: Sequence[Mapping[str, Any]], path: FieldPath) -> Problems:
    if len(conditions) > MOST_CONDITIONS:
        yield report_wrong_field(path, f"there are {len(conditions)}; the most is {MOST_CONDITIONS}")
    seen = set()
    for index, one in enumerate(conditions):
        name = one.get("name") or ""
        if _is_blank_text(one.get("expression")):
            yield report_wrong_field((*path, index, "expression"), "is empty")
        if not name:
            yield report_wrong_field((*path, index, "name"), "is empty")
        elif not is_qualified(name):
            yield report_wrong_field(
                (*path, index, "name"), f"{name!r} is not a name", "Letters, digits, '-', '_', '.'."
            )
        if name and name in seen:
            yield report_wrong_field((*path, index, "name"), f"{name!r} is used twice")
        seen.add(name)


def _check_admission_policy_variables(variables: Sequence[Mapping[str, Any]], path: FieldPath) -> Problems:
    seen = set()
    for index, one in enumerate(variables):
        name = one.get("name") or ""
        if _is_blank_text(name):
            yield report_wrong_field((*path, index, "name"), "is empty")
        elif not IDENTIFIER.fullmatch(name) or name in CEL_RESERVED_WORDS:
            help = "Letters, digits and '_', not starting with a digit, and no word of the language."
            yield report_wrong_field((*path, index, "name"), f"{name!r} cannot be used in expressions", help)
        elif name in seen:  # a list map of the API: the server reads it, then refuses the second
            yield report_wrong_field((*path, index, "name"), f"{name!r} is used twice")
        seen.add(name)
        if _is_blank_text(one.get("expression")):
            yield report_wrong_field((*path, index, "expression"), "is empty")


def _check_admission_policy_validation(one: Mapping[str, Any], path: FieldPath) -> Problems:
    if _is_blank_text(one.get("expression")):
        yield report_wrong_field((*path, "expression"), "is empty")
    said, message = one.get("messageExpression") or "", one.get("message") or ""
    if said and _is_blank_text(said):
        yield report_wrong_field(
            (*path, "messageExpression"), "holds only blanks", "Remove it, or write an expression."
        )
    if message and _is_blank_text(message):
        yield report_wrong_field((*path, "message"), "holds only blanks", "Remove it, or write a sentence.")
    elif re.search(r"[\n\r]", message.strip()):
        yield report_wrong_field((*path, "message"), "has several lines", "Write one line.")
    if one.get("reason") is not None:
        yield from check_one_of((*path, "reason"), one["reason"], REASONS)


def _check_admission_audit_annotations(
    body: Body, annotations: Sequence[Mapping[str, Any]], path: FieldPath
) -> Problems:
    if len(annotations) > MOST_ANNOTATIONS:
        yield report_wrong_field(path, f"there are {len(annotations)}; the most is {MOST_ANNOTATIONS}")
    seen = set()
    for index, one in enumerate(annotations):
        key, text = one.get("key") or "", one.get("valueExpression")
        if not is_qualified(f"{(body.get('metadata') or {}).get('name')}/{key}"):
            yield report_wrong_field((*path, index, "key"), f"{key!r} is not the key of an annotation")
        if key in seen:
            yield report_wrong_field((*path, index, "key"), f"{key!r} is used twice")
        seen.add(key)
        if _is_blank_text(text):
            yield report_wrong_field((*path, index, "valueExpression"), "is empty")
        elif len(str(text).strip().encode()) > MOST_ANNOTATION_BYTES:
            yield report_wrong_field(
                (*path, index, "valueExpression"), f"has more than {MOST_ANNOTATION_BYTES} bytes"
            )


# --- parts of a binding --------------------------------------------------------------------------------


def _check_admission_param_ref(ref: Mapping[str, Any], path: FieldPath) -> Problems:
    name, selector = ref.get("name") or "", ref.get("selector")
    if name and (name in (".", "..") or re.search(r"[/%]", name)):
        yield report_wrong_field((*path, "name"), f"{name!r} is not the name of an object")
    if name and selector is not None:
        yield report_wrong_field(
            (*path, "name"), "is given with a selector", "Keep one of name and selector."
        )
    if not name and selector is None:
        yield report_wrong_field(path, "has neither name nor selector", "Name the parameter object.")
    if selector is not None:
        yield from check_admission_policy_selector(selector, (*path, "selector"))
    action = ref.get("parameterNotFoundAction")
    if not action:
        help = "Deny refuses requests while the object is missing, Allow lets them through."
        yield report_wrong_field((*path, "parameterNotFoundAction"), "is missing", help)
    else:
        yield from check_one_of((*path, "parameterNotFoundAction"), action, ("Allow", "Deny"))


def _check_admission_validation_actions(actions: Sequence[str], path: FieldPath) -> Problems:
    if not actions:
        yield report_wrong_field(path, "there is none", "Write [Deny], [Warn] or [Audit].")
    for index, action in enumerate(actions):
        yield from check_one_of((*path, index), action, ACTIONS)
        if action in actions[:index]:
            yield report_wrong_field((*path, index), f"{action} is listed twice", "Keep one.")
    if "Deny" in actions and "Warn" in actions:
        yield report_wrong_field(
            path, "Deny and Warn exclude each other", "Deny says the same to the user: drop Warn."
        )
