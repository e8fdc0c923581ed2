"""Addresses in the environment of a run that its network policies do not let it reach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from urllib.parse import SplitResult, urlsplit

from gangplan.model.job import Egress, EnvVar
from gangplan.resolve.context import JobResolution
from gangplan.resolve.proxy import INTERNET_ENDPOINT, parse_literal_address
from gangplan.rules.settings import ENV_UNREACHABLE

# Schemes of URLs that clients connect to; s3:// and hf:// name things, not hosts.
_SCHEMES = frozenset(
    {
        *("http", "https", "ws", "wss", "grpc", "grpcs", "tcp", "ftp"),
        *("postgres", "postgresql", "mysql", "redis", "rediss", "amqp", "amqps", "mongodb", "kafka"),
    }
)
# Variables that make programs use a proxy or stay offline (Hugging Face Hub 1.0, W&B 0.22).
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_OFFLINE = re.compile(r"(?:.*_)?OFFLINE=(?:1|true|yes|on)|WANDB_MODE=(?:offline|disabled)", re.IGNORECASE)
_LOOPBACK = ("localhost", "127.", "::1", "0.0.0.0")  # as users write them, not what listens


def check_spec_env_urls_against_egress(
    context: JobResolution, egress: Sequence[Egress], env: Iterable[EnvVar]
) -> None:
    """Check the URLs that the spec sets in its environment.

    Variables of the cluster and the team are for all of their runs, and some of those reach the URLs. A named
    endpoint is known by its addresses only, so if the run has one, only literal addresses are checked.
    """
    own = {name: value for name, value in context.spec.spec.env.items() if isinstance(value, str)}
    network = context.spec.spec.network
    open_to = {one.name for one in egress} | set(network.egress if network else ())
    known = {one.name.upper(): one.value for one in env}
    if INTERNET_ENDPOINT in open_to or known.keys() & set(_PROXIES):
        return
    if any(_OFFLINE.fullmatch(f"{name}={value}") for name, value in known.items()):
        return
    for name, value in own.items():
        url = _parse_external_url_in_spec(value)
        if url is None or name.upper() in _PROXIES or not _resolve_whether_posture_closes_url(url, egress):
            continue
        may = f"reaches only {', '.join(sorted(open_to))}" if open_to else "reaches no address outside it"
        context.report(
            ENV_UNREACHABLE,
            context.where("env", name),
            f"{name} leads to {url.hostname}, but the run {may}: programs that ask there wait, and give up",
            f"Name the endpoint that leads there in network.egress; {_describe_offered_endpoints(context)}.",
        )


def _parse_external_url_in_spec(value: str) -> SplitResult | None:
    """Return the URL of another host that is known before the run, or None for anything else."""
    try:
        url = urlsplit(value.strip())
        host = url.hostname or ""
    except ValueError:
        return None
    if url.scheme not in _SCHEMES or ("." not in host.strip(".") and ":" not in host):
        return None
    return None if host.startswith(_LOOPBACK) or re.search(r"[\s$(){}]", host) else url


def _resolve_whether_posture_closes_url(url: SplitResult, egress: Sequence[Egress]) -> bool:
    if not egress:
        return True
    literal = parse_literal_address(url.geturl())
    if not literal:
        return False
    address = ip_network(literal)
    return not any(
        _contains_network(ip_network(one.cidr, strict=False), address)
        and not any(_contains_network(ip_network(part, strict=False), address) for part in one.excluding)
        for one in egress
    )


def _contains_network(outer: IPv4Network | IPv6Network, inner: IPv4Network | IPv6Network) -> bool:
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]  # of one version


def _describe_offered_endpoints(context: JobResolution) -> str:
    names, cluster = sorted(context.cluster.spec.egress), context.cluster.name
    offers = f"offers {', '.join(names)}" if names else "offers none yet (egress in its cluster.yaml)"
    return f"cluster {cluster} {offers}"
