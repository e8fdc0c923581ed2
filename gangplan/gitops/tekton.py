"""Tekton: Tasks and a Pipeline of v1, and PipelineRuns for Pipelines as Code, all in .tekton/."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.gitops.ci import PYTHON_GIT_IMAGE, CiOptions
from gangplan.template import render_yaml

# By engine: kind, group, plural, the path of the API below /apis/, and the namespace that the engine runs in.
ENGINES = {
    "argocd": (
        "Application",
        "argoproj.io",
        "applications",
        "argoproj.io/v1alpha1/namespaces/NAMESPACE/applications",
        "argocd",
    ),
    "flux": (
        "Kustomization",
        "kustomize.toolkit.fluxcd.io",
        "kustomizations",
        "kustomize.toolkit.fluxcd.io/v1/namespaces/NAMESPACE/kustomizations",
        "flux-system",
    ),
}


def tekton_files(
    options: CiOptions, forge: str, wait: str = "", names: Sequence[str] = (), account_namespace: str = "ci"
) -> dict[str, str]:
    """The files by their paths in the repository.

    With `wait`, argocd or flux, the pipeline of a push ends once the objects called `names` are synced, and
    a file outside of .tekton/ has the rights for that, for the account of `account_namespace`.
    """
    kind, group, plural, resource, namespace = ENGINES[wait] if wait else ("", "", "", "", "")
    values = {
        "branch": options.branch,
        "workspace": options.workspace,
        "image": options.image or PYTHON_GIT_IMAGE,
        "forge": forge,
        "wait": wait,
        "names": sorted(names),
        "kind": kind,
        "group": group,
        "plural": plural,
        "resource": resource,
        "engine_namespace": namespace,
        "account_namespace": account_namespace,
    }
    files = {
        ".tekton/gangplan-tasks.yaml": render_yaml("ci/tekton-tasks.yaml.j2", values),
        ".tekton/gangplan-pipeline.yaml": render_yaml("ci/tekton-pipeline.yaml.j2", values),
    }
    for event, on in (("pull-request", "pull_request"), ("push", "push")):
        text = render_yaml("ci/tekton-run.yaml.j2", {**values, "event": event, "on": on})
        files[f".tekton/gangplan-{event}.yaml"] = text
    if wait:
        files["tekton/gangplan-wait-rights.yaml"] = render_yaml("ci/tekton-rights.yaml.j2", values)
    return files
