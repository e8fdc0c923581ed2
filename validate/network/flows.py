"""The connections of a run as rows: from, to, ports, verdict, and the policies that decide it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from gangplan.records import dataclass
from gangplan.validate.network.beyond import fabrics
from gangplan.validate.network.leaks import unasked_addresses, unasked_openings
from gangplan.validate.network.policy import DIRECTIONS, Direction, NetworkPolicy, PodGroup
from gangplan.validate.network.ranges import EVERY_PORT, NO_PORT, Addresses, Ports, Region, region_minus
from gangplan.validate.network.relation import Grant, address_grants, closing, grants, reach
from gangplan.validate.network.scene import Scene, scene_of
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


def flows(world: World, run: BuiltRun) -> tuple[Flow, ...]:
    """Return all rows of a run; () for one without a TrainJob."""
    scene = scene_of(world, run)
    if scene is None:
        return ()
    return (
        *_inside(scene),
        *_dns(scene),
        *_declared(scene),
        *_nodes(scene),
        *_outside(scene),
        *_beyond(scene),
    )


def _inside(scene: Scene) -> Iterator[Flow]:
    for _, one, _, two in scene.pairs():
        yield from _between(scene, one, two, one.title)


def _between(scene: Scene, one: PodGroup, two: PodGroup, title: str) -> Iterator[Flow]:
    """Yield what is allowed, what is unknown, and the rest, which is denied."""
    sure, maybe = (reach(scene.policies, one, two, sure=sure) for sure in (True, False))
    source, target = (scene.policies.get(pods.namespace, ()) for pods in (one, two))
    if sure:
        sent = _names(grants(source, "egress", one, two, sure=True), sure)
        taken = _names(grants(target, "ingress", two, one, sure=True), sure)
        yield Flow(title, two.title, str(sure), "allowed", sent, taken)
    if depends := maybe - sure:
        yield Flow(title, two.title, str(depends), "unknown")
    if rest := EVERY_PORT - maybe:
        out, into = _closers(source, "egress", one), _closers(target, "ingress", two)
        yield Flow(title, two.title, str(rest), "denied", out, into)


def _names(found: Iterable[Grant], ports: Ports) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.policy.name for one in found if one.policy and one.ports & ports))


def _closers(policies: Sequence[NetworkPolicy], direction: Direction, *pods: PodGroup) -> tuple[str, ...]:
    """Return the policies that close a direction for all of these pods."""
    found = [closing(policies, direction, one, sure=False) for one in pods]
    return tuple(one.name for one in found[0] if all(one in others for others in found[1:]))


def _grouped(scene: Scene, ask: Callable[[PodGroup], Found]) -> Iterator[tuple[str, list[PodGroup], Found]]:
    """Group the pods of the run by what `ask` returns for them: title, pods, the answer."""
    answers: dict[Found, list[PodGroup]] = {}
    every = list(scene.pods)
    for pods in every:
        answers.setdefault(ask(pods), []).append(pods)
    for found, group in answers.items():
        is_all = len(group) == len(every) and not scene.hosted
        title = EVERYONE if is_all else " and ".join(pods.title for pods in group)
        yield title, group, found


def _dns(scene: Scene) -> Iterator[Flow]:
    """Yield the ports that DNS needs; the others belong to the rows of all other pods."""

    def ask(pods: PodGroup) -> tuple[Ports, tuple[str, ...]]:
        reached = reach(scene.policies, pods, scene.dns) & scene.dns_ports
        return reached, _names(grants(scene.own, "egress", pods, scene.dns, sure=True), reached)

    for title, group, (reached, sent) in _grouped(scene, ask):
        if reached:
            yield Flow(title, scene.dns.title, str(reached), "allowed", sent)
        if lacks := scene.dns_ports - reached:
            closed = _closers(scene.own, "egress", *group)
            yield Flow(title, scene.dns.title, str(lacks), "denied", closed)


def _declared(scene: Scene) -> Iterator[Flow]:
    names = (*("DNS" for _ in scene.dns_region), *(one.name for one in scene.run.unit.job.egress))
    for name, (addresses, ports) in zip(names, (*scene.dns_region, *scene.declared), strict=True):
        one: Region = ((addresses, ports),)

        def ask(pods: PodGroup, wanted: Region = one) -> tuple[Region, tuple[str, ...]]:
            found = list(address_grants(scene.own, "egress", pods, sure=True))
            lacks = region_minus(wanted, tuple((inside, grant.ports) for inside, grant in found))
            useful = (grant for inside, grant in found if inside & wanted[0][0])
            return lacks, _names(useful, wanted[0][1])

        for title, group, (lacks, sent) in _grouped(scene, ask):
            if lacks != one:
                yield Flow(title, f"{name} ({addresses})", str(ports), "allowed", sent)
            for missing, closed in lacks:
                by = _closers(scene.own, "egress", *group)
                yield Flow(title, f"{name} ({missing})", str(closed), "denied", by)


def _nodes(scene: Scene) -> Iterator[Flow]:
    """Yield flows between pods and workers on the node network, by the nodes' addresses."""
    for direction in DIRECTIONS:
        for addresses, ports in scene.nodes(direction):
            for title, _, (lacks, names) in _grouped(scene, _asking(scene, direction, addresses, ports)):
                verdict: Verdict = "denied" if lacks else "allowed"
                nodes = f"workers' nodes ({addresses})"
                yield _directed(direction, title, nodes, ports, verdict, names)


def _asking(
    scene: Scene, direction: Direction, addresses: Addresses, ports: Ports
) -> Callable[[PodGroup], tuple[Region, tuple[str, ...]]]:
    """Return a function for what a pod lacks of some addresses, and the policies that open them."""

    def ask(pods: PodGroup) -> tuple[Region, tuple[str, ...]]:
        found = list(address_grants(scene.own, direction, pods, sure=True))
        lacks = region_minus(((addresses, ports),), tuple((inside, grant.ports) for inside, grant in found))
        return lacks, _names((grant for inside, grant in found if inside & addresses), ports)

    return ask


def _outside(scene: Scene) -> Iterator[Flow]:
    """Yield flows with everyone else: other pods, pods of other namespaces, and undeclared addresses."""
    for direction in DIRECTIONS:
        for stranger in (scene.beside, scene.others):
            yield from _strangers(scene, direction, stranger)
        yield from _addresses(scene, direction)


def _strangers(scene: Scene, direction: Direction, stranger: PodGroup) -> Iterator[Flow]:
    def ask(pods: PodGroup) -> tuple[Ports, tuple[str, ...]]:
        found = list(unasked_openings(scene, pods, direction, stranger))
        if found and stranger is scene.others:
            found = [one for part in scene.each for one in unasked_openings(scene, pods, direction, part)]
        return _sum(found), _names(found, EVERY_PORT)

    beside = stranger.title + (" (but DNS)" if stranger is scene.others and direction == "egress" else "")
    for title, group, (opened, by) in _grouped(scene, ask):
        if opened:
            yield _directed(direction, title, beside, opened, "allowed", by)
        if rest := EVERY_PORT - opened:
            yield _directed(direction, title, beside, rest, "denied", _closers(scene.own, direction, *group))


def _addresses(scene: Scene, direction: Direction) -> Iterator[Flow]:
    def ask(pods: PodGroup) -> tuple[Region, tuple[str, ...]]:
        found = list(unasked_addresses(scene, pods, direction))
        region = tuple(part for rest, _ in found for part in rest)
        return region, _names((one for _, one in found), EVERY_PORT)

    is_some = (direction == "egress" and scene.declared) or scene.nodes(direction)
    other = "any other address" if is_some else "any address"
    for title, group, (region, by) in _grouped(scene, ask):
        for inside, ports in region:
            yield _directed(direction, title, str(inside), ports, "allowed", by)
        if not region:
            yield _directed(
                direction, title, other, EVERY_PORT, "denied", _closers(scene.own, direction, *group)
            )


def _directed(
    direction: Direction, title: str, other: str, ports: Ports, verdict: Verdict, names: tuple[str, ...]
) -> Flow:
    """Return a row in the direction of the traffic."""
    if direction == "egress":
        return Flow(title, other, str(ports), verdict, sent_by=names)
    return Flow(other, title, str(ports), verdict, taken_by=names)


def _sum(found: Iterable[Grant]) -> Ports:
    total = NO_PORT
    for grant in found:
        total |= grant.ports
    return total


def _beyond(scene: Scene) -> Iterator[Flow]:
    note = "probes of the kubelet: NetworkPolicy never closes a pod to its own node"
    yield Flow("the pod's own node", EVERYONE, "every port", "allowed", note=note)
    for role in scene.roles:
        if role.template["spec"].get("hostNetwork"):
            note = "hostNetwork: no NetworkPolicy applies"
            yield Flow(role.title, "anyone", "every port", "unseen", note=note)
        for _, what in fabrics(scene, role):
            note = "NetworkPolicy does not see this traffic"
            yield Flow(role.title, what, "all", "unseen", note=note)
