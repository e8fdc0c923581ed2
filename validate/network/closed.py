"""Connections that a run needs and its policies do not allow: one problem per object that causes it."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.records import dataclass
from gangplan.rules.network import NETWORK_UNREACHABLE
from gangplan.validate.network.policy import Direction, NetworkPolicy, PodGroup
from gangplan.validate.network.ranges import Ports, Region, subtract_network_region
from gangplan.validate.network.relation import (
    find_closing_network_policies,
    find_network_address_grants,
    find_ports_network_policies_allow,
)
from gangplan.validate.network.scene import NeededConnection, Scene
from gangplan.validate.problems import Problem

MOST = 4


@dataclass(frozen=True, slots=True)
class UnmetNeed:
    """A connection that a run needs and does not have.

    It has the words, the direction that is closed, the policies that close it, and the fix.
    """

    words: str
    direction: Direction
    closers: tuple[NetworkPolicy, ...]
    fix: str


def check_connections_under_network_policies(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Report every connection that the run needs and does not have."""
    by_place: dict[int, list[UnmetNeed]] = {}
    outside = (
        *_find_unreachable_addresses(scene, scene.declared, "declared egress"),
        *_find_unreachable_addresses(scene, scene.dns_region, "DNS"),
        *_find_unreachable_addresses(scene, scene.nodes("egress"), "workers in their node's network"),
        *_find_unreachable_addresses(
            scene, scene.nodes("ingress"), "workers in their node's network", "ingress"
        ),
    )
    for missing in (*_find_unmet_pod_connections(scene), *outside):
        own = [one.index for one in missing.closers if one.index >= 0]
        by_place.setdefault(own[0] if own else scene.train_job, []).append(missing)
    for index, found in sorted(by_place.items()):
        yield index, _report_unmet_connection_needs(found, scene, index)


def _report_unmet_connection_needs(found: list[UnmetNeed], scene: Scene, index: int) -> Problem:
    shown = "; ".join(dict.fromkeys(one.words for one in found[:MOST]))
    more = f" and {len(found) - MOST} more connections" if len(found) > MOST else ""
    names = list(dict.fromkeys(f"'{one.name}'" for missing in found for one in missing.closers))
    closers = f"NetworkPolicy {', '.join(names)} " + ("closes" if len(names) == 1 else "close")
    helps = list(dict.fromkeys(one.fix for one in found))
    return Problem(
        ("spec", found[0].direction) if index != scene.train_job else (),
        f"{shown}{more}: {closers} this, and no policy opens it",
        f"Open {'; '.join(helps[:2])}{', and so on' if len(helps) > 2 else ''}.",
        NETWORK_UNREACHABLE,
        field="posture",
    )


def _find_unmet_pod_connections(scene: Scene) -> Iterator[UnmetNeed]:
    for need in scene.needs():
        out = find_ports_network_policies_allow(
            scene.policies.get(need.source.namespace, ()), "egress", need.source, need.target, sure=True
        )
        into = find_ports_network_policies_allow(
            scene.policies.get(need.target.namespace, ()), "ingress", need.target, need.source, sure=True
        )
        if lacks := need.ports - out:
            yield _build_need_closed_by_network_policy(scene, need, "egress", lacks)
        elif lacks := need.ports - into:
            yield _build_need_closed_by_network_policy(scene, need, "ingress", lacks)


def _build_need_closed_by_network_policy(
    scene: Scene, need: NeededConnection, direction: Direction, lacks: Ports
) -> UnmetNeed:
    subject, other = need.source, need.target
    if direction == "ingress":
        subject, other = other, subject
    closers = _list_closing_network_policies(scene, direction, subject)
    way = "to" if direction == "egress" else "from"
    fix = f"{direction} of the {subject.title} on {lacks} {way} {_describe_peer_pods(scene, other)}"
    words = f"{need.source.title} cannot reach {need.target.title} on {lacks} ({need.why})"
    return UnmetNeed(words, direction, closers, fix)


def _list_closing_network_policies(
    scene: Scene, direction: Direction, subject: PodGroup
) -> tuple[NetworkPolicy, ...]:
    """Return the policies that close a direction, the run's own first."""
    found = find_closing_network_policies(
        scene.policies.get(subject.namespace, ()), direction, subject, sure=True
    )
    return tuple(sorted(found, key=lambda one: one.index < 0))


def _describe_peer_pods(scene: Scene, pods: PodGroup) -> str:
    if pods is scene.dns:
        dns = scene.run.unit.job.platform.dns
        labels = ", ".join(f"{key}: {value}" for key, value in dns.labels)
        return f"pods with {labels} in namespace '{dns.namespace}'"
    if pods.namespace == scene.namespace:
        return f"pods with {scene.run_label}: {scene.name}"
    return pods.title


def _find_unreachable_addresses(
    scene: Scene, declared: Region, why: str, direction: Direction = "egress"
) -> Iterator[UnmetNeed]:
    """Yield addresses that the run cannot reach, or be reached from, once for all pods that lack the same."""
    told: dict[Region, list[PodGroup]] = {}
    for pods in scene.pods if declared else ():
        opened = tuple(
            (addresses, grant.ports)
            for addresses, grant in find_network_address_grants(scene.own, direction, pods, sure=True)
        )
        if lacks := subtract_network_region(declared, opened):
            told.setdefault(lacks, []).append(pods)
    for lacks, sources in told.items():
        where = "; ".join(f"{addresses} on {ports}" for addresses, ports in lacks[:MOST])
        closers = _list_closing_network_policies(scene, direction, sources[0])
        titles = " and ".join(pods.title for pods in sources)
        is_out = direction == "egress"
        verb = "cannot reach" if is_out else "cannot be reached from"
        fix = f"{direction} {'to' if is_out else 'from'} {where}"
        yield UnmetNeed(f"{titles} {verb} {where} ({why})", direction, closers, fix)
