"""The API server's side: policies are installed with refusals turned into warnings, objects sent by dry run.

A refusal ends a request at the first policy that denies it; warnings name all of them, with their messages.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from gangplan.objects import BINDING_KIND, POLICY_KIND
from tests.lab.client import ApiError, Client, poll

Object = dict[str, Any]
SAID = re.compile(
    r"Validation failed for ValidatingAdmissionPolicy '([^']*)' with binding '([^']*)': (.*)", re.DOTALL
)
REFUSED = re.compile(
    r"ValidatingAdmissionPolicy '([^']*)' (?:with binding '([^']*)' )?denied request: (.*)", re.DOTALL
)
# endpoints/filters/warning.go of apiserver v0.34: long answers are truncated.
LONGEST_TEXT, LONGEST_ALL = 256, 4096
PROBE, KEEPER = "gangplan-probe", "gangplan-keeper"


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer: the warnings of policies (policy, binding, message), other warnings, a refusal.

    `is_judged` says whether the request came as far as the policies.
    """

    said: frozenset[tuple[str, str, str]]
    refusal: str = ""
    is_judged: bool = True
    is_cut: bool = False


def softened(body: Object) -> Object:
    """Return a binding that warns instead of refusing; any other object unchanged."""
    if body.get("kind") != BINDING_KIND:
        return body
    soft = copy.deepcopy(body)
    soft["spec"]["validationActions"] = ["Warn"]
    return soft


@dataclass(slots=True)
class Server:
    """A lab's API server with policies installed."""

    client: Client
    installed: list[Object] = field(default_factory=list)
    _probes: int = 0

    def install(self, bodies: Iterable[Object]) -> None:
        """Apply objects and wait until the server judges by all policies among them."""
        self._keep()
        for body in bodies:
            self.client.apply(body)
            self.installed.append(body)
        self.settle()

    def _keep(self) -> None:
        """Install a policy with parameters that stays bound.

        Once the last such policy is deleted, Kubernetes 1.34 stops watching ConfigMaps, and later policies
        find no parameters until the server is restarted.
        """
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
        spec: Object = {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [KEEPER]}]},
            "validations": [{"expression": "true"}],
        }
        api = "admissionregistration.k8s.io/v1"
        self.client.apply(
            {"apiVersion": api, "kind": POLICY_KIND, "metadata": {"name": KEEPER}, "spec": spec}
        )
        bound = {"policyName": KEEPER, "validationActions": ["Audit"]}
        self.client.apply(
            {"apiVersion": api, "kind": BINDING_KIND, "metadata": {"name": KEEPER}, "spec": bound}
        )

    def settle(self) -> None:
        """Wait until the server has seen everything: a policy that is created last must warn.

        Parameters and namespaces arrive by other watches, so the policy warns only with the last ConfigMap,
        in the last namespace.
        """
        self._probes += 1
        name = f"{PROBE}-{self._probes}"
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["configmaps"],
        }
        spec: Object = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**rule, "resourceNames": [name]}]},
            "validations": [{"expression": "false", "message": "here"}],
        }
        binding: Object = {"policyName": name, "validationActions": ["Warn"]}
        space = "default"
        if maps := [body["metadata"] for body in self.installed if body["kind"] == "ConfigMap"]:
            spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
            found = {"name": maps[-1]["name"], "namespace": maps[-1].get("namespace", "default")}
            binding["paramRef"] = {**found, "parameterNotFoundAction": "Allow"}
        if spaces := [body["metadata"]["name"] for body in self.installed if body["kind"] == "Namespace"]:
            space = spaces[-1]
            labels = {"kubernetes.io/metadata.name": space}
            binding["matchResources"] = {"namespaceSelector": {"matchLabels": labels}}
        api = "admissionregistration.k8s.io/v1"
        probes = [
            {"apiVersion": api, "kind": POLICY_KIND, "metadata": {"name": name}, "spec": spec},
            {"apiVersion": api, "kind": BINDING_KIND, "metadata": {"name": name}, "spec": binding},
        ]
        for probe in probes:
            self.client.apply(probe)
        asked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}}

        # Other policies may warn about it, too.
        def speaks():
            return any(one[0] == name for one in self.ask(asked).said)

        poll(speaks, 30, lambda: "the policies are not in force")
        for probe in reversed(probes):
            self.client.delete(str(probe["kind"]), name)

    def remove(self) -> None:
        """Delete what was installed, except for namespaces."""
        for body in reversed(self.installed):
            if body["kind"] != "Namespace":
                metadata = body["metadata"]
                self.client.delete(
                    f"{body['apiVersion']}/{body['kind']}", metadata["name"], metadata.get("namespace")
                )
        self.installed = []

    def ask(
        self, body: Object, *, old: bool = False, user: tuple[str, Sequence[str]] | None = None
    ) -> Answer:
        """Create an object by dry run, or change it if it is an `old` one, as a user with groups.

        Raises ApiError only for what is not an answer of admission.
        """
        resource = self.client.resource(f"{body['apiVersion']}/{body['kind']}")
        space = body["metadata"].get("namespace") if resource.namespaced else None
        path = resource.path(space, body["metadata"]["name"]) if old else resource.path(space)
        query = urlencode({"dryRun": "All", "fieldValidation": "Ignore"})
        head = {"Authorization": f"Bearer {self.client.token}", "Content-Type": "application/json"}
        data = json.dumps(body, ensure_ascii=False).encode()
        if user is not None:
            # Header names ignore case, keys of a mapping do not: one for each group.
            names = ("Impersonate-Group", "impersonate-group", "IMPERSONATE-GROUP")
            head |= {"Impersonate-User": user[0], **dict(zip(names, user[1], strict=False))}
        response, content = self.client._send("PUT" if old else "POST", f"{path}?{query}", data, head)
        texts = [_warning(header) for header in response.headers.get_all("Warning") or ()]
        said = frozenset((found[1], found[2], found[3]) for text in texts if (found := SAID.fullmatch(text)))
        is_cut = sum(map(len, texts)) >= LONGEST_ALL or any(len(text) == LONGEST_TEXT for text in texts)
        if response.status < 400:
            return Answer(said, is_cut=is_cut)
        error = ApiError(response.status, json.loads(content))
        # The schema and built-in admission come before policies, and validating webhooks after them.
        after = "admission webhook" in error.message or REFUSED.search(error.message) is not None
        return Answer(said, error.message, bool(said) or after, is_cut)


def _warning(header: str) -> str:
    """Return the text of a Warning header; http.client reads UTF-8 as Latin-1."""
    text = header.partition('"')[2].removesuffix('"')
    plain = re.sub(r"\\(.)", r"\1", text)
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


def same(ours: frozenset[tuple[str, str, str]], answer: Answer) -> bool:
    """Return whether both sides say the same; where the server truncated its answer, compare what there
    is."""
    if ours == answer.said:
        return True
    if not answer.is_cut:
        return False
    return all(any(_cut_of(theirs, mine) for mine in ours) for theirs in answer.said) and len(
        answer.said
    ) <= len(ours)


def _cut_of(theirs: tuple[str, str, str], mine: tuple[str, str, str]) -> bool:
    return theirs[:2] == mine[:2] and mine[2].startswith(theirs[2])


def bodies_of(sources: Sequence[Any]) -> list[Object]:
    """Return the objects of some sources."""
    return [source.body for source in sources]
