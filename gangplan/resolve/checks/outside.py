"""Checks of what runs reach outside: DNS, the proxy and endpoints."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.platform import OPENSHIFT_DNS
from gangplan.resolve.proxy import parse_literal_address, resolve_proxy_egress
from gangplan.rules.network import EGRESS_METADATA
from gangplan.rules.platform import DNS_OPENSHIFT, PROXY_ADDRESS_UNKNOWN

# Where the metadata services of AWS, Azure, Google Cloud and OpenStack answer, and those of AWS by IPv6; on
# port 80 (AWS EC2 user guide, "Instance metadata"; Azure, "Instance Metadata Service").
_METADATA = ("169.254.169.254", "fd00:ec2::254")
_METADATA_PORT = 80


def check_cluster_file_outside(notes: ClusterCheck) -> None:
    """Check DNS, the proxy and endpoints."""
    _check_cluster_file_dns(notes)
    _check_cluster_file_proxy(notes)
    _check_cluster_file_metadata_service(notes)


def _check_cluster_file_metadata_service(notes: ClusterCheck) -> None:
    """Check that no endpoint contains the address at which a cloud gives pods the identity of their node."""
    for name, targets in notes.spec.egress.items():
        for place, target in enumerate(targets):
            if _METADATA_PORT not in target.ports:
                continue
            for address in _METADATA:
                inside = [one for one in (target.cidr, *target.excluding) if _is_inside(address, one)]
                if inside == [target.cidr]:
                    full = f"{address}/{128 if ':' in address else 32}"
                    notes.report(
                        EGRESS_METADATA,
                        ("egress", name, place, "cidr"),
                        f"endpoint '{name}' leads to {address}, where clouds give pods the identity of their node",
                        f"Remove {full}; runs that need an identity get one of their own: workloadIdentity."
                        if target.cidr == full
                        else f"Add excluding: [{full}] to the entry.",
                    )


def _is_inside(address: str, cidr: str) -> bool:
    import ipaddress  # only imported when a cluster file lists addresses

    one, network = ipaddress.ip_address(address), ipaddress.ip_network(cidr)
    return one.version == network.version and one in network


def _check_cluster_file_dns(notes: ClusterCheck) -> None:
    """Check that DNS on OpenShift is stated as its operator installs it."""
    stated = notes.spec.dns
    if stated is None or not notes.spec.versions.openshift:
        return
    known = OPENSHIFT_DNS
    labels = ", ".join(f"{key}: {value}" for key, value in known.labels)
    for field, is_there, right in (
        ("namespace", stated.namespace == known.namespace, f"they are in namespace {known.namespace}"),
        ("labels", stated.labels.items() <= dict(known.labels).items(), f"their label is {labels}"),
        ("ports", set(known.ports) <= set(stated.ports), f"they listen on {known.ports[0]}"),
    ):
        if not is_there:
            notes.report(
                DNS_OPENSHIFT,
                ("dns", field),
                f"this does not match OpenShift's DNS pods: {right}",
                f"Remove dns, or write namespace: {known.namespace}, labels: {{{labels}}}, ports: {list(known.ports)}.",
            )
            return


def _check_cluster_file_proxy(notes: ClusterCheck) -> None:
    """Check that the proxy has a known address: policies open addresses, not names."""
    proxy = notes.spec.proxy
    if proxy is None or resolve_proxy_egress(proxy):
        return
    field, url = next(
        (field, url)
        for field, url in (("http", proxy.http), ("https", proxy.https))
        if not parse_literal_address(url)
    )
    notes.report(
        PROXY_ADDRESS_UNKNOWN,
        ("proxy", field),
        f"network policies know addresses, not names: no run's policies open {url} for it",
        "Add addresses: [CIDR] with the proxy's own addresses to proxy, such as 10.1.2.3/32.",
    )
