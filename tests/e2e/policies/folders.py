"""Policies in folders, with CRDs, parameters and objects: gangplan and the API server must judge them
equally.

`python -m tests.e2e.policies.folders --profile old FOLDER...` asks a lab; exit code 1 means that they differ.
A folder has YAML files, and in `users.txt` names of users to ask as, one per line. Bindings are installed as
warnings, see `server.py`. Its objects, and those of `objects.yaml` and `builtin.yaml`, are asked about
unchanged and changed at random, as new objects and as changes of existing ones.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from gangplan.model.crds import CrdFiles
from gangplan.objects import BINDING_KIND, POLICY_KIND, walk_leaves
from gangplan.rules.model import Severity
from gangplan.validate.apiserver.crdrules.registry import read_imported_crds, reduce_crd
from gangplan.validate.apiserver.defaulting.apply import fill_api_server_defaults
from gangplan.validate.apiserver.policy.judge import Namespaces, PolicyEvaluator
from gangplan.validate.apiserver.policy.kinds import guess_resource_plural_of_kind, read_extra_kinds
from gangplan.validate.apiserver.policy.model import GITOPS_USER, PlacedObject, User
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.apiserver.schema import SchemaVersions
from tests import plain
from tests.e2e.fidelity.sides import versions_of
from tests.e2e.policies.mutations import mutated
from tests.e2e.policies.server import REFUSED, Server, same, softened
from tests.lab import profiles
from tests.lab.client import ApiError, Client, poll
from tests.lab.lab import Lab

Object = dict[str, Any]
CRD, ASKERS = "CustomResourceDefinition", "gangplan:askers"
ACCOUNT = re.compile(r"system:(?:serviceaccount:[\w-]+:[\w-]+|kube-controller-manager)")
SPACES: dict[str, dict[str, str]] = {
    "pol-a": {},
    "pol-b": {"environment": "test", "env": "dev"},
    "pol-prod": {"environment": "prod", "env": "prod"},
}
# These keep objects at rest, so that a lab's controllers change nothing between question and answer.
STILL: dict[str, tuple[tuple[str, ...], Any]] = {
    "Pod": (("spec", "schedulingGates"), [{"name": "example.com/wait"}]),
    "Job": (("spec", "suspend"), True),
    "CronJob": (("spec", "suspend"), True),
    **dict.fromkeys(("Deployment", "StatefulSet", "ReplicaSet"), (("spec", "replicas"), 0)),
}


@dataclass(slots=True)
class Result:
    """Counts of one folder, and the disagreements in words."""

    policies: int = 0
    refused_policies: int = 0
    judged: int = 0
    changes: int = 0
    lost: int = 0
    messages: int = 0
    cut: int = 0
    undecided: Counter[str] = field(default_factory=Counter)
    spoken: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Folder:
    """The contents of a folder, by purpose."""

    policies: list[Object] = field(default_factory=list)
    crds: list[Object] = field(default_factory=list)
    others: list[Object] = field(default_factory=list)
    more: list[Object] = field(default_factory=list)  # to be asked about
    users: list[User] = field(default_factory=lambda: [_user(GITOPS_USER.username)])

    @property
    def spaces(self) -> list[Object]:
        """Its namespaces: those that its policies are about, and some to contrast with."""
        names: dict[str, dict[str, str]] = {name: dict(labels) for name, labels in SPACES.items()}
        for body in self.policies:
            match = body["spec"].get("matchResources") or body["spec"].get("matchConstraints") or {}
            labels = (match.get("namespaceSelector") or {}).get("matchLabels") or {}
            name = labels.get("kubernetes.io/metadata.name")
            names.setdefault(name or "pol-chosen", {}).update({} if name else labels)
        for body in self.others:
            if space := body["metadata"].get("namespace"):
                names.setdefault(space, {})
        names.pop("default", None)
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            for name, labels in names.items()
        ]


def _user(name: str) -> User:
    parts = name.split(":")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{parts[2]}") if len(parts) == 4 else ()
    return User(name, (ASKERS, *groups, "system:authenticated"))


def load(path: Path) -> Folder:
    """Read a folder."""
    folder = Folder()
    texts = [file.read_text(encoding="utf-8") for file in sorted(path.rglob("*.yaml"))]
    for body in (body for text in texts for body in plain.load_all(text) if body):
        kind = body.get("kind")
        into = (
            folder.policies
            if kind in (POLICY_KIND, BINDING_KIND)
            else folder.crds
            if kind == CRD
            else folder.others
        )
        into.append(_on_lines(body) if kind == POLICY_KIND else body)
    listed = path / "users.txt"
    named = listed.read_text(encoding="utf-8").split() if listed.exists() else []
    found = sorted({name for text in texts for name in ACCOUNT.findall(text)})
    folder.users += [_user(name) for name in (*named, *found)]
    return folder


def _on_lines(value: Any) -> Any:
    """Return a value with every expression on one line: a warning is a header, which cannot have a line
    break."""
    if isinstance(value, dict):
        return {name: _on_lines(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_on_lines(inner) for inner in value]
    return " ".join(value.split("\n")).strip() if isinstance(value, str) and "//" not in value else value


def ask(client: Client, folder: Folder, versions: SchemaVersions, seed: int, count: int) -> Result:
    """Ask about the policies of a folder, and `count` times about each of its objects."""
    result, random, server = Result(), Random(seed), Server(client)
    texts = tuple(json.dumps(reduce_crd(crd)) for crd in folder.crds)
    versions = versions.__class__(
        versions.kubernetes,
        versions.trainer,
        versions.kueue,
        versions.jobset,
        crds=read_imported_crds(CrdFiles(texts)),
    )
    sound = list(_accepted(client, folder.policies, versions, result))
    for space in folder.spaces:
        client.apply(space)
        client.wait("ServiceAccount", "default", space["metadata"]["name"], until=lambda _: True)
    params = list(_made(client, folder.others, own=True))
    there = [*params, *_made(client, _builtin())]
    judge = _evaluators(folder, sound, versions, params)
    server.install([*map(softened, sound)])
    named = {name for body in folder.policies for name in _resources(body)}
    try:
        for body in _questions(folder, random, count):
            _one(server, judge, random.choice(folder.users), (body, None), result)
        for old in there:
            for _ in range(
                3 * count if guess_resource_plural_of_kind(old["kind"]) in named else max(1, count // 2)
            ):
                user = random.choice(folder.users)
                metadata = old["metadata"]
                # Controllers may have changed it meanwhile.
                now = client.find(_kind(old), metadata["name"], metadata.get("namespace"))
                if now is not None:
                    _one(server, judge, user, (_nudged(now, random), now), result)
    finally:
        server.remove()
        server.settle()  # otherwise deleted policies would miss their parameters
        for old in there:
            client.delete(_kind(old), old["metadata"]["name"], old["metadata"].get("namespace"))
    return result


def define(client: Client, crds: Sequence[Object]) -> None:
    """Let the askers do everything, create kinds, and wait until policies may have parameters of them."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": ASKERS}]
    client.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "askers"},
            "roleRef": role,
            "subjects": subjects,
        }
    )
    for crd in crds:
        client.apply(crd)
    for crd in crds:
        kind = f"{crd['spec']['group']}/{crd['spec']['versions'][0]['name']}/{crd['spec']['names']['kind']}"
        poll(partial(_is_served, client, kind), 30, partial("{} is not served".format, kind))
    if crds:
        # The mapper by which admission finds kinds of parameters is rebuilt every 30 s
        # (apiserver v0.34, pkg/server/options/admission.go).
        time.sleep(35)


def _is_served(client: Client, kind: str) -> bool:
    return kind in client.discover()


def _kind(body: Object) -> str:
    return f"{body['apiVersion']}/{body['kind']}"


def _accepted(
    client: Client, bodies: Sequence[Object], versions: SchemaVersions, result: Result
) -> Iterator[Object]:
    """Yield the policies that the server accepts by dry run, and compare its answers with gangplan's."""
    for body in bodies:
        reading = read_policy_objects([PlacedObject(body)], versions)
        ours = "; ".join(one.message for one in reading.problems if "inert" not in one.rule)
        theirs = ""
        try:
            client.create(body, dry_run=True)
        except ApiError as error:
            theirs = error.message
        result.policies += body["kind"] == POLICY_KIND
        result.refused_policies += bool(theirs) and body["kind"] == POLICY_KIND
        if bool(ours) != bool(theirs):
            name = body["metadata"]["name"]
            result.wrong.append(f"{name}: taken in? we say {ours or 'yes'!r}, the server {theirs or 'yes'!r}")
        if not theirs:
            result.names.update({body["metadata"]["name"]} if body["kind"] == POLICY_KIND else ())
            yield body


def _evaluators(
    folder: Folder, sound: Sequence[Object], versions: SchemaVersions, params: Sequence[Object]
) -> dict[str, Any]:
    """Return the evaluator for each user."""
    reading = read_policy_objects([PlacedObject(softened(body)) for body in (*sound, *params)], versions)
    held = [fill_api_server_defaults(body, versions) for body in reading.others]
    return {
        user.username: PolicyEvaluator(
            versions,
            reading.policies,
            reading.bindings,
            held,
            Namespaces(folder.spaces, versions),
            read_extra_kinds(versions),
            user,
        )
        for user in folder.users
    }


def _builtin() -> list[Object]:
    files = [Path(__file__).parent / name for name in ("objects.yaml", "builtin.yaml")]
    found = [body for file in files for body in plain.load(file.read_text(encoding="utf-8"))]
    return [body for body in found if not body["apiVersion"].startswith(("resource.k8s.io", "external"))]


def _questions(folder: Folder, random: Random, count: int) -> Iterator[Object]:
    """Yield new objects, each unchanged and changed; more of the kinds that the policies name."""
    spaces = [space["metadata"]["name"] for space in folder.spaces]
    named = {name for body in folder.policies for name in _resources(body)}
    number = 0
    for body in (*folder.others, *folder.more, *_builtin()):
        often = guess_resource_plural_of_kind(body["kind"]) in named
        for turn in range(count * 5 if often else count):
            number += 1
            fresh = copy.deepcopy(body) if turn == 0 else _nudged(body, random)
            metadata = fresh["metadata"]
            if body["kind"] != CRD and (turn or body not in folder.others):
                metadata["name"] = f"{metadata['name'][:40]}-q{number}".replace(".-", "-")
            if "namespace" in metadata and (turn > 1 or body not in folder.others):
                metadata["namespace"] = random.choice(spaces)
            yield fresh


def _resources(body: Object) -> Iterator[str]:
    for rule in (body["spec"].get("matchConstraints") or {}).get("resourceRules") or ():
        yield from rule["resources"]


def _nudged(body: Object, random: Random) -> Object:
    """Return a copy with changes in what policies read, and with empty values in place of others."""
    try:
        result = mutated(body, random)
    except (TypeError, AttributeError, KeyError):  # an object of a shape that `mutated` does not know
        result = copy.deepcopy(body)
    if random.random() < 0.3:
        paths = [
            path
            for path, _ in walk_leaves(result)
            if path[0] in ("spec", "data", "metadata") and len(path) > 1
        ]
        path = random.choice(paths) if paths else ()
        node: Any = result
        for step in path[:-1]:
            node = node[step]
        if path and path[-1] not in ("name", "namespace", "resourceVersion", "uid"):
            node[path[-1]] = random.choice((None, [], {}, "", 0, "1"))
    return result


def _made(client: Client, bodies: Sequence[Object], *, own: bool = False) -> Iterator[Object]:
    """Yield created objects as the server stores them: under their `own` names, or in a namespace of this
    test."""
    for number, body in enumerate(bodies):
        if "WebhookConfiguration" in body["kind"] or body["kind"] in ("LimitRange", "ResourceQuota"):
            continue  # they would affect the answers
        fresh = copy.deepcopy(body)
        if not own and body["kind"] != CRD:
            fresh["metadata"]["name"] = f"{body['metadata']['name'][:40]}-old{number}".replace(".-", "-")
        if not own and "namespace" in fresh["metadata"]:
            fresh["metadata"]["namespace"] = "pol-prod"
        path, value = STILL.get(body["kind"], ((), None))
        if path:
            fresh[path[0]][path[1]] = value
        try:
            made = client.create(fresh, strict=False).object
        except LookupError:
            continue  # other versions of Kubernetes serve it
        except ApiError:
            if own:
                raise
            continue
        if own and "status" in body and "status" not in made:
            resource, metadata = client.resource(_kind(body)), made["metadata"]
            path_of = resource.path(metadata.get("namespace"), metadata["name"])
            made = client.request("PUT", f"{path_of}/status", {**made, "status": body["status"]}).object
        yield made


def _one(
    server: Server,
    judge: dict[str, PolicyEvaluator],
    user: User,
    change: tuple[Object, Object | None],
    result: Result,
) -> None:
    body, old = change
    evaluator = judge[user.username]
    try:
        answer = server.ask(body, old=old is not None, user=(user.username, user.groups[:-1]))
    except (ApiError, LookupError, ValueError, TypeError, AttributeError):
        result.lost += 1
        return
    if answer.refusal and not answer.is_judged and "already exists" not in answer.refusal:
        result.lost += 1
        return
    said = evaluator.judge([body], [old] if old else [])
    open_ones = {one.policy.name for one in said if one.is_undecided}
    result.undecided.update(open_ones)
    told = {
        is_outright: frozenset(
            (one.policy.name, one.binding.name, one.message)
            for one in said
            if not one.is_undecided and (one.severity is Severity.ERROR) == is_outright
        )
        for is_outright in (False, True)
    }
    ours = frozenset(one for one in told[False] if one[2].isprintable())
    theirs = frozenset(one for one in answer.said if one[0] not in open_ones)
    result.judged += 1
    result.changes += old is not None
    result.messages += len(theirs)
    result.cut += answer.is_cut
    # Of refusals that no binding can turn into warnings, the server reports one.
    found = REFUSED.search(answer.refusal)
    refused = {(found[1], found[2], found[3])} if found and found[1] not in open_ones else set()
    result.spoken |= {name for name, _, _ in (*theirs, *refused)}
    is_alike = refused <= told[True] and bool(refused) == bool(told[True])
    if not is_alike or not same(ours, type(answer)(theirs, answer.refusal, True, answer.is_cut)):
        only = f"only we {sorted(ours - theirs)}, only the server {sorted(theirs - ours)}"
        what = f"{body['kind']}{' changed' if old else ''} by {user.username}"
        outright = f"outright {sorted(told[True])} and {answer.refusal[:300]!r}"
        result.wrong.append(f"{what}: {only}; {outright}\n    {json.dumps(body)[:3000]}")


def main() -> int:
    """Ask a lab about folders."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.policies.folders", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--objects", type=Path, help="a folder with more objects to ask about: rendered/lab")
    parser.add_argument("--profile", default=profiles.DEFAULT)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=4, help="questions about each object")
    options = parser.parse_args()
    profile = profiles.find(options.profile)
    totals: Counter[str] = Counter()
    folders = {path: load(path) for path in options.folders}
    if options.objects:
        more = load(options.objects).others
        for folder in folders.values():
            folder.more += more
    with Lab(profile) as lab:
        define(lab.client, [crd for folder in folders.values() for crd in folder.crds])
        for path, folder in folders.items():
            result = ask(lab.client, folder, versions_of(profile), options.seed, options.count)
            counts = {
                name: getattr(result, name)
                for name in ("policies", "refused_policies", "judged", "changes", "lost", "messages", "cut")
            }
            totals.update({**counts, "wrong": len(result.wrong), "silent": len(result.names - result.spoken)})
            print(path.name, counts, f"silent {sorted(result.names - result.spoken)}")
            print(f"  undecided {dict(result.undecided)}; {len(result.wrong)} disagreements", flush=True)
            for text in result.wrong[:12]:
                print("  ", text)
    print(profile.versions(), dict(totals))
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
