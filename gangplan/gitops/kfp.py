"""Kubeflow Pipelines: the jobs of a team as a compiled pipeline (IR YAML), without its SDK.

Sources: PipelineSpec 2.1.0 as the SDK writes it (kubeflow/pipelines: api/v2alpha1/pipeline_spec.proto,
sdk/python/test_data; kubernetes_platform/proto/kubernetes_executor_config.proto for what Kubernetes adds).
"""

from __future__ import annotations

from typing import Any

from gangplan.gitops.steps import Chain, PipelineStep
from gangplan.model.schedule import CREATOR_CPU, CREATOR_MEMORY
from gangplan.objects import Body, dump_object_as_block_yaml

PIPELINE_SCHEMA, SDK = "2.1.0", "kfp-2.11.0"
_KUBECONFIG = "/kubeconfig"


def render_kfp_pipeline(chain: Chain) -> str:
    """Write the pipeline of a team and its platform specification: two documents, as the SDK writes them."""
    spec: Body = {
        "components": {f"comp-{one.name}": {"executorLabel": f"exec-{one.name}"} for one in chain.steps},
        "deploymentSpec": {
            "executors": {f"exec-{one.name}": _build_kfp_executor(chain, one) for one in chain.steps}
        },
        "pipelineInfo": {"name": chain.name},
        "root": {"dag": {"tasks": {one.name: _build_kfp_task(one) for one in chain.steps}}},
        "schemaVersion": PIPELINE_SCHEMA,
        "sdkVersion": SDK,
    }
    executors = {f"exec-{one.name}": _build_kfp_kubernetes_config(chain, one) for one in chain.steps}
    platform: Body = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
    return f"{dump_object_as_block_yaml(spec)}---\n{dump_object_as_block_yaml(platform)}"


def _build_kfp_task(step: PipelineStep) -> dict[str, Any]:
    """Build a task that is never cached: what it waits for is not in its inputs."""
    found: dict[str, Any] = {"cachingOptions": {}, "componentRef": {"name": f"comp-{step.name}"}}
    if step.after:
        found["dependentTasks"] = list(step.after)
    return {**found, "taskInfo": {"name": step.name}}


def _build_kfp_executor(chain: Chain, step: PipelineStep) -> dict[str, Any]:
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
                "resourceCpuLimit": CREATOR_CPU,
                "resourceCpuRequest": CREATOR_CPU,
                "resourceMemoryLimit": CREATOR_MEMORY,
                "resourceMemoryRequest": CREATOR_MEMORY,
            },
        }
    }


def _build_kfp_kubernetes_config(chain: Chain, step: PipelineStep) -> dict[str, Any]:
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
