"""What Argo CD itself must know, whatever cluster it syncs to: health checks, notifications, the plugin.

Each object holds only our own keys and is applied server-side with its own field manager, so that it leaves
what others wrote into the same object: `kubectl apply --server-side --field-manager=gangplan -f settings/`.
"""

from __future__ import annotations

from gangplan.gitops.argocd import NOTIFICATION_TRIGGERS, PLUGIN_NAME, ArgoOptions
from gangplan.gitops.health import HEALTH_KINDS
from gangplan.gitops.lua import render_lua_script
from gangplan.objects import Body, dump_object_as_block_yaml

_CONFIG = f"{PLUGIN_NAME}-plugin"
# Argo CD no longer has a check for its own kind, and without one, waves of applications wait for nothing
# (docs/operator-manual/health.md of 3.5.1).
_APPLICATION = """\
local health = (obj.status or {}).health or {}
return {status = health.status or "Progressing", message = health.message or ""}
"""
# The tree is compared with its sources at every sync, and printed only if nothing is stale, forged or wrong.
# It is not rendered into the cluster directly: runs that Git keeps, stopped or retired, are known only from
# rendered/.
_GENERATE = """\
gangplan render --check --no-cache --cluster "$PARAM_CLUSTER" >&2
folder="rendered/$PARAM_CLUSTER/$PARAM_FOLDER"
if [ -d "$folder" ]; then
  find "$folder" -name '*.yaml' -type f | LC_ALL=C sort | while IFS= read -r file; do
    echo ---
    cat "$file"
  done
fi
"""
_FAILED = "app.status.operationState != nil and app.status.operationState.phase in ['Error', 'Failed']"
_DEGRADED = "app.status.health.status == 'Degraded'"
_ONCE = "app.status.operationState?.syncResult?.revision"
_MESSAGES = {
    NOTIFICATION_TRIGGERS[
        0
    ]: "{{.app.metadata.name}}: the sync failed: {{.app.status.operationState.message}}",
    NOTIFICATION_TRIGGERS[1]: "{{.app.metadata.name}} is degraded: a run failed, or a queue is inactive.",
}


def build_argocd_settings(namespace: str, options: ArgoOptions, image: str = "") -> dict[str, list[Body]]:
    """Build the objects of each file, by its name; with an image, the plugin, too."""
    files = {
        "argocd-cm.yaml": [_build_argocd_config_map(namespace, "argocd-cm", _build_health_customizations())]
    }
    if options.recipients:
        files["argocd-notifications-cm.yaml"] = [
            _build_argocd_config_map(
                namespace, "argocd-notifications-cm", _build_argocd_notification_settings()
            )
        ]
    if image:
        files["plugin.yaml"] = [
            _build_argocd_config_map(
                namespace, _CONFIG, {"plugin.yaml": dump_object_as_block_yaml(_build_argocd_plugin())}
            ),
            _build_argocd_plugin_sidecar_patch(namespace, image),
        ]
    return files


def _build_health_customizations() -> dict[str, str]:
    scripts = {f"{kind.group}_{kind.name}": render_lua_script(kind) for kind in HEALTH_KINDS}
    scripts["argoproj.io_Application"] = _APPLICATION
    return {f"resource.customizations.health.{name}": script for name, script in sorted(scripts.items())}


def _build_argocd_notification_settings() -> dict[str, str]:
    """Build triggers in the form of Argo CD's own catalog (notifications_catalog/ of 3.5.1), under our
    names."""
    data = {}
    for trigger, when in zip(NOTIFICATION_TRIGGERS, (_FAILED, _DEGRADED), strict=True):
        rule = {"when": when, "oncePer": _ONCE, "send": [trigger]}
        data[f"trigger.{trigger}"] = "".join(
            f"{'- ' if number == 0 else '  '}{line}\n"
            for number, line in enumerate(dump_object_as_block_yaml(rule).splitlines())
        )
        url = "{{.context.argocdUrl}}/applications/{{.app.metadata.name}}"
        data[f"template.{trigger}"] = dump_object_as_block_yaml({"message": f"{_MESSAGES[trigger]}\n{url}\n"})
    return dict(sorted(data.items()))


def _build_argocd_config_map(namespace: str, name: str, data: dict[str, str]) -> Body:
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _build_argocd_plugin() -> Body:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ConfigManagementPlugin",
        "metadata": {"name": PLUGIN_NAME},
        "spec": {"generate": {"command": ["sh", "-euc"], "args": [_GENERATE]}},
    }


def _build_argocd_plugin_sidecar_patch(namespace: str, image: str) -> Body:
    """Build what is added to argocd-repo-server (docs/operator-manual/config-management-plugins.md)."""
    config = "/home/argocd/cmp-server"
    mounts = [
        {"name": "var-files", "mountPath": "/var/run/argocd"},
        {"name": "plugins", "mountPath": f"{config}/plugins"},
        {"name": _CONFIG, "mountPath": f"{config}/config/plugin.yaml", "subPath": "plugin.yaml"},
        {"name": f"{PLUGIN_NAME}-tmp", "mountPath": "/tmp"},
    ]
    container = {
        "name": PLUGIN_NAME,
        "image": image,
        "command": ["/var/run/argocd/argocd-cmp-server"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 999,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    }
    volumes = [
        {"name": _CONFIG, "configMap": {"name": _CONFIG}},
        {"name": f"{PLUGIN_NAME}-tmp", "emptyDir": {}},
    ]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "argocd-repo-server", "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [container], "volumes": volumes}}},
    }
