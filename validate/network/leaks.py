"""Connections that a run does not need and the policies allow: one problem per rule that opens too much.

With outsiders, only the run's own side is checked: no policy of theirs is needed to keep them out. Inside the
run both sides are known, and a connection counts only if both allow it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from gangplan.records import dataclass
from gangplan.rules.network import NETWORK_OPEN
from gangplan.validate.network.labels import build_label_values, format_label_selector
from gangplan.validate.network.policy import DIRECTIONS, Direction, NetworkPolicy, PodGroup, PolicyPeer
from gangplan.validate.network.ranges import NO_PORT, Ports, Region, subtract_network_region
from gangplan.validate.network.relation import (
    NAMESPACE_NAME_LABEL,
    Grant,
    Opening,
    find_network_address_grants,
    find_network_grants,
    find_network_openings,
    find_reachable_ports,
)
from gangplan.validate.network.scene import Scene
from gangplan.validate.problems import PathStep, Problem

MOST = 4
Key = tuple[int, Direction, str, int]  # object, direction, policy ("" if none closes it), rule


@dataclass(slots=True)
class Leak:
    """The connections that one rule opens and should not."""

    subjects: list[str] = field(default_factory=list)
    outsiders: list[str] = field(default_factory=list)
    ports: Ports = NO_PORT

    def add(self, subject: str, outsider: str, ports: Ports) -> None:
        """Add one more connection."""
        if subject not in self.subjects:
            self.subjects.append(subject)
        if outsider not in self.outsiders:
            self.outsiders.append(outsider)
        self.ports |= ports


def check_open_connections(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Report everything that is open beyond the posture and the declared egress."""
    leaks: dict[Key, Leak] = {}
    for pods in scene.pods:
        for direction in DIRECTIONS:
            _collect_network_leaks_to_pods(scene, pods, direction, leaks)
            _collect_network_leaks_to_addresses(scene, pods, direction, leaks)
    for key, leak in sorted(leaks.items(), key=lambda item: item[0]):
        yield key[0], _report_network_leak(key, leak, scene)
    yield from _check_network_posture_inside_run(scene)


def find_unasked_network_openings(
    scene: Scene, pods: PodGroup, direction: Direction, stranger: PodGroup
) -> Iterator[Grant]:
    """Yield what the policies of `pods` open to other pods, without the DNS that they may use."""
    for opening in find_network_openings(scene.own, direction, pods, stranger):
        ports = _subtract_dns_ports(scene, opening) if direction == "egress" else opening.grant.ports
        if ports:
            yield Grant(ports, opening.grant.policy, opening.grant.rule)


def _subtract_dns_ports(scene: Scene, opening: Opening) -> Ports:
    """Return the ports of an opening, without those of DNS if it goes only to the DNS pods."""
    dns = scene.run.unit.job.platform.dns
    home = {NAMESPACE_NAME_LABEL: build_label_values(dns.namespace)}
    labels = {key: build_label_values(value) for key, value in dns.labels}
    ports = opening.grant.ports
    if any(True for _ in opening.home.without(home)) or any(True for _ in opening.labels.without(labels)):
        return ports
    return ports - scene.dns_ports


def _collect_network_leaks_to_pods(
    scene: Scene, pods: PodGroup, direction: Direction, leaks: dict[Key, Leak]
) -> None:
    for grant in find_unasked_network_openings(scene, pods, direction, scene.beside):
        _find_or_add_leak(scene, pods, direction, grant, leaks).add(
            pods.title, scene.beside.title, grant.ports
        )
    if not any(True for _ in find_unasked_network_openings(scene, pods, direction, scene.others)):
        return
    open_to: dict[Key, list[tuple[PodGroup, Grant]]] = {}
    each = scene.each
    for stranger in each:
        for grant in find_unasked_network_openings(scene, pods, direction, stranger):
            open_to.setdefault(_build_network_leak_key(scene, pods, direction, grant), []).append(
                (stranger, grant)
            )
    for found in open_to.values():
        titles = list(dict.fromkeys(stranger.title for stranger, _ in found))
        if len(titles) == len(each):
            titles = [scene.others.title]
        for title in titles:
            for _, grant in found:
                _find_or_add_leak(scene, pods, direction, grant, leaks).add(pods.title, title, grant.ports)


def _collect_network_leaks_to_addresses(
    scene: Scene, pods: PodGroup, direction: Direction, leaks: dict[Key, Leak]
) -> None:
    for rest, grant in find_unasked_network_addresses(scene, pods, direction):
        for addresses, ports in rest[:MOST]:
            _find_or_add_leak(scene, pods, direction, grant, leaks).add(pods.title, str(addresses), ports)


def find_unasked_network_addresses(
    scene: Scene, pods: PodGroup, direction: Direction
) -> Iterator[tuple[Region, Grant]]:
    """Yield open addresses that are neither declared nor the cluster's DNS; for ingress, none are declared.

    If workers are on their node's network, the nodes' addresses belong to the run.
    """
    declared = (*scene.declared, *scene.dns_region) if direction == "egress" else ()
    declared = (*declared, *scene.nodes(direction))
    for addresses, grant in find_network_address_grants(scene.own, direction, pods, sure=False):
        if rest := subtract_network_region(((addresses, grant.ports),), declared):
            yield rest, grant


def _build_network_leak_key(scene: Scene, pods: PodGroup, direction: Direction, grant: Grant) -> Key:
    if grant.policy is None or grant.rule is None:
        own = [one.index for one in scene.own if one.index >= 0 and pods.labels.always(one.selects)]
        return (own[0] if own else scene.train_job, direction, "", -1)
    index = grant.policy.index
    return (index if index >= 0 else scene.train_job, direction, grant.policy.name, grant.rule.at)


def _find_or_add_leak(
    scene: Scene, pods: PodGroup, direction: Direction, grant: Grant, leaks: dict[Key, Leak]
) -> Leak:
    return leaks.setdefault(_build_network_leak_key(scene, pods, direction, grant), Leak())


def _report_network_leak(key: Key, leak: Leak, scene: Scene) -> Problem:
    index, direction, name, rule = key
    verb = "accept connections from" if direction == "ingress" else "can connect to"
    shown = ", ".join(leak.outsiders[:MOST])
    if len(leak.outsiders) > MOST:
        shown += f" and {len(leak.outsiders) - MOST} more"
    path: tuple[PathStep, ...] = ()
    if not name:
        cause = f"no NetworkPolicy closes {direction} of these pods"
        fix = f"Add {direction.capitalize()} to policyTypes of a policy that selects them."
        path = ("spec", "policyTypes") if index != scene.train_job else ()
    else:
        peers = _describe_network_rule_peers(scene, key)
        cause = f"{direction} rule {rule + 1} of NetworkPolicy '{name}' opens it{peers}"
        fix = "Narrow that rule to pods of the run" + (
            ", the cluster's DNS or declared egress." if direction == "egress" else "."
        )
        path = ("spec", direction, rule) if index != scene.train_job else ()
    subjects = " and ".join(leak.subjects)
    return Problem(
        path, f"{subjects} {verb} {shown} on {leak.ports}: {cause}", fix, NETWORK_OPEN, field="posture"
    )


def _describe_network_rule_peers(scene: Scene, key: Key) -> str:
    """Describe the pods that a rule names, if it restricts them."""
    index, direction, name, at = key
    for one in scene.own:
        rules = one.rules(direction) or ()
        if one.name != name or (one.index >= 0) != (index != scene.train_job) or at >= len(rules):
            continue
        words = [words for peer in rules[at].peers or () if (words := _describe_policy_peer(peer))]
        return f" ({'; '.join(words)})" if words else ""
    return ""


def _describe_policy_peer(peer: PolicyPeer) -> str:
    pods = format_label_selector(peer.pods)
    homes = format_label_selector(peer.namespaces or {})
    parts = [f"pods with {pods}" if pods else "", f"namespaces with {homes}" if homes else ""]
    return " in ".join(part for part in parts if part)


def _check_network_posture_inside_run(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Report open ports inside the run that a narrow posture keeps closed, once for the run."""
    found: list[str] = []
    blamed: tuple[NetworkPolicy, Direction, int] | None = None
    for source, one, target, two in scene.pairs():
        extra = find_reachable_ports(scene.policies, one, two, sure=False) - scene.permitted(source, target)
        if not extra:
            continue
        found.append(f"{one.title} -> {two.title} on {extra}")
        blamed = blamed or _find_opening_network_rule(scene, one, two, extra)
    if not found:
        return
    posture = scene.run.unit.job.posture
    index, cause = scene.train_job, "no NetworkPolicy closes it"
    path: tuple[PathStep, ...] = ()
    if blamed:
        policy, direction, rule = blamed
        cause = f"{direction} rule {rule + 1} of NetworkPolicy '{policy.name}' opens it"
        if policy.index >= 0:
            index, path = policy.index, ("spec", direction, rule)
    shown = "; ".join(found[:MOST]) + (f" and {len(found) - MOST} more" if len(found) > MOST else "")
    message = (
        f"posture {posture} opens TCP 1024-65535, and SSH only from launcher to workers, but {shown}: {cause}"
    )
    help = "Take these ports out of the rule, or set posture: default."
    yield index, Problem(path, message, help, NETWORK_OPEN, field="posture")


def _find_opening_network_rule(
    scene: Scene, one: PodGroup, two: PodGroup, extra: Ports
) -> tuple[NetworkPolicy, Direction, int] | None:
    """Return the first rule that opens the ports, a rule of the run before one of the cluster."""
    found = []
    for direction, subject, other in (("ingress", two, one), ("egress", one, two)):
        for grant in find_network_grants(scene.own, direction, subject, other, sure=False):  # type: ignore[arg-type]
            if grant.policy and grant.rule and grant.ports & extra:
                found.append((grant.policy, direction, grant.rule.at))
    found.sort(key=lambda item: item[0].index < 0)
    return found[0] if found else None  # type: ignore[return-value]
