"""Map pods that differ from the workers to `roles` of the spec."""

from __future__ import annotations

import re
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.amounts import convert_imported_cores, convert_imported_memory
from gangplan.imports.draft import SpecDraft
from gangplan.imports.environment import convert_env_value_to_spec
from gangplan.imports.images import find_catalog_name_of_image
from gangplan.imports.podfields import map_imported_pod_fields
from gangplan.imports.variables import convert_kubelet_variables_for_shell, rewrite_imported_command
from gangplan.imports.workload import PodRole
from gangplan.imports.written import (
    ask_about_entrypoint_with_program,
    refuse_unfilled_command_words,
    shorten_imported_command,
)
from gangplan.plan.reserved import is_reserved_variable
from gangplan.rules.imports import IMPORT_ENTRYPOINT

_NAME = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_LONGEST, _MOST = 20, 6
# Names of the jobs of a runtime (Trainer v2.3.0, constants.go); initializers are steps before the ranks.
_TAKEN = ("node", "launcher", "worker", "workers", "dataset-initializer", "model-initializer")
# A pod name has 63 characters: the job's name, eight digits, the role, two numbers and five letters.
_ROOM = 41
# TensorFlow's tasks other than workers (gangplan.spec.job: roles); a TFJob's master is its chief.
_OF_TENSORFLOW = ("chief", "ps", "evaluator")
_GPU = "nvidia.com/gpu"


def map_imported_roles(draft: SpecDraft, framework: str) -> None:
    """Map roles other than the ranks; ask about them if the framework has only workers."""
    for role in draft.work.aside:
        name = "chief" if role.name == "master" and framework == "tensorflow" else role.name
        name = f"{name}-pods" if name in _TAKEN[:4] else name
        can = framework == "plain" or (framework == "tensorflow" and name in _OF_TENSORFLOW)
        fits = re.fullmatch(_NAME, name) and len(name) <= _LONGEST and name not in _TAKEN
        if not (can and fits) or len(draft.values.get("roles", {})) >= _MOST:
            _ask_about_role_of_source_pods(draft, role, framework)
            continue
        if not _has_role_program(draft, role):
            continue
        draft.values.setdefault("roles", {})[name] = _map_source_pods_to_role_entry(draft, role, framework)
        draft.name = draft.name[: _ROOM - len(name)].rstrip("-")
        draft.origins.setdefault("roles", role.whole or role.pod.main.node)
        map_imported_pod_fields(draft, role)


def _ask_about_role_of_source_pods(draft: SpecDraft, role: PodRole, framework: str) -> None:
    node = role.whole or role.pod.main.node
    message = f"{role.count} pods of the role {role.name} start next to the workers; runs of {framework} have workers alone"
    draft.ask(
        node,
        message,
        "Let workers do its part (for parameter servers: MultiWorkerMirroredStrategy), or run it apart; framework: plain has roles.",
    )
    node.account.remark(node.path, "asked", "", message)


def _has_role_program(draft: SpecDraft, role: PodRole) -> bool:
    """Return whether the source says what a role starts; refuse one that only the image's entrypoint knows.

    Pods with the image and arguments of the workers start what these do, also where `--command` says it.
    """
    main, lead = role.pod.main, draft.work.lead.pod.main
    is_one_image = main.image == lead.image or bool(draft.home.answers.image)
    if not main.has_entrypoint or (lead.has_entrypoint and is_one_image and main.words == lead.words):
        return True
    node = main.node["args"] or main.node
    if main.command and not main.command[0].startswith("-"):
        ask_about_entrypoint_with_program(draft, node, main.command[0])
        return True
    draft.refuse(
        IMPORT_ENTRYPOINT,
        node,
        f"the {role.name} has no command: its image's own entrypoint starts it, and a spec has to name it",
        "Look it up (skopeo inspect --config docker://IMAGE), and write it here: command: [PROGRAM, ...].",
    )
    return False


def _map_source_pods_to_role_entry(draft: SpecDraft, role: PodRole, framework: str) -> dict[str, Any]:
    main = role.pod.main
    entry: dict[str, Any] = {"workers": role.count}
    if main.command and main.command != draft.work.lead.pod.main.command:
        command = _convert_role_command(draft, role, framework)
        if command != draft.values.get("command"):
            entry["command"] = command
    for name in ("command", "args"):
        main.node[name].mapped("roles")
    if main.image and main.image != draft.work.workers.pod.main.image and not draft.home.answers.image:
        entry["image"] = find_catalog_name_of_image(draft, main.image, main.node["image"])
    main.node["image"].mapped("roles")
    _map_role_amounts(role, entry)
    for part in (role.pod.node, *role.pod.more):
        part["resourceClaims"].asked("of the pods of a run, only workers have claims, for RDMA devices")
    _map_role_env(draft, role, entry)
    mounted = {(mount.name, mount.path) for mount in draft.work.workers.pod.main.mounts}
    for mount in main.mounts:
        if (mount.name, mount.path) in mounted:
            mount.node.same("pods of all roles mount what workers do")
            if mount.volume is not None:
                mount.volume.node.same("pods of all roles mount what workers do")
        else:
            mount.node.asked("pods of all roles mount what workers do, and nothing else")
    return entry


def _convert_role_command(draft: SpecDraft, role: PodRole, framework: str) -> list[str]:
    """Return the command of a role, whose script learns what the pods of a run have by other names."""
    main = role.pod.main
    node = main.node["command"] or main.node["args"]
    known = {*draft.work.sets, *(one.name for one in main.env if one.source)}
    words = convert_kubelet_variables_for_shell(main.command, known)
    words = rewrite_imported_command(draft, words, framework, node, role)
    refuse_unfilled_command_words(draft, words, node)
    return shorten_imported_command(words)


def _map_role_amounts(role: PodRole, entry: dict[str, Any]) -> None:
    container = role.pod.main
    for name, amount in container.resources.items():
        value: Any = {"cpu": convert_imported_cores, "memory": convert_imported_memory}.get(
            name, lambda _: None
        )(amount)
        if name == _GPU and amount.isdigit():
            value = int(amount)
        if value is None:
            continue
        entry["gpus" if name == _GPU else name] = value
        for kind in ("limits", "requests"):
            container.resources_node[kind][name].mapped("roles")
    container.resources_node.asked("a role has CPU, memory and GPUs")


def _map_role_env(draft: SpecDraft, role: PodRole, entry: dict[str, Any]) -> None:
    """Map the variables that differ from the job's; a role has all others, too."""
    of_job = draft.values.get("env", {})
    for one in role.pod.main.env:
        if is_reserved_variable(one.name) or one.name in draft.work.sets:
            one.node.dropped("the launch of the run sets it")
            continue
        value = convert_env_value_to_spec(draft, one, role)
        if value is None:
            _account_for_role_secret(draft, one.name, one.node)
        else:
            if of_job.get(one.name) != value:
                entry.setdefault("env", {})[one.name] = value
            one.node.mapped("roles")


def _account_for_role_secret(draft: SpecDraft, name: str, node: SourceNode) -> None:
    if name in draft.values.get("secrets", {}).get("env", {}):
        node.same("pods of all roles have the variables of the job")
    else:
        node.asked("variables of a role have a value, or come from a ConfigMap or the pod")
