"""Compare who may do what, by a real API server and by the rendered roles: the answers must be equal.

For every group of every binding, all verbs are tried on every resource of the roles, and on resources that no
role names, in each namespace and for the cluster as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.lab.client import Client
from tests.rbac import Question, granted, rights_of

Object = dict[str, Any]
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
# Resources that no member of a team may touch, whatever the verb.
SENSITIVE = (
    ("", "secrets"),
    ("", "serviceaccounts/token"),
    ("", "pods/attach"),
    ("", "pods/portforward"),
    ("", "pods/ephemeralcontainers"),
    ("", "configmaps"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("batch", "jobs"),
    ("apps", "deployments"),
    ("kueue.x-k8s.io", "clusterqueues"),
    ("kueue.x-k8s.io", "localqueues/status"),
    ("trainer.kubeflow.org", "clustertrainingruntimes"),
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
)
ESCALATIONS = (
    ("bind", "rbac.authorization.k8s.io", "clusterroles"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ("impersonate", "", "groups"),
)
STRANGER = "nobody-of-any-team"
THREADS = 8


def groups_of(bodies: Iterable[Object]) -> list[str]:
    """Return every group that some binding names."""
    return sorted(
        {
            subject["name"]
            for body in bodies
            if body["kind"] == "RoleBinding"
            for subject in body["subjects"]
            if subject["kind"] == "Group"
        }
    )


def questions(bodies: Sequence[Object], namespaces: Sequence[str]) -> list[Question]:
    """Return all questions. An empty namespace means the cluster as a whole."""
    named = {
        (group, resource)
        for body in bodies
        if body["kind"] == "ClusterRole"
        for group, resource, _ in granted(body)
    }
    actions = [(verb, *target) for target in sorted({*named, *SENSITIVE}) for verb in VERBS]
    return [
        Question(group, *action, namespace)
        for group in [*groups_of(bodies), STRANGER]
        for action in [*actions, *ESCALATIONS]
        for namespace in [*namespaces, ""]
    ]


def server_allows(client: Client, question: Question) -> bool:
    """Return what the API server's authorizer answers."""
    resource, _, part = question.resource.partition("/")
    attributes = {
        "verb": question.verb,
        "group": question.api_group,
        "resource": resource,
        "subresource": part,
        "namespace": question.namespace,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "somebody", "groups": [question.group], "resourceAttributes": attributes},
    }
    answer = client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.object["status"]["allowed"])


def disagreements(client: Client, bodies: Sequence[Object], namespaces: Sequence[str]) -> list[str]:
    """Return one line per question that the server answers differently from the rendered roles."""
    rights, asked = rights_of(bodies), questions(bodies, namespaces)
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda question: server_allows(client, question), asked))
    return [
        f"{question}: the server says {'yes' if answer else 'no'}"
        for question, answer in zip(asked, answers, strict=True)
        if answer != rights.allow(question)
    ]
