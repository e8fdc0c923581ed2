"""The cluster's HTTP proxy: its address, the runs that can reach it, and their variables.

Only runs whose egress opens the proxy get its variables. For any other run they would turn connections that
its policies allow into ones that they deny: programs that read HTTPS_PROXY use the proxy even for a store
that the run could reach directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from gangplan.model.job import HASH_PLACEHOLDER, Egress, EnvVar, Origins, ValueOrigin
from gangplan.resolve.context import JobResolution
from gangplan.resolve.data_plan import DataPlan
from gangplan.spec.cluster import Proxy

INTERNET_ENDPOINT = "internet"
# The default ports that Go, Python and curl use for a URL without a port, by its scheme.
DEFAULT_PORTS = {"http": 80, "https": 443}


def resolve_proxy_egress(proxy: Proxy) -> tuple[Egress, ...]:
    """Return the addresses of the proxy as network policies need them; empty if only a name is known."""
    ports = [_parse_proxy_port(url) for url in (proxy.http, proxy.https)]
    if proxy.addresses:
        found = {cidr: sorted(set(ports)) for cidr in proxy.addresses}
    else:
        found = {}
        for url, port in zip((proxy.http, proxy.https), ports, strict=True):
            cidr = parse_literal_address(url)
            if not cidr:
                return ()
            found[cidr] = sorted({*found.get(cidr, ()), port})
    return tuple(Egress(INTERNET_ENDPOINT, cidr, (), tuple(opened)) for cidr, opened in found.items())


def parse_literal_address(url: str) -> str:
    """Return the address in a URL as a single-address range; empty for a name."""
    try:
        return str(ip_network(ip_address(urlsplit(url).hostname or "")))
    except ValueError:
        return ""


def add_proxy_env(context: JobResolution, data: DataPlan, egress: Sequence[Egress]) -> None:
    """Set the proxy variables of a run that can reach the proxy; values of any other layer override them."""
    proxy = context.cluster.spec.proxy
    if proxy is None or not may_job_use_proxy(proxy, egress):
        return
    values = {
        "HTTP_PROXY": proxy.http,
        "HTTPS_PROXY": proxy.https,
        "NO_PROXY": ",".join(dict.fromkeys(_list_no_proxy_targets(context, data, proxy, egress))),
    }
    for name, value in values.items():
        for spelled in (name, name.lower()):
            data.env.setdefault(
                spelled, EnvVar(spelled, value, origins=_list_proxy_env_origins(context, data, name))
            )


def _list_proxy_env_origins(context: JobResolution, data: DataPlan, name: str) -> Origins:
    """Return the origins of a variable; NO_PROXY also has those of stores that are reached directly."""
    field = {"HTTP_PROXY": "http", "HTTPS_PROXY": "https", "NO_PROXY": "noProxy"}[name]
    found = [ValueOrigin("cluster", ("proxy", field))]
    around = [ValueOrigin("spec", ("network", "egress")), ValueOrigin("cluster", ("egress",))]
    if name == "NO_PROXY":
        found.append(ValueOrigin("cluster", ("domain",)))
        for store in _list_reached_connections(context, data):
            around += [ValueOrigin("team", ("connections", store, part)) for part in ("endpoint", "egress")]
        asked = (("data",), ("checkpoint", "to"), ("steps",), ("serviceAccount",))
        around += [ValueOrigin("spec", path) for path in asked]
        around.append(ValueOrigin("cluster", ("workloadIdentity",)))
    return (*found, *(one.aside() for one in around))


def _list_reached_connections(context: JobResolution, data: DataPlan) -> list[str]:
    """Return the connections whose addresses the pods of a run get."""
    fetched = (one.fetch.partition("/")[0] for one in context.spec.spec.steps if one.fetch)
    return [name for name in (data.connection, *fetched) if name in context.team.spec.connections]


def may_job_use_proxy(proxy: Proxy, egress: Sequence[Egress]) -> bool:
    """Return whether a run may reach the proxy or, if its address is unknown, anything at all."""
    targets = resolve_proxy_egress(proxy)
    return bool(egress) and all(
        any(_covers_egress_target(one, target) for one in egress) for target in targets
    )


def _list_no_proxy_targets(
    context: JobResolution, data: DataPlan, proxy: Proxy, egress: Iterable[Egress]
) -> Iterator[str]:
    """Yield what a run reaches without the proxy: its own pods, services, and direct endpoints."""
    job = context.spec.spec.name or context.spec.source.stem
    yield from (
        ".svc",
        f".{context.cluster.spec.domain}",
        f".{job}-{HASH_PLACEHOLDER}",
        "localhost",
        "127.0.0.1",
    )
    yield from proxy.no_proxy
    targets = resolve_proxy_egress(proxy)
    through = {
        one.name for one in egress if any(_covers_egress_target(one, target) for target in targets)
    } | {INTERNET_ENDPOINT}
    for name in _list_reached_connections(context, data):
        connection = context.team.spec.connections[name]
        if connection.endpoint_name not in through:
            yield urlsplit(connection.endpoint or "").hostname or ""
    yield from (one.cidr for one in egress if one.name not in through)


def _covers_egress_target(one: Egress, target: Egress) -> bool:
    """Return whether one opening covers another, with its addresses and ports."""
    whole, part = ip_network(one.cidr), ip_network(target.cidr)
    if whole.version != part.version or not set(target.ports) <= set(one.ports):
        return False
    return part.subnet_of(whole) and not any(part.overlaps(ip_network(out)) for out in one.excluding)  # type: ignore[arg-type]


def _parse_proxy_port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or DEFAULT_PORTS.get(parts.scheme, 80)
