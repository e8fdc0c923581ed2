"""Node fit by brute force: every order and every choice, node by node; written independently of the solver.

Works on plain Kubernetes objects with kube-scheduler's filters spelled out one by one (Kubernetes v1.34.4).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.scheduler import PodShape, build_plain_pods_for_scheduler
from gangplan.validate.world import NodeGroup, NodeGroupTaint, World

Object = dict[str, Any]
HOST = "kubernetes.io/hostname"
RACK, BLOCK = "example.com/rack", "example.com/block"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
State = tuple[tuple[int, ...], ...]  # by node: pods of each kind


@dataclass(frozen=True)
class Case:
    """A small world: groups of nodes, and pods by shape with their number."""

    groups: tuple[NodeGroup, ...]
    pods: tuple[tuple[int, Object], ...]

    @property
    def world(self) -> World:
        """The world that the solver is given."""
        return World("lab", SchemaVersions("1.34", "2.3", "0.19", "0.12"), (), self.groups)


def nodes_of(groups: Sequence[NodeGroup]) -> list[Object]:
    """Return each node as an object; racks and blocks have the group's name and fill in order."""
    found = []
    for group in groups:
        for at in range(group.count):
            labels = {**group.labels, HOST: f"{group.name}-{at}"}
            labels |= {key: f"{group.name}-{at // size}" for key, size in group.domains}
            taints = [{"key": t.key, "value": t.value, "effect": t.effect} for t in group.taints]
            allocatable = {
                key: (f"{int(value * 1000)}m" if key == "cpu" else str(int(value)))
                for key, value in group.free.items()
            }
            found.append(
                {"name": f"{group.name}-{at}", "labels": labels, "taints": taints, "allocatable": allocatable}
            )
    return found


def amounts(pod: Object) -> dict[str, Fraction]:
    """Return the requests of a pod with one container."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    return {key: number(value) for key, value in requests.items()}


def number(text: str) -> Fraction:
    """Parse a quantity of the few forms that are used here."""
    return Fraction(text[:-1]) / 1000 if text.endswith("m") else Fraction(text)


def selected(selector: Object | None, labels: dict[str, str]) -> bool:
    """Return whether a label selector that has only matchLabels selects the labels."""
    return selector is not None and all(
        labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()
    )


def meets(one: Object, labels: dict[str, str]) -> bool:
    """Return whether labels meet a node selector requirement."""
    value = labels.get(one["key"])
    match one["operator"]:
        case "In":
            return value in one["values"]
        case "NotIn":
            return value not in one["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.isdigit() and int(value) > int(one["values"][0])
        case _:
            return value is not None and value.isdigit() and int(value) < int(one["values"][0])


def takes_node(pod: Object, node: Object) -> bool:
    """Return whether nodeSelector and required node affinity, thus labels only, allow the node."""
    spec, labels = pod["spec"], node["labels"]
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED)
    return required is None or any(
        all(meets(one, labels) for one in term["matchExpressions"]) for term in required["nodeSelectorTerms"]
    )


def tolerated(pod: Object, node: Object) -> bool:
    """Return whether the pod tolerates every hard taint."""
    for taint in node["taints"]:
        if taint["effect"] == "PreferNoSchedule":
            continue
        if not any(
            one.get("key") in (None, taint["key"])
            and one.get("effect") in (None, taint["effect"])
            and (one.get("operator") == "Exists" or one.get("value", "") == taint["value"])
            for one in pod["spec"].get("tolerations", [])
        ):
            return False
    return True


class Oracle:
    """All placements of a case."""

    def __init__(self, case: Case) -> None:
        """Spell out the nodes."""
        self.nodes = nodes_of(case.groups)
        self.pods = [pod for _, pod in case.pods]
        self.wanted = tuple(count for count, _ in case.pods)

    def bounds(self) -> tuple[int, int]:
        """Return the most pods that can be placed, and the fewest in any dead end."""
        start: State = tuple((0,) * len(self.pods) for _ in self.nodes)
        seen, waiting = {start}, [start]
        most, least = 0, sum(self.wanted)
        while waiting:
            state = waiting.pop()
            have = [sum(node[kind] for node in state) for kind in range(len(self.pods))]
            most, is_end = max(most, sum(have)), True
            for kind in range(len(self.pods)):
                if have[kind] == self.wanted[kind]:
                    continue
                for at in range(len(self.nodes)):
                    if self.accepts(state, kind, at):
                        is_end = False
                        content = list(state[at])
                        content[kind] += 1
                        after = (*state[:at], tuple(content), *state[at + 1 :])
                        if after not in seen:
                            seen.add(after)
                            waiting.append(after)
            if is_end:
                least = min(least, sum(have))
        return most, least

    def accepts(self, state: State, kind: int, at: int) -> bool:
        """Return whether all filters accept one more pod of a kind on a node."""
        pod, node = self.pods[kind], self.nodes[at]
        return (
            tolerated(pod, node)
            and takes_node(pod, node)
            and self._ports(state[at], kind)
            and self._room(state[at], kind, node)
            and self._spread(state, kind, at)
            and self._near(state, kind, at)
            and self._apart(state, kind, at)
        )

    def _ports(self, content: tuple[int, ...], kind: int) -> bool:
        def ports(pod: Object) -> set[int]:
            return {one["hostPort"] for one in pod["spec"]["containers"][0].get("ports", [])}

        mine = ports(self.pods[kind])
        return not any(n and mine & ports(self.pods[other]) for other, n in enumerate(content))

    def _room(self, content: tuple[int, ...], kind: int, node: Object) -> bool:
        if sum(content) + 1 > number(node["allocatable"].get("pods", "110")):
            return False
        for key, need in amounts(self.pods[kind]).items():
            used = sum((n * amounts(self.pods[at]).get(key, 0) for at, n in enumerate(content)), Fraction(0))
            if need and used + need > number(node["allocatable"].get(key, "0")):
                return False
        return True

    def _count(self, state: State, key: str, value: str, kinds: list[int], only: list[int]) -> int:
        return sum(
            state[at][kind] for at in only if self.nodes[at]["labels"].get(key) == value for kind in kinds
        )

    def _spread(self, state: State, kind: int, at: int) -> bool:
        pod, labels = self.pods[kind], self.nodes[at]["labels"]
        hard = [
            one
            for one in pod["spec"].get("topologySpreadConstraints", [])
            if one["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        for one in hard:
            key = one["topologyKey"]
            if key not in labels:
                return False
            eligible = [
                i
                for i, node in enumerate(self.nodes)
                if all(each["topologyKey"] in node["labels"] for each in hard)
                and (one.get("nodeAffinityPolicy") == "Ignore" or takes_node(pod, node))
                and (one.get("nodeTaintsPolicy") != "Honor" or tolerated(pod, node))
            ]
            kinds = self._kinds(one["labelSelector"])
            values = {self.nodes[i]["labels"][key] for i in eligible}
            counts = [self._count(state, key, value, kinds, eligible) for value in values]
            least = 0 if len(values) < one.get("minDomains", 1) else min(counts)
            here = self._count(state, key, labels[key], kinds, eligible)
            if here + (kind in kinds) - least > one["maxSkew"]:
                return False
        return True

    def _kinds(self, selector: Object | None) -> list[int]:
        return [
            at for at, pod in enumerate(self.pods) if selected(selector, pod["metadata"].get("labels", {}))
        ]

    def _terms(self, kind: int, which: str) -> list[Object]:
        found: list[Object] = self.pods[kind]["spec"].get("affinity", {}).get(which, {}).get(REQUIRED, [])
        return found

    def _near(self, state: State, kind: int, at: int) -> bool:
        terms, every = self._terms(kind, "podAffinity"), list(range(len(self.nodes)))
        if not terms:
            return True
        labels = self.nodes[at]["labels"]
        if any(term["topologyKey"] not in labels for term in terms):
            return False
        friends = [
            one
            for one in range(len(self.pods))
            if all(one in self._kinds(term["labelSelector"]) for term in terms)
        ]
        if all(
            self._count(state, term["topologyKey"], labels[term["topologyKey"]], friends, every)
            for term in terms
        ):
            return True
        anywhere = any(
            state[i][one]
            for i, node in enumerate(self.nodes)
            for one in friends
            if any(term["topologyKey"] in node["labels"] for term in terms)
        )
        return not anywhere and kind in friends

    def _apart(self, state: State, kind: int, at: int) -> bool:
        labels, every = self.nodes[at]["labels"], list(range(len(self.nodes)))
        for mine in range(len(self.pods)):
            for term in self._terms(mine, "podAntiAffinity"):
                key, kinds = term["topologyKey"], self._kinds(term["labelSelector"])
                if key not in labels:
                    continue
                if mine == kind and self._count(state, key, labels[key], kinds, every):
                    return False
                if kind in kinds and self._count(state, key, labels[key], [mine], every):
                    return False
        return True


def random_case(chance: random.Random, nodes: int = 3, pods: int = 4, kinds: int = 2) -> Case:
    """Draw a world of up to three groups of up to `nodes` nodes, and up to `pods` pods of each kind."""
    groups = tuple(random_group(chance, name, nodes) for name in "abc"[: chance.randint(1, 3)])
    return Case(groups, tuple(random_pods(chance, pods, kinds)))


def random_group(chance: random.Random, name: str, nodes: int) -> NodeGroup:
    """Draw nodes of one shape with a few labels, taints and topology levels."""
    labels = {"pool": name}
    if chance.random() < 0.5:
        labels[ZONE] = chance.choice(("east", "west"))
    if chance.random() < 0.3:
        labels["age"] = str(chance.randint(1, 4))
    taints = []
    if chance.random() < 0.3:
        effect = chance.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        taints.append(NodeGroupTaint("gpu", chance.choice(("", "yes")), effect))
    domains: tuple[tuple[str, int], ...] = ()
    if chance.random() < 0.5:
        rack = chance.randint(1, 2)
        domains = ((BLOCK, rack * chance.randint(1, 2)), (RACK, rack))
    free = {
        "cpu": Fraction(chance.randint(2, 9)),
        "memory": Fraction(chance.randint(6, 20)),
        "pods": Fraction(chance.choice((2, 3, 110))),
    }
    if chance.random() < 0.5:
        free["nvidia.com/gpu"] = Fraction(chance.randint(1, 4))
    if chance.random() < 0.2:
        free["nvidia.com/mig-1g.10gb"] = Fraction(7)
    return NodeGroup(name, chance.randint(1, nodes), labels, tuple(taints), free, domains)


def random_pods(chance: random.Random, pods: int, kinds: int) -> Iterator[tuple[int, Object]]:
    """Draw pods by shape, with constraints on nodes and on each other."""
    names = ["worker", "launcher", "other"][:kinds]
    for name in names[: chance.randint(1, kinds)]:
        count = chance.randint(1, pods) if name != "launcher" or chance.random() < 0.5 else 1
        requests = {"cpu": chance.choice(("500m", "1", "2", "3")), "memory": str(chance.randint(0, 8))}
        if chance.random() < 0.2:
            requests["nvidia.com/gpu"] = str(chance.randint(1, 2))
        if chance.random() < 0.1:
            requests["nvidia.com/mig-1g.10gb"] = str(chance.randint(1, 4))
        container: Object = {
            "name": "node",
            "image": "i",
            "resources": {"requests": requests, "limits": requests},
        }
        if chance.random() < 0.15:
            port = chance.choice((22, 23))
            container["ports"] = [{"containerPort": port, "hostPort": port, "protocol": "TCP"}]
        spec: Object = {"containers": [container]}
        if chance.random() < 0.5:
            _choose_nodes(chance, spec)
        if chance.random() < 0.6:
            _choose_company(chance, spec, names)
        yield count, {"metadata": {"name": name, "labels": {"role": name, "run": "one"}}, "spec": spec}


def _choose_nodes(chance: random.Random, spec: Object) -> None:
    if chance.random() < 0.25:
        spec["nodeSelector"] = {"pool": chance.choice("abc")}
    if chance.random() < 0.25:
        expressions = [
            {"key": "pool", "operator": "In", "values": ["a", "b"]},
            {"key": "pool", "operator": "NotIn", "values": ["a"]},
            {"key": ZONE, "operator": "Exists"},
            {"key": ZONE, "operator": "NotIn", "values": ["east"]},
            {"key": ZONE, "operator": "DoesNotExist"},
            {"key": "age", "operator": "Gt", "values": ["2"]},
            {"key": "age", "operator": "Lt", "values": ["3"]},
        ]
        terms = [
            {"matchExpressions": chance.sample(expressions, chance.randint(1, 2))}
            for _ in range(chance.randint(1, 2))
        ]
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    if chance.random() < 0.4:
        spec["tolerations"] = [
            chance.choice(
                (
                    {"key": "gpu", "operator": "Exists"},
                    {"operator": "Exists"},
                    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                    {"key": "gpu", "operator": "Exists", "effect": "NoExecute"},
                )
            )
        ]


def _choose_company(chance: random.Random, spec: Object, names: list[str]) -> None:
    selectors = [{"matchLabels": {"run": "one"}}, *({"matchLabels": {"role": name}} for name in names)]
    keys = (HOST, HOST, RACK, BLOCK, ZONE)
    for which in ("podAffinity", "podAntiAffinity"):
        if chance.random() < 0.25:
            terms = [
                {"topologyKey": chance.choice(keys), "labelSelector": chance.choice(selectors)}
                for _ in range(chance.choice((1, 1, 2)))
            ]
            spec.setdefault("affinity", {})[which] = {REQUIRED: terms}
    if chance.random() < 0.35:
        chosen = chance.sample((HOST, RACK, ZONE), chance.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [
            {
                "topologyKey": key,
                "maxSkew": chance.randint(1, 2),
                "whenUnsatisfiable": chance.choice(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": chance.choice(selectors),
                **({"minDomains": chance.randint(1, 4)} if chance.random() < 0.3 else {}),
                **({"nodeTaintsPolicy": "Honor"} if chance.random() < 0.3 else {}),
                **({"nodeAffinityPolicy": "Ignore"} if chance.random() < 0.3 else {}),
            }
            for key in chosen
        ]
        for one in spec["topologySpreadConstraints"]:
            if one["whenUnsatisfiable"] == "ScheduleAnyway":
                one.pop("minDomains", None)


def pods_of(case: Case) -> list[PodShape]:
    """Return the pods in the form of the solver."""
    return [build_plain_pods_for_scheduler(pod["metadata"]["name"], count, pod) for count, pod in case.pods]
