"""Checks of DNS and the proxy: network policies must be able to select them."""

from __future__ import annotations

from gangplan.resolve.checks.notes import ClusterCheck
from gangplan.resolve.platform import OPENSHIFT_DNS
from gangplan.resolve.proxy import parse_literal_address, resolve_proxy_egress
from gangplan.rules.platform import DNS_OPENSHIFT, PROXY_ADDRESS_UNKNOWN


def check_cluster_file_dns_and_proxy(notes: ClusterCheck) -> None:
    """Check DNS and the proxy."""
    _check_cluster_file_dns(notes)
    _check_cluster_file_proxy(notes)


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
