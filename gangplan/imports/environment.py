"""Map variables of a source's containers to fields of the spec."""

from __future__ import annotations

import re

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft
from gangplan.imports.podlabels import convert_pod_label_variable
from gangplan.imports.pods import SourceVariable
from gangplan.imports.variables import SET_BY_TORCHRUN
from gangplan.imports.workload import PodRole
from gangplan.model.pods import CHECKPOINT_ENV
from gangplan.plan.reserved import is_reserved_variable
from gangplan.spec.base import ENV_NAME
from gangplan.spec.pods import CONFIG_KEY, POD_FIELD, POD_RESOURCE

# Sources of a variable other than secrets, and how a spec writes each.
_SOURCES = {"field": POD_FIELD, "configMap": CONFIG_KEY, "resource": POD_RESOURCE}

# Names of Secrets and ConfigMaps (RFC 1123 subdomain; k8s.io/apimachinery validation.NameIsDNSSubdomain).
_OBJECT = r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?"


def map_imported_env(draft: SpecDraft, role: PodRole) -> None:
    """Map the variables of a role's container; all ranks of a run have the same ones."""
    for one in role.pod.main.env:
        _map_env_variable(draft, role, one)
    for node in role.pod.main.node["envFrom"].items():
        what = "secret" if node["secretRef"] else "ConfigMap"
        draft.ask(
            node,
            f"a run takes variables one by one, not all of a {what}",
            "List the names under env: or secrets.env:.",
        )


def _map_env_variable(draft: SpecDraft, role: PodRole, variable: SourceVariable) -> None:
    one, node = variable, variable.node
    if not re.fullmatch(ENV_NAME, one.name):
        node.asked(f"'{one.name}' is not a name that a variable of a run can have")
    elif is_reserved_variable(one.name) or one.name in draft.work.sets:
        node.dropped("the launch of the run sets it")
    elif one.name in CHECKPOINT_ENV and "checkpoint.to" in draft.work.values:
        node.dropped("checkpoint sets it")
    elif draft.work.start == "torch" and one.name in SET_BY_TORCHRUN:
        node.dropped("torchrun sets it for every rank")
    elif (found := convert_pod_label_variable(draft, role, one)) is None:
        pass  # it became a question
    elif (one := found).source == "":
        _map_plain_env_value(draft, one, node)
    elif one.source == "secret":
        _map_secret_env_variable(draft, one, node)
    elif one.source in _SOURCES and re.fullmatch(_SOURCES[one.source], one.reference):
        if one.source == "configMap":
            suggest_team_reference(draft, "configMaps", one.reference.partition("/")[0], node)
        draft.put(f"env/{one.name}", {one.source: one.reference}, node)
    else:
        node.asked(
            f"a variable of a spec has a value or comes from a secret, a ConfigMap or the pod, not from {one.source} {one.reference}"
        )


def convert_env_value_to_spec(
    draft: SpecDraft, one: SourceVariable, role: PodRole | None = None
) -> str | dict[str, str] | None:
    """Return the value of a variable as a spec writes it; `role` is that of its pod.

    Return None for what `env` of setup and sidecars cannot take: a bad name, a long value, a secret, another
    source.
    """
    found = convert_pod_label_variable(draft, role, one) if role is not None else one
    if found is None:
        return None
    one = found
    if not re.fullmatch(ENV_NAME, one.name) or len(one.value or "") > 32768 or one.is_secret():
        return None
    if one.source == "":
        return one.value or ""
    if one.source in _SOURCES and re.fullmatch(_SOURCES[one.source], one.reference):
        if one.source == "configMap":
            suggest_team_reference(draft, "configMaps", one.reference.partition("/")[0], one.node)
        return {one.source: one.reference}
    return None


def _map_plain_env_value(draft: SpecDraft, one: SourceVariable, node: SourceNode) -> None:
    value = one.value or ""
    if len(value) > 32768:
        node.asked("the value is too long for a variable")
        return
    if one.is_secret():
        draft.ask(
            node,
            f"{one.name} looks like a secret, and is not copied: it belongs into a Secret of the cluster",
            f"Revoke it, put a new one into a Secret, and name that: secrets: {{env: {{{one.name}: SECRET/KEY}}}}.",
        )
        return
    if one.name == "PATH" and not {"/usr/bin", "/bin"} & set(value.split(":")):
        draft.ask(
            node,
            "this PATH has neither /usr/bin nor /bin, and nothing expands $PATH in env; the run keeps that of its image",
            "Write the whole PATH under env, or set it in the image.",
        )
        return
    draft.put(f"env/{one.name}", value, node)


def _map_secret_env_variable(draft: SpecDraft, one: SourceVariable, node: SourceNode) -> None:
    name, _, key = one.reference.partition("/")
    if not name or not key:
        node.asked("the secret or its key has no name")
        return
    if draft.put(f"secrets.env/{one.name}", one.reference, node):
        suggest_team_reference(draft, "secrets", name, node)


def suggest_team_reference(draft: SpecDraft, field: str, name: str, node: SourceNode) -> None:
    """Suggest a name for the team's list of what its runs may refer to; ask about an invalid name."""
    if not re.fullmatch(_OBJECT, name) or len(name) > 253:
        node.account.remark(node.path, "asked", "", f"'{name}' is not a name that an object can have")
        return
    team = draft.home.of_team
    listed = {one.alias or key: getattr(team, key) for key, one in type(team).model_fields.items()}
    if name in listed.get(field, ()):
        return
    draft.suggest(draft.team_file, (field,), (name,), f"the run refers to {name}", node)
