"""Map the remaining fields of a source's pods: security, names, probes, annotations."""

from __future__ import annotations

import posixpath
from typing import Any

from gangplan.imports.account import SourceNode
from gangplan.imports.draft import SpecDraft, has_file_field
from gangplan.imports.environment import suggest_team_reference
from gangplan.imports.fabric import GKE_FABRIC_PREFIXES
from gangplan.imports.pods import SourceContainer, is_gangplan_launch_command
from gangplan.imports.workload import PodRole, SourceSetting
from gangplan.model.pods import GRACE_MARGIN_S
from gangplan.model.profiles import DEFAULT_GRACE_S
from gangplan.spec.fabrics import NETWORKS_ANNOTATION

_SERVICE_ACCOUNT = "training"
# Fields of a pod or a container by what becomes of them; first, those with a value that a run has anyway.
_SAME: dict[str, tuple[tuple[Any, ...], str]] = {
    "automountServiceAccountToken": ((False,), "runs have no token of the API server"),
    "enableServiceLinks": ((False,), "runs have no service links"),
    "hostNetwork": ((False,), "runs have a network of their own"),
    "hostPID": ((False,), "runs have processes of their own"),
    "hostIPC": ((False,), "runs have memory of their own"),
    "restartPolicy": (("Never",), "pods of a run are not restarted one by one"),
    "dnsPolicy": (("ClusterFirst",), "it is the default"),
    "imagePullPolicy": (("IfNotPresent",), "it is what runs have"),
}
_DROPPED = {
    "restartPolicy": "a failed worker fails the run; retries restart it as a whole",
    "dnsPolicy": "it belongs to the network of the node",
    "schedulerName": "the cluster says what schedules its runs (gang)",
    "hostname": "Trainer names the pods of a run",
    "subdomain": "Trainer names the pods of a run",
    "setHostnameAsFQDN": "Trainer names the pods of a run",
    "imagePullPolicy": "the image is pinned by its digest, so that it never changes",
    "ports": "pods of a run may use all ports among themselves",
    "stdin": "runs have no terminal",
    "stdinOnce": "runs have no terminal",
    "tty": "runs have no terminal",
    "terminationMessagePath": "the log of a run says how it ended",
    "terminationMessagePolicy": "the log of a run says how it ended",
    "name": "the container of a run is called node",
    "preemptionPolicy": "Kueue preempts by the run's priority",
    "priority": "the run's priority decides",
    "os": "runs go to Linux nodes",
    "nodeName": "the scheduler chooses nodes",
}
_TOPOLOGIES = {
    "kueue.x-k8s.io/podset-required-topology": "required",
    "kueue.x-k8s.io/podset-preferred-topology": "preferred",
}
_ASKED = {
    "automountServiceAccountToken": "runs have no token of the API server; a program that asks it needs another way",
    "livenessProbe": "runs have no probes of their own; a rank that hangs is found by its collective's timeout",
    "readinessProbe": "runs have no probes of their own",
    "startupProbe": "runs have no probes of their own",
    "lifecycle": "runs have no hooks; do it in the command",
    "runtimeClassName": "a patch in overlays/<cluster>/ sets a runtime class",
    "shareProcessNamespace": "containers of a run share no processes",
    "hostAliases": "names of hosts come from DNS",
    "dnsConfig": "DNS is the cluster's to set",
    "volumeDevices": "runs mount folders, not devices",
    "priorityClassName": "choose priority: low, normal, high or critical",
    "topologySpreadConstraints": "placement.spread decides how workers spread over nodes",
}


def map_imported_pod_fields(draft: SpecDraft, role: PodRole) -> None:
    """Map every field of a pod that no other part of the mapping has taken."""
    pod = role.pod
    parts = (pod.node, *pod.more)
    for part in parts:
        _map_service_account_and_pull_secrets(draft, part)
        _map_security_context(draft, part["securityContext"])
        _map_grace_period(draft, part["terminationGracePeriodSeconds"], _is_rendered(pod.main))
        deadline = part["activeDeadlineSeconds"]
        if (seconds := deadline.number()) is not None:
            draft.work.settings.setdefault("timeout", SourceSetting(seconds, deadline))
    _map_security_context(draft, pod.main.node["securityContext"])
    _map_working_directory(draft, pod.main)
    for node in (*parts, pod.main.node):
        for name, field in node.fields():
            _map_remaining_pod_field(name, field)
    if pod.metadata:
        _account_for_pod_metadata(draft, pod.metadata)


def _map_remaining_pod_field(name: str, field: SourceNode) -> None:
    values, why = _SAME.get(name, ((), ""))
    if any(field.value == value and type(field.value) is type(value) for value in values):
        field.same(why)
    elif name in _DROPPED:
        field.dropped(_DROPPED[name])
    elif name in _ASKED:
        field.asked(_ASKED[name])


def _map_service_account_and_pull_secrets(draft: SpecDraft, pod: SourceNode) -> None:
    for node in (pod["serviceAccountName"], pod["serviceAccount"]):
        if node.text() in ("default", _SERVICE_ACCOUNT):
            node.same("runs use the team's service account, without a token")
        elif node and any(
            node.text() in one.teams[draft.home.team].service_accounts for one in draft.home.clusters.values()
        ):
            draft.put("serviceAccount", node.text(), node)
        elif node:
            draft.ask(
                node,
                f"runs use the team's service account {_SERVICE_ACCOUNT}, not {node.text()}",
                _describe_cloud_identity_help(),
            )
    for node in pod["imagePullSecrets"].items():
        node.mapped("pullSecrets")
        suggest_team_reference(draft, "pullSecrets", node["name"].text(), node)
    name = pod["priorityClassName"].text()
    if level := next(
        (one for one in ("low", "normal", "high", "critical") if one in name.lower().split("-")), ""
    ):
        draft.put("priority", level, pod["priorityClassName"])


def _describe_cloud_identity_help() -> str:
    from gangplan.spec.team import Team

    if has_file_field("identity", Team):
        return "Rights at a cloud: identity: in team.yaml."
    return "Rights at a cloud: give them to that one."


def _map_security_context(draft: SpecDraft, context: SourceNode) -> None:
    """Map the user of the program; for runs, the image's entry in the catalog sets it."""
    for name, node in context.fields():
        value = node.value
        if name in ("runAsUser", "runAsGroup", "fsGroup"):
            if value in (0, "0"):
                draft.ask(
                    node,
                    "runs are never root",
                    "Use an image whose user is not root; user: in the catalog names it.",
                )
            else:
                node.mapped(f"images.user.{'uid' if name == 'runAsUser' else 'gid'}")
        elif (name, value) in (
            ("runAsNonRoot", True),
            ("allowPrivilegeEscalation", False),
            ("privileged", False),
        ):
            node.same("runs have it")
        elif name in ("runAsNonRoot", "allowPrivilegeEscalation"):
            node.dropped("runs are never root, and gain no privileges")
        elif name == "capabilities":
            node["drop"].same("runs have no capabilities")
        elif name == "seccompProfile" and node["type"].value == "RuntimeDefault":
            node.same("runs have it")
        elif name == "fsGroupChangePolicy":
            node.dropped("runs change the group of a volume once")
        elif name == "readOnlyRootFilesystem" and value is False:
            node.same("runs may write to their root file system")
        else:
            node.asked("security settings of runs are the platform's")


def _is_rendered(container: SourceContainer) -> bool:
    """Return whether gangplan rendered a container: its command is the launch script."""
    return is_gangplan_launch_command(container.node["command"].texts())


def _map_grace_period(draft: SpecDraft, node: SourceNode, is_rendered: bool) -> None:
    seconds = node.number()
    if seconds is None:
        return
    if is_rendered:
        seconds -= GRACE_MARGIN_S
        if seconds == DEFAULT_GRACE_S:
            node.same("it is what runs have, with the margin that gangplan adds")
            return
    if 30 <= seconds <= 3600:
        draft.put("gracePeriod", f"{seconds}s" if seconds % 60 else f"{seconds // 60}m", node)
    else:
        node.dropped("the grace period of a run is from 30s to 1h; omitted it is 2m")


def _map_working_directory(draft: SpecDraft, container: SourceContainer) -> None:
    node = container.node["workingDir"]
    if not node:
        return
    folder = posixpath.normpath(container.workdir)
    if folder.startswith("/") and folder != "/":
        draft.put("workdir", folder, node)
    else:
        draft.ask(node, f"a run cannot start in '{container.workdir}'", "Write workdir: with a full path.")


def _account_for_pod_metadata(draft: SpecDraft, metadata: SourceNode) -> None:
    for _, node in metadata["labels"].fields():
        node.dropped("labels of pods belong to the controllers; labels: in the spec adds more")
    for key, node in metadata["annotations"].fields():
        if key == "sidecar.istio.io/inject" and node.text() == "false":
            node.same("runs have no sidecars of a mesh")
        elif (
            key != NETWORKS_ANNOTATION
            and not key.startswith(GKE_FABRIC_PREFIXES)
            and not _map_kueue_topology_annotation(draft, key, node)
        ):
            node.asked("annotations of pods are the platform's to add, by a patch")
    for key, node in metadata.fields():
        if key != "annotations":
            node.dropped("Trainer names the pods of a run")


def _map_kueue_topology_annotation(draft: SpecDraft, key: str, node: SourceNode) -> bool:
    """Map a topology request for Kueue to a level by name; return False without one.

    Source: kueue v0.19, docs/concepts/topology_aware_scheduling.
    """
    kind = _TOPOLOGIES.get(key)
    levels = [level for one in draft.home.clusters.values() for level in one.topology]
    name = next((level.name for level in levels if level.label == node.text()), "")
    pools = [pool for one in draft.home.clusters.values() for pool in one.node_pools.values()]
    if kind is None or not name or not any(pool.topology for pool in pools):
        return False
    draft.put(f"placement.topology.{kind}", name, node)
    return True
