"""The connections of a run as rows: from, to, ports, verdict, and the policies that decide it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from gangplan.records import dataclass
from gangplan.validate.network.beyond import find_extra_pod_networks
from gangplan.validate.network.leaks import find_unasked_network_addresses, find_unasked_network_openings
from gangplan.validate.network.policy import DIRECTIONS, Direction, NetworkPolicy, PodGroup
from gangplan.validate.network.ranges import (
    EVERY_PORT,
    NO_PORT,
    Addresses,
    Ports,
    Region,
    subtract_network_region,
)
from gangplan.validate.network.relation import (
    Grant,
    find_closing_network_policies,
    find_network_address_grants,
    find_network_grants,
    find_reachable_ports,
)
from gangplan.validate.network.scene import Scene, network_scene_of
from gangplan.validate.world import BuiltRun, World

# unknown: it depends on labels that only the cluster knows; unseen: no NetworkPolicy applies to it.
Verdict = Literal["allowed", "denied", "unknown", "unseen"]
EVERYONE = "all pods"
Found = TypeVar("Found", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Flow:
    """One row.

    `sent_by` and `taken_by` are the policies that allow it at its source and its target, or for a denied row
    those that close it; empty if there are none.
    """

    source: str
    target: str
    ports: str
    verdict: Verdict
    sent_by: tuple[str, ...] = ()
    taken_by: tuple[str, ...] = ()
    note: str = ""


def list_network_flows(world: World, run: BuiltRun) -> tuple[Flow, ...]:
    """Return all rows of a run; () for one without a TrainJob."""
    scene = network_scene_of(world, run)
    if scene is None:
        return ()
    return (
        *_list_flows_inside_run(scene),
        *_list_dns_flows(scene),
        *_list_declared_egress_flows(scene),
        *_list_node_network_flows(scene),
        *_list_flows_with_outsiders(scene),
        *_list_flows_beyond_network_policies(scene),
    )


def _list_flows_inside_run(scene: Scene) -> Iterator[Flow]:
    for _, one, _, two in scene.pairs():
        yield from _list_flows_between_pods(scene, one, two, one.title)


def _list_flows_between_pods(scene: Scene, one: PodGroup, two: PodGroup, title: str) -> Iterator[Flow]:
    """Yield what is allowed, what is unknown, and the rest, which is denied."""
    sure, maybe = (find_reachable_ports(scene.policies, one, two, sure=sure) for sure in (True, False))
    source, target = (scene.policies.get(pods.namespace, ()) for pods in (one, two))
    if sure:
        sent = _list_granting_policy_names(find_network_grants(source, "egress", one, two, sure=True), sure)
        taken = _list_granting_policy_names(find_network_grants(target, "ingress", two, one, sure=True), sure)
        yield Flow(title, two.title, str(sure), "allowed", sent, taken)
    if depends := maybe - sure:
        yield Flow(title, two.title, str(depends), "unknown")
    if rest := EVERY_PORT - maybe:
        out, into = (
            _list_closing_network_policy_names(source, "egress", one),
            _list_closing_network_policy_names(target, "ingress", two),
        )
        yield Flow(title, two.title, str(rest), "denied", out, into)


def _list_granting_policy_names(found: Iterable[Grant], ports: Ports) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.policy.name for one in found if one.policy and one.ports & ports))


def _list_closing_network_policy_names(
    policies: Sequence[NetworkPolicy], direction: Direction, *pods: PodGroup
) -> tuple[str, ...]:
    """Return the policies that close a direction for all of these pods."""
    found = [find_closing_network_policies(policies, direction, one, sure=False) for one in pods]
    return tuple(one.name for one in found[0] if all(one in others for others in found[1:]))


def _group_pods_by_answer(
    scene: Scene, ask: Callable[[PodGroup], Found]
) -> Iterator[tuple[str, list[PodGroup], Found]]:
    """Group the pods of the run by what `ask` returns for them: title, pods, the answer."""
    answers: dict[Found, list[PodGroup]] = {}
    every = list(scene.pods)
    for pods in every:
        answers.setdefault(ask(pods), []).append(pods)
    for found, group in answers.items():
        is_all = len(group) == len(every) and not scene.hosted
        title = EVERYONE if is_all else " and ".join(pods.title for pods in group)
        yield title, group, found


def _list_dns_flows(scene: Scene) -> Iterator[Flow]:
    """Yield the ports that DNS needs; the others belong to the rows of all other pods."""

    def ask(pods: PodGroup) -> tuple[Ports, tuple[str, ...]]:
        reached = find_reachable_ports(scene.policies, pods, scene.dns) & scene.dns_ports
        return reached, _list_granting_policy_names(
            find_network_grants(scene.own, "egress", pods, scene.dns, sure=True), reached
        )

    for title, group, (reached, sent) in _group_pods_by_answer(scene, ask):
        if reached:
            yield Flow(title, scene.dns.title, str(reached), "allowed", sent)
        if lacks := scene.dns_ports - reached:
            closed = _list_closing_network_policy_names(scene.own, "egress", *group)
            yield Flow(title, scene.dns.title, str(lacks), "denied", closed)


def _list_declared_egress_flows(scene: Scene) -> Iterator[Flow]:
    names = (*("DNS" for _ in scene.dns_region), *(one.name for one in scene.run.unit.job.egress))
    for name, (addresses, ports) in zip(names, (*scene.dns_region, *scene.declared), strict=True):
        one: Region = ((addresses, ports),)

        def ask(pods: PodGroup, wanted: Region = one) -> tuple[Region, tuple[str, ...]]:
            found = list(find_network_address_grants(scene.own, "egress", pods, sure=True))
            lacks = subtract_network_region(wanted, tuple((inside, grant.ports) for inside, grant in found))
            useful = (grant for inside, grant in found if inside & wanted[0][0])
            return lacks, _list_granting_policy_names(useful, wanted[0][1])

        for title, group, (lacks, sent) in _group_pods_by_answer(scene, ask):
            if lacks != one:
                yield Flow(title, f"{name} ({addresses})", str(ports), "allowed", sent)
            for missing, closed in lacks:
                by = _list_closing_network_policy_names(scene.own, "egress", *group)
                yield Flow(title, f"{name} ({missing})", str(closed), "denied", by)


def _list_node_network_flows(scene: Scene) -> Iterator[Flow]:
    """Yield flows between pods and workers on the node network, by the nodes' addresses."""
    for direction in DIRECTIONS:
        for addresses, ports in scene.nodes(direction):
            for title, _, (lacks, names) in _group_pods_by_answer(
                scene, _build_address_question(scene, direction, addresses, ports)
            ):
                verdict: Verdict = "denied" if lacks else "allowed"
                nodes = f"workers' nodes ({addresses})"
                yield _build_directed_flow(direction, title, nodes, ports, verdict, names)


def _build_address_question(
    scene: Scene, direction: Direction, addresses: Addresses, ports: Ports
) -> Callable[[PodGroup], tuple[Region, tuple[str, ...]]]:
    """Return a function for what a pod lacks of some addresses, and the policies that open them."""

    def ask(pods: PodGroup) -> tuple[Region, tuple[str, ...]]:
        found = list(find_network_address_grants(scene.own, direction, pods, sure=True))
        lacks = subtract_network_region(
            ((addresses, ports),), tuple((inside, grant.ports) for inside, grant in found)
        )
        return lacks, _list_granting_policy_names(
            (grant for inside, grant in found if inside & addresses), ports
        )

    return ask


def _list_flows_with_outsiders(scene: Scene) -> Iterator[Flow]:
    """Yield flows with everyone else: other pods, pods of other namespaces, and undeclared addresses."""
    for direction in DIRECTIONS:
        for stranger in (scene.beside, scene.others):
            yield from _list_stranger_pod_flows(scene, direction, stranger)
        yield from _list_other_address_flows(scene, direction)


def _list_stranger_pod_flows(scene: Scene, direction: Direction, stranger: PodGroup) -> Iterator[Flow]:
    def ask(pods: PodGroup) -> tuple[Ports, tuple[str, ...]]:
        found = list(find_unasked_network_openings(scene, pods, direction, stranger))
        if found and stranger is scene.others:
            found = [
                one
                for part in scene.each
                for one in find_unasked_network_openings(scene, pods, direction, part)
            ]
        return _merge_granted_ports(found), _list_granting_policy_names(found, EVERY_PORT)

    beside = stranger.title + (" (but DNS)" if stranger is scene.others and direction == "egress" else "")
    for title, group, (opened, by) in _group_pods_by_answer(scene, ask):
        if opened:
            yield _build_directed_flow(direction, title, beside, opened, "allowed", by)
        if rest := EVERY_PORT - opened:
            yield _build_directed_flow(
                direction,
                title,
                beside,
                rest,
                "denied",
                _list_closing_network_policy_names(scene.own, direction, *group),
            )


def _list_other_address_flows(scene: Scene, direction: Direction) -> Iterator[Flow]:
    def ask(pods: PodGroup) -> tuple[Region, tuple[str, ...]]:
        found = list(find_unasked_network_addresses(scene, pods, direction))
        region = tuple(part for rest, _ in found for part in rest)
        return region, _list_granting_policy_names((one for _, one in found), EVERY_PORT)

    is_some = (direction == "egress" and scene.declared) or scene.nodes(direction)
    other = "any other address" if is_some else "any address"
    for title, group, (region, by) in _group_pods_by_answer(scene, ask):
        for inside, ports in region:
            yield _build_directed_flow(direction, title, str(inside), ports, "allowed", by)
        if not region:
            yield _build_directed_flow(
                direction,
                title,
                other,
                EVERY_PORT,
                "denied",
                _list_closing_network_policy_names(scene.own, direction, *group),
            )


def _build_directed_flow(
    direction: Direction, title: str, other: str, ports: Ports, verdict: Verdict, names: tuple[str, ...]
) -> Flow:
    """Return a row in the direction of the traffic."""
    if direction == "egress":
        return Flow(title, other, str(ports), verdict, sent_by=names)
    return Flow(other, title, str(ports), verdict, taken_by=names)


def _merge_granted_ports(found: Iterable[Grant]) -> Ports:
    total = NO_PORT
    for grant in found:
        total |= grant.ports
    return total


def _list_flows_beyond_network_policies(scene: Scene) -> Iterator[Flow]:
    note = "probes of the kubelet: NetworkPolicy never closes a pod to its own node"
    yield Flow("the pod's own node", EVERYONE, "every port", "allowed", note=note)
    for role in scene.roles:
        if role.template["spec"].get("hostNetwork"):
            note = "hostNetwork: no NetworkPolicy applies"
            yield Flow(role.title, "anyone", "every port", "unseen", note=note)
        for _, what in find_extra_pod_networks(scene, role):
            note = "NetworkPolicy does not see this traffic"
            yield Flow(role.title, what, "all", "unseen", note=note)
