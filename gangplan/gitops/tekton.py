"""Tekton: Tasks and a Pipeline of v1 in .tekton/, and what starts it: Pipelines as Code, which reads its
PipelineRuns there, or Tekton Triggers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from gangplan.errors import UserError
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


# By event: what the forge calls it, and where its body has each parameter of the run, none of them a name
# that the author of a pull request chooses. As recorded bodies have them: @octokit/webhooks-examples
# 7.6.1, and testdata/ of gitlab.com/gitlab-org/api/client-go 1.46.0.
EVENTS: dict[str, dict[str, dict[str, Any]]] = {
    "github": {
        "pull-request": {
            "kind": "pull_request",
            "fields": {
                "url": "repository.clone_url",
                "revision": "pull_request.head.sha",
                "repository": "repository.full_name",
                "number": "pull_request.number",
            },
        },
        "push": {"kind": "push", "fields": {"url": "repository.clone_url", "revision": "after"}},
    },
    "gitlab": {
        "pull-request": {
            "kind": "Merge Request Hook",
            "fields": {
                "url": "project.git_http_url",
                "revision": "object_attributes.last_commit.id",
                "repository": "project.path_with_namespace",
                "number": "object_attributes.iid",
            },
        },
        "push": {"kind": "Push Hook", "fields": {"url": "project.git_http_url", "revision": "after"}},
    },
}
# What a run is given, as Pipelines as Code fills it in.
FILLED = {
    "url": "{{ repo_url }}",
    "revision": "{{ revision }}",
    "secret": "{{ git_auth_secret }}",
    "base": "{{ target_branch }}",
    "repository": "{{ repo_owner }}/{{ repo_name }}",
    "number": "{{ pull_request_number }}",
}


def tekton_files(
    options: CiOptions,
    forge: str,
    wait: str = "",
    names: Sequence[str] = (),
    account_namespace: str = "ci",
    start: str = "pac",
) -> dict[str, str]:
    """The files by their paths in the repository.

    With `wait`, argocd or flux, the pipeline of a push ends once the objects called `names` are synced, and
    a file outside of .tekton/ has the rights for that, for the account of `account_namespace`. `start` is pac
    or triggers. Raises UserError for triggers without a forge.
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
        "start": start,
    }
    files = {
        ".tekton/gangplan-tasks.yaml": render_yaml("ci/tekton-tasks.yaml.j2", values),
        ".tekton/gangplan-pipeline.yaml": render_yaml("ci/tekton-pipeline.yaml.j2", values),
    }
    if start == "triggers":
        files["tekton/gangplan-triggers.yaml"] = _triggers(values)
    else:
        for event, on in (("pull-request", "pull_request"), ("push", "push")):
            run = {**values, "event": event, "on": on, "given": FILLED}
            files[f".tekton/gangplan-{event}.yaml"] = render_yaml("ci/tekton-run.yaml.j2", run)
    if wait:
        files["tekton/gangplan-wait-rights.yaml"] = render_yaml("ci/tekton-rights.yaml.j2", values)
    return files


def _triggers(values: Mapping[str, Any]) -> str:
    """The listener and what it creates. Triggers fills in texts as JSON has them, between quotes (0.35,
    pkg/template)."""
    if values["forge"] not in EVENTS:
        raise UserError(
            "there is no forge that sends events to Tekton Triggers",
            "Write --forge github or --forge gitlab.",
        )
    given = {name: f"$(tt.params.{name})" for name in FILLED}
    given |= {"secret": "gangplan-forge", "base": values["branch"]}
    events = {}
    for event, told in EVENTS[values["forge"]].items():
        run = render_yaml("ci/tekton-run.yaml.j2", {**values, "event": event, "given": given})
        events[event] = {**told, "run": Markup(run)}
    return render_yaml("ci/tekton-triggers.yaml.j2", {**values, "events": events})
