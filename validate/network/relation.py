"""Who may connect to whom: the union of policies in both directions, for all pods and addresses.

Semantics of networking.k8s.io/v1 (Kubernetes v1.34, types.go): policies only add; pods that no policy selects
in a direction are open there; traffic needs egress at its source and ingress at its destination. Rules have
no effect on traffic from a pod's own node (kubelet probes) or from a pod to itself.

There are two views, because labels may be known in part: with `sure`, what is allowed whatever is unknown;
without it, what may be allowed. For fully known pods they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gangplan.records import dataclass
from gangplan.validate.network.labels import (
    ANY_LABELS,
    ANYTHING,
    PartialLabels,
    build_exact_labels,
    build_label_values,
)
from gangplan.validate.network.policy import (
    DIRECTIONS,
    Direction,
    NetworkPolicy,
    PodGroup,
    PolicyPeer,
    TrafficRule,
)
from gangplan.validate.network.ranges import EVERY_ADDRESS, EVERY_PORT, NO_PORT, Addresses, Ports

NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"  # the API server adds it to every namespace
PoliciesByNamespace = Mapping[str, Sequence[NetworkPolicy]]  # by namespace


@dataclass(frozen=True, slots=True)
class Grant:
    """What one rule opens.

    Without a rule, the direction is open because no policy closes it.
    """

    ports: Ports
    policy: NetworkPolicy | None = None
    rule: TrafficRule | None = None


def find_closing_network_policies(
    policies: Sequence[NetworkPolicy], direction: Direction, subject: PodGroup, sure: bool
) -> list[NetworkPolicy]:
    """Return the policies that close a direction of these pods; with `sure` also those that only may."""
    selects = subject.labels.maybe if sure else subject.labels.always
    return [one for one in policies if one.rules(direction) is not None and selects(one.selects)]


def find_network_grants(
    policies: Sequence[NetworkPolicy], direction: Direction, subject: PodGroup, other: PodGroup, sure: bool
) -> Iterator[Grant]:
    """Yield what each rule on the side of `subject` opens towards `other`."""
    if not find_closing_network_policies(policies, direction, subject, sure):
        yield Grant(EVERY_PORT)
        return
    target = subject if direction == "ingress" else other
    selects = subject.labels.always if sure else subject.labels.maybe
    for one in policies:
        rules = one.rules(direction)
        if not rules or not selects(one.selects):
            continue
        for rule in rules:
            if rule.peers is None or any(
                _matches_network_policy_peer(peer, one.namespace, other, sure) for peer in rule.peers
            ):
                ports = _compute_opened_ports(rule, target, sure)
                if ports:
                    yield Grant(ports, one, rule)


def _compute_opened_ports(rule: TrafficRule, target: PodGroup, sure: bool) -> Ports:
    if target.named is not None:
        return rule.opened(target.named)
    return rule.ports if sure else rule.opened_at_most()


def _matches_network_policy_peer(peer: PolicyPeer, namespace: str, other: PodGroup, sure: bool) -> bool:
    if peer.addresses is not None:
        return False
    if peer.namespaces is None:
        if other.namespace != namespace:
            return False
    elif not (other.home.always if sure else other.home.maybe)(peer.namespaces):
        return False
    return (other.labels.always if sure else other.labels.maybe)(peer.pods)


def find_ports_network_policies_allow(
    policies: Sequence[NetworkPolicy], direction: Direction, subject: PodGroup, other: PodGroup, sure: bool
) -> Ports:
    """Return the ports that the policies of `subject` allow in one direction."""
    found = NO_PORT
    for grant in find_network_grants(policies, direction, subject, other, sure):
        found |= grant.ports
    return found


def find_reachable_ports(
    policies: PoliciesByNamespace, source: PodGroup, target: PodGroup, sure: bool = True
) -> Ports:
    """Return the ports on which `source` can open connections to `target`, a different pod."""
    out = find_ports_network_policies_allow(
        policies.get(source.namespace, ()), "egress", source, target, sure
    )
    return (
        out
        & find_ports_network_policies_allow(
            policies.get(target.namespace, ()), "ingress", target, source, sure
        )
        if out
        else out
    )


@dataclass(frozen=True, slots=True)
class Opening:
    """Pods outside the run to which one rule opens: labels of their namespace, own labels, and ports."""

    grant: Grant
    stranger: PodGroup
    home: PartialLabels
    labels: PartialLabels


def find_network_openings(
    policies: Sequence[NetworkPolicy], direction: Direction, subject: PodGroup, stranger: PodGroup
) -> Iterator[Opening]:
    """Yield each part of the outside pods to which the side of `subject` may be open, rule by rule.

    Only this side is checked. The outside pods' own policies do not count: not all of them are known, and
    another policy may open more.
    """
    if not find_closing_network_policies(policies, direction, subject, sure=False):
        yield Opening(Grant(EVERY_PORT), stranger, stranger.home, stranger.labels)
        return
    target = subject if direction == "ingress" else stranger
    for one in policies:
        rules = one.rules(direction)
        if not rules or not subject.labels.maybe(one.selects):
            continue
        for rule in rules:
            grant = Grant(_compute_opened_ports(rule, target, sure=False), one, rule)
            if not grant.ports:
                continue
            for peer in rule.peers or (PolicyPeer({}, {}),):
                if _matches_network_policy_peer(peer, one.namespace, stranger, sure=False):
                    home = stranger.home.narrowed(peer.namespaces or {})
                    yield Opening(grant, stranger, home, stranger.labels.narrowed(peer.pods))


def find_network_address_grants(
    policies: Sequence[NetworkPolicy], direction: Direction, subject: PodGroup, sure: bool
) -> Iterator[tuple[Addresses, Grant]]:
    """Yield what is open towards addresses outside the cluster.

    Named ports have no effect there for egress.
    """
    if not find_closing_network_policies(policies, direction, subject, sure):
        yield EVERY_ADDRESS, Grant(EVERY_PORT)
        return
    selects = subject.labels.always if sure else subject.labels.maybe
    for one in policies:
        rules = one.rules(direction)
        if not rules or not selects(one.selects):
            continue
        for rule in rules:
            ports = rule.ports if direction == "egress" else _compute_opened_ports(rule, subject, sure)
            for addresses in _list_addresses_of_network_rule(rule) if ports else ():
                yield addresses, Grant(ports, one, rule)


def _list_addresses_of_network_rule(rule: TrafficRule) -> Iterator[Addresses]:
    if rule.peers is None:
        yield EVERY_ADDRESS
    for peer in rule.peers or ():
        if peer.addresses is not None:
            yield peer.addresses


def list_pods_outside_run(
    namespace: str, own: str, value: str, homes: Mapping[str, Mapping[str, str]]
) -> list[PodGroup]:
    """Return all pods except those of a namespace with the label `own` = `value`, in parts.

    First the other pods of that namespace, then the pods of each other known namespace (`homes`: name to
    labels), last those of all unknown namespaces.
    """
    found = [build_sibling_group(namespace, build_namespace_labels(namespace, homes), own, value)]
    for name in sorted(homes):
        if name != namespace:
            home = build_namespace_labels(name, homes)
            found.append(PodGroup(f"pods of namespace '{name}'", name, home, ANY_LABELS))
    unknown = PartialLabels({NAMESPACE_NAME_LABEL: ~build_label_values(namespace, *homes)}, ANYTHING)
    found.append(PodGroup("pods of namespaces that belong to no team", "", unknown, ANY_LABELS))
    return found


def build_sibling_group(namespace: str, home: PartialLabels, own: str, value: str) -> PodGroup:
    """Return all pods of a namespace except those with the label `own` = `value`."""
    labels = PartialLabels({own: ~build_label_values(value)}, ANYTHING)
    return PodGroup(f"other pods of namespace '{namespace}'", namespace, home, labels)


def build_pod_group_of_other_namespaces(namespace: str) -> PodGroup:
    """Return one group for all pods of all other namespaces: more than can exist, but quick to check."""
    return PodGroup(
        "pods of other namespaces",
        "",
        PartialLabels({NAMESPACE_NAME_LABEL: ~build_label_values(namespace)}, rest=ANYTHING),
        ANY_LABELS,
    )


def build_namespace_labels(name: str, homes: Mapping[str, Mapping[str, str]]) -> PartialLabels:
    """Return the labels of a namespace; of an unknown one, only the name is known."""
    if name in homes:
        return build_exact_labels({**homes[name], NAMESPACE_NAME_LABEL: name})
    return PartialLabels({NAMESPACE_NAME_LABEL: build_label_values(name)}, ANYTHING)


def find_labels_network_policies_mention(policies: Sequence[NetworkPolicy]) -> Mapping[str, frozenset[str]]:
    """Return every pod label that a selector of these policies uses, with the values that it names."""
    found: dict[str, frozenset[str]] = {}
    for one in policies:
        selectors = [one.selects]
        for direction in DIRECTIONS:
            selectors += [peer.pods for rule in one.rules(direction) or () for peer in rule.peers or ()]
        for asked in selectors:
            for key, wanted in asked.items():
                found[key] = found.get(key, frozenset()) | wanted.listed
    return found
