"""Judge every case of every policy by the API server, and compare its verdict and messages with ours."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gangplan.objects import BINDING_KIND, Body
from gangplan.packs.cases import PolicyCase, read_pack_cases
from gangplan.packs.read import PolicySource
from gangplan.policy.cases import Suite, build_policy_case_evaluator, build_policy_case_suites
from gangplan.policy.export import name_policy_object_in_cluster
from gangplan.policy.objects import POLICY_PREFIX
from gangplan.spec.cluster import Policies
from gangplan.workspace import load_workspace
from tests.e2e.policies.server import Server, same, softened
from tests.lab.client import ApiError, Client

# This label connects a case's object and its binding: the warnings of many bindings would be truncated.
LABEL = "test.example.com/case"
Said = frozenset[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A case with names of its own: its object, what judges it, and gangplan's verdict."""

    case: PolicyCase
    body: Body
    namespace: Body
    judges: tuple[Body, ...]
    ours: Said


def every(root: Path, trainer: str) -> Iterator[Sent]:
    """Yield all cases of all packs that apply to a version of Trainer.

    Each has a binding and parameters of its own, which a label distinguishes.
    """
    for suite in build_policy_case_suites(load_workspace(root)):
        for case in read_pack_cases(suite.folder, suite.shown)[0]:
            if is_for(case.file.object, trainer):
                yield _sent(suite, case)


def is_for(body: Body, trainer: str) -> bool:
    """Return whether Trainer keeps all fields of a case's object: 2.1 drops the deadline of a TrainJob."""
    return not trainer.startswith("2.1.") or "activeDeadlineSeconds" not in (body.get("spec") or {})


def _sent(suite: Suite, case: PolicyCase) -> Sent:
    evaluator, reading = build_policy_case_evaluator(suite, case)
    tag = f"{case.policy}-{case.name}".lower().replace("_", "-")[-60:].strip("-")
    tag += "-d" if case.denies else "-a"
    sent = copy.deepcopy(case.file.object)
    sent["metadata"].setdefault("labels", {})[LABEL] = tag[-63:].lstrip("-")
    violations = evaluator.judge([sent])
    judges: list[Body] = []
    for body in (*reading.others, *(one.written.body for one in reading.bindings)):
        mine = softened(
            name_policy_object_in_cluster(
                PolicySource(body, None, case.where.file), Policies(), {case.policy}
            )
        )
        mine["metadata"]["name"] = f"{mine['metadata']['name']}-{tag}"[-200:].lstrip("-.")
        if mine["kind"] == BINDING_KIND:
            mine["spec"]["matchResources"]["objectSelector"]["matchLabels"] = {LABEL: tag[-63:].lstrip("-")}
        if mine["kind"] == BINDING_KIND and "paramRef" in mine["spec"]:
            mine["spec"]["paramRef"]["name"] = f"{mine['spec']['paramRef']['name']}-{tag}"[-200:].lstrip("-.")
        judges.append(mine)
    names = {one.name: f"{POLICY_PREFIX}{one.name}-{tag}"[-200:].lstrip("-.") for one in reading.bindings}
    ours = frozenset(
        (f"{POLICY_PREFIX}{one.policy.name}", names[one.binding.name], one.message) for one in violations
    )
    namespace = next(iter(evaluator.namespaces.values()))
    return Sent(case, sent, namespace, tuple(judges), ours)


def policies(root: Path) -> list[Body]:
    """Return every policy of every pack, as it is applied."""
    return [
        name_policy_object_in_cluster(one.source, Policies(), ())
        for suite in build_policy_case_suites(load_workspace(root))
        for one in suite.policies.values()
    ]


def compare(client: Client, root: Path, trainer: str) -> tuple[int, int, list[str]]:
    """Return how many cases were judged, how many never reached a policy, and the disagreements in words."""
    sent = list(every(root, trainer))
    server = Server(client)
    wrong: list[str] = []
    judged = lost = 0
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gangplan-policies"}}
    server.install([space, *policies(root)])
    groups: dict[str, list[Sent]] = {}
    for one in sent:
        groups.setdefault(repr(sorted(one.namespace["metadata"].get("labels", {}).items())), []).append(one)
    try:
        for group in groups.values():
            _group(client, server, group, wrong, counts := [0, 0])
            judged, lost = judged + counts[0], lost + counts[1]
    finally:
        server.remove()
    return judged, lost, wrong


def _group(client: Client, server: Server, group: list[Sent], wrong: list[str], counts: list[int]) -> None:
    """Judge cases whose namespaces have the same labels."""
    for name in {one.namespace["metadata"]["name"] for one in group}:
        meant = next(one.namespace for one in group if one.namespace["metadata"]["name"] == name)
        plain: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": meant["metadata"]}
        if name != "default":
            client.apply(
                {
                    **plain,
                    "metadata": {
                        k: v for k, v in meant["metadata"].items() if k in ("name", "labels", "annotations")
                    },
                }
            )
    judges = [judge for one in group for judge in one.judges]
    server.install(judge for judge in judges if judge["kind"] != "Namespace")
    for one in group:
        mine = {judge["metadata"]["name"] for judge in one.judges}
        try:
            answer = server.ask(one.body)
        except (ApiError, LookupError, ValueError) as error:
            counts[1] += 1
            wrong.append(f"{one.case.where.file}: not asked: {error}")
            continue
        theirs = frozenset(said for said in answer.said if said[1] in mine)
        if answer.refusal and not answer.is_judged:
            counts[1] += 1
            if one.ours:
                wrong.append(f"{one.case.where.file}: refused before: {answer.refusal[:200]}")
            continue
        counts[0] += 1
        if not same(one.ours, type(answer)(theirs, answer.refusal, True, answer.is_cut)):
            said = f"ours {sorted(one.ours)}, the server's {sorted(theirs)} {answer.refusal}"
            wrong.append(f"{one.case.where.file}: {said}")
    for judge in reversed(judges):
        if judge["kind"] == BINDING_KIND:
            client.delete(f"{judge['apiVersion']}/{judge['kind']}", judge["metadata"]["name"])
    server.settle()
    for judge in judges:
        if judge["kind"] == "ConfigMap":
            client.delete(
                f"{judge['apiVersion']}/{judge['kind']}",
                judge["metadata"]["name"],
                judge["metadata"].get("namespace"),
            )
    server.installed = [body for body in server.installed if body not in judges]


def main(client: Client, root: Path, trainer: str) -> None:
    """Print the comparison."""
    judged, lost, wrong = compare(client, root, trainer)
    print(f"{judged} cases judged, {lost} refused before any policy, {len(wrong)} disagreements")
    print("\n".join(wrong))
