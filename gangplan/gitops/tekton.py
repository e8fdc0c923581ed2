"""Tekton: Tasks and a Pipeline of v1 in .tekton/, and what starts it: Pipelines as Code, which reads its
PipelineRuns there, or Tekton Triggers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gangplan.errors import UserError
from gangplan.gitops.ci import PYTHON_GIT_IMAGE, CiOptions
from gangplan.model.kinds import RENDERED_KINDS
from gangplan.records import dataclass
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


# By event: what the forge calls it, and where its body has each parameter of the run. None is a name that the
# author of a pull request chooses. As in recorded bodies: @octokit/webhooks-examples 7.6.1, and testdata/ of
# gitlab.com/gitlab-org/api/client-go 1.46.0.
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
# The parameters of a run, as Pipelines as Code fills them in.
FILLED = {
    "url": "{{ repo_url }}",
    "revision": "{{ revision }}",
    "secret": "{{ git_auth_secret }}",
    "base": "{{ target_branch }}",
    "repository": "{{ repo_owner }}/{{ repo_name }}",
    "number": "{{ pull_request_number }}",
}


@dataclass(frozen=True, slots=True)
class Push:
    """What the pipeline of a push does at its end, in the namespace of the pipelines.

    It waits until argocd or flux has synced the objects called `names`, or it syncs the `clusters` itself,
    with a kubeconfig or in-cluster, where it may create and bind the cluster roles called `roles`.
    """

    wait: str = ""
    names: tuple[str, ...] = ()
    sync: str = ""
    clusters: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    namespace: str = "ci"


def render_tekton_files(
    options: CiOptions, forge: str, push: Push | None = None, start: str = "pac"
) -> dict[str, str]:
    """Render the files, by their paths in the repository; those outside .tekton/ are RBAC rules and Tekton
    Triggers.

    `start` is pac or triggers. Raises UserError for triggers without a forge.
    """
    push = push or Push()
    kind, group, plural, resource, namespace = ENGINES[push.wait] if push.wait else ("", "", "", "", "")
    values = {
        "branch": options.branch,
        "workspace": options.workspace,
        "image": options.image or PYTHON_GIT_IMAGE,
        "forge": forge,
        "wait": push.wait,
        "names": sorted(push.names),
        "sync": push.sync,
        "clusters": sorted(push.clusters),
        "kind": kind,
        "group": group,
        "plural": plural,
        "resource": resource,
        "engine_namespace": namespace,
        "account_namespace": push.namespace,
        "start": start,
    }
    files = {
        ".tekton/gangplan-tasks.yaml": render_yaml("ci/tekton-tasks.yaml.j2", values),
        ".tekton/gangplan-pipeline.yaml": render_yaml("ci/tekton-pipeline.yaml.j2", values),
    }
    if start == "triggers":
        files["tekton/gangplan-triggers.yaml"] = _render_tekton_triggers(values)
    else:
        for event, on in (("pull-request", "pull_request"), ("push", "push")):
            run = {**values, "event": event, "on": on, "given": FILLED}
            files[f".tekton/gangplan-{event}.yaml"] = render_yaml("ci/tekton-run.yaml.j2", run)
    if push.wait:
        files["tekton/gangplan-wait-rights.yaml"] = render_yaml("ci/tekton-rights.yaml.j2", values)
    if push.sync == "in-cluster":
        files["tekton/gangplan-sync-rights.yaml"] = render_tekton_sync_rights(push)
    return files


def render_tekton_sync_rights(push: Push) -> str:
    """Render the account that syncs the cluster of its pod, and its rights.

    An account may not create or bind a role with rights that it lacks (Kubernetes, RBAC, "Privilege
    escalation prevention"), so this one is allowed to do so with the roles that gangplan renders, by their
    names.
    """
    kinds: dict[str, list[str]] = {}
    for one in RENDERED_KINDS:
        kinds.setdefault(one.group, []).append(_guess_resource_plural(one.name))
    values = {
        "namespace": push.namespace,
        "kinds": {group: sorted(names) for group, names in sorted(kinds.items())},
        "roles": sorted(push.roles),
        "own": sorted(name for name in push.roles if not name.startswith("system:")),
    }
    return render_yaml("ci/tekton-sync-rights.yaml.j2", values)


def _guess_resource_plural(kind: str) -> str:
    """Return the resource of a kind, as apimachinery guesses it (meta.UnsafeGuessKindToResource). A test asks
    a real server."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


def _render_tekton_triggers(values: Mapping[str, Any]) -> str:
    """Render the listener and what it creates.

    Triggers fills in texts as JSON has them, between quotes (0.35, pkg/template). Raises UserError for a
    forge that sends no events.
    """
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
