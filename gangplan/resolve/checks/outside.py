"""What lies outside the cluster: can network policies name it?"""

from __future__ import annotations

from gangplan.resolve.checks.notes import Notes
from gangplan.resolve.proxy import literal_address, proxy_egress
from gangplan.rules.platform import PROXY_ADDRESS_UNKNOWN


def check(notes: Notes) -> None:
    """A proxy that is known by name only: policies open addresses."""
    proxy = notes.spec.proxy
    if proxy is None or proxy_egress(proxy):
        return
    field, url = next(
        (field, url)
        for field, url in (("http", proxy.http), ("https", proxy.https))
        if not literal_address(url)
    )
    notes.report(
        PROXY_ADDRESS_UNKNOWN,
        ("proxy", field),
        f"network policies know addresses, not names: no run's policies open {url} for it",
        "Add addresses: [CIDR] with the proxy's own addresses to proxy, such as 10.1.2.3/32.",
    )
