"""Proxies that containers are told to use, against the policies of their pods: a closed one answers none."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gangplan.rules.platform import PROXY_CLOSED
from gangplan.validate.network.pods import RolePods
from gangplan.validate.network.ranges import Addresses, Ports, Region, region_minus
from gangplan.validate.network.relation import address_grants
from gangplan.validate.network.scene import Scene
from gangplan.validate.problems import Problem, Step

# What curl, Python and Go read, in either spelling.
VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
# The port of a URL without one, by its scheme (curl asks 1080; Python and Go these).
DEFAULT_PORTS = {"http": 80, "https": 443}


def closed_proxies(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """One warning per address of a proxy that some pods are told of and cannot reach.

    A proxy by name is not judged: policies know addresses, and nothing built says which one that is.
    """
    told: set[Region] = set()
    for role in scene.roles:
        for path, name, region in _proxies(role):
            opened = (
                (addresses, grant.ports)
                for pods in role.parts
                for addresses, grant in address_grants(scene.own, "egress", pods, sure=True)
            )
            lacks = region_minus(region, tuple(opened))
            if not lacks or lacks in told:
                continue
            told.add(lacks)
            where = "; ".join(f"{addresses} on {ports}" for addresses, ports in lacks)
            message = (
                f"{name} sends the program's requests to {where}, which no NetworkPolicy of the run opens"
            )
            help = (
                "Add an endpoint to network.egress whose addresses contain the proxy, or remove the variable;"
                " proxy: in the cluster's file sets it for runs that may use it."
            )
            yield scene.runtime, Problem(path, message, help, PROXY_CLOSED)


def _proxies(role: RolePods) -> Iterator[tuple[tuple[Step, ...], str, Region]]:
    """Every variable that names a proxy by address: where it is written, its name, and what it must reach."""
    for at, container in enumerate(role.template["spec"]["containers"]):
        for index, variable in enumerate(container.get("env") or ()):
            region = _region(variable.get("value")) if variable["name"].upper() in VARIABLES else ()
            if region:
                path = (*role.path, "spec", "containers", at, "env", index, "value")
                yield path, variable["name"], region


def _region(url: str | None) -> Region:
    """The address and port of a proxy's URL; empty for a name or what is no URL."""
    text = url or ""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        network = ip_network(ip_address(parts.hostname or ""))
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 80)
    except ValueError:
        return ()
    return ((Addresses.of(network), Ports.of("TCP", port, port)),)
