"""Kubeflow Pipelines: the jobs of a team as a compiled pipeline (IR YAML), without its SDK.

Sources: PipelineSpec 2.1.0 as the SDK writes it (kubeflow/pipelines: api/v2alpha1/pipeline_spec.proto,
sdk/python/test_data; kubernetes_platform/proto/kubernetes_executor_config.proto for what Kubernetes adds).
"""

from __future__ import annotations

from typing import Any

from gangplan.gitops.steps import Chain, Step
from gangplan.model.schedule import CPU, MEMORY
from gangplan.objects import Body, dump

SCHEMA, SDK = "2.1.0", "kfp-2.11.0"
_KUBECONFIG = "/kubeconfig"


def kfp_text(chain: Chain) -> str:
    """Write the pipeline of a team and its platform specification: two documents, as the SDK writes them."""
    spec: Body = {
        "components": {f"comp-{one.name}": {"executorLabel": f"exec-{one.name}"} for one in chain.steps},
        "deploymentSpec": {"executors": {f"exec-{one.name}": _executor(chain, one) for one in chain.steps}},
        "pipelineInfo": {"name": chain.name},
        "root": {"dag": {"tasks": {one.name: _task(one) for one in chain.steps}}},
        "schemaVersion": SCHEMA,
        "sdkVersion": SDK,
    }
    executors = {f"exec-{one.name}": _on_kubernetes(chain, one) for one in chain.steps}
    platform: Body = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
    return f"{dump(spec)}---\n{dump(platform)}"


def _task(step: Step) -> dict[str, Any]:
    """Build a task that is never cached: what it waits for is not in its inputs."""
    found: dict[str, Any] = {"cachingOptions": {}, "componentRef": {"name": f"comp-{step.name}"}}
    if step.after:
        found["dependentTasks"] = list(step.after)
    return {**found, "taskInfo": {"name": step.name}}


def _executor(chain: Chain, step: Step) -> dict[str, Any]:
    env = [{"name": "HOME", "value": "/tmp"}]
    if step.context:
        env += [
            {"name": "KUBECONFIG", "value": f"{_KUBECONFIG}/config"},
            {"name": "CONTEXT", "value": step.context},
            {"name": "NAMESPACE", "value": chain.namespace},
        ]
    return {
        "container": {
            "args": list(step.words),
            "command": ["/bin/sh", "-c", chain.script, "gangplan-after"],
            "env": env,
            "image": chain.client,
            "resources": {
                "resourceCpuLimit": CPU,
                "resourceCpuRequest": CPU,
                "resourceMemoryLimit": MEMORY,
                "resourceMemoryRequest": MEMORY,
            },
        }
    }


def _on_kubernetes(chain: Chain, step: Step) -> dict[str, Any]:
    """Return the labels and user of the pod, and the run's template as a file or a kubeconfig for its
    cluster.

    From 2.17 on, KFP adds the rest that Pod Security requires in restricted namespaces (backend/src/v2,
    compiler/argocompiler/security_context.go); earlier versions ignore `securityContext`.
    """
    user = {
        "runAsUser": str(chain.uid),
        "runAsGroup": str(chain.gid),
        "runAsNonRoot": True,
    }  # int64 is written as a string
    found: dict[str, Any] = {"podMetadata": {"labels": dict(chain.labels)}, "securityContext": user}
    if step.context:
        volume = {"mountPath": _KUBECONFIG, "optional": False, "secretName": "gangplan-kubeconfig"}
        return {"secretAsVolume": [volume], **found}
    if step.is_held:
        volume = {"configMapName": step.config_map, "mountPath": "/template", "optional": False}
        return {"configMapAsVolume": [volume], **found}
    return found
