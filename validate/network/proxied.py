"""Proxies that containers are configured to use and that the policies of their pods close."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gangplan.rules.platform import PROXY_CLOSED
from gangplan.validate.network.pods import RolePods
from gangplan.validate.network.ranges import Addresses, Ports, Region, subtract_network_region
from gangplan.validate.network.relation import find_network_address_grants
from gangplan.validate.network.scene import Scene
from gangplan.validate.problems import PathStep, Problem

# Variables that curl, Python and Go read, in either case.
PROXY_VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
# The port of a URL without one, by its scheme (curl uses 1080; Python and Go these).
DEFAULT_PORTS = {"http": 80, "https": 443}


def check_proxies_pods_cannot_reach(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Yield one warning per address of a proxy that pods are configured to use and cannot reach.

    A proxy with a host name is not checked: policies have addresses, and no built object says which one the
    name has.
    """
    told: set[Region] = set()
    for role in scene.roles:
        for path, name, region in _find_proxies_pods_must_reach(role):
            opened = (
                (addresses, grant.ports)
                for pods in role.parts
                for addresses, grant in find_network_address_grants(scene.own, "egress", pods, sure=True)
            )
            lacks = subtract_network_region(region, tuple(opened))
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


def _find_proxies_pods_must_reach(role: RolePods) -> Iterator[tuple[tuple[PathStep, ...], str, Region]]:
    """Yield every variable with the address of a proxy: its path, its name, and what the pod must reach."""
    for at, container in enumerate(role.template["spec"]["containers"]):
        for index, variable in enumerate(container.get("env") or ()):
            region = (
                _parse_proxy_address_and_port(variable.get("value"))
                if variable["name"].upper() in PROXY_VARIABLES
                else ()
            )
            if region:
                path = (*role.path, "spec", "containers", at, "env", index, "value")
                yield path, variable["name"], region


def _parse_proxy_address_and_port(url: str | None) -> Region:
    """Return the address and port of a proxy's URL; () for a host name or an invalid URL."""
    text = url or ""
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        network = ip_network(ip_address(parts.hostname or ""))
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 80)
    except ValueError:
        return ()
    return ((Addresses.of(network), Ports.of("TCP", port, port)),)
