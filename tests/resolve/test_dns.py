"""The DNS of a cluster file, compared with what is known of the platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import gangplan

CLUSTER = "overlays/lab/cluster.yaml"
_OPENSHIFT = "dns: {{namespace: {0}, labels: {1}, ports: {2}}}\n"
_LABEL = "{dns.operator.openshift.io/daemonset-dns: default}"


@pytest.mark.parametrize(
    ("dns", "column"),
    [
        (("openshift-dns", _LABEL, "[5353]"), None),
        (("openshift-dns", _LABEL, "[53, 5353]"), None),
        (("openshift-dns", _LABEL, "[53]"), "ports"),
        (("openshift-dns", "{k8s-app: kube-dns}", "[5353]"), "labels"),
        (("kube-system", _LABEL, "[5353]"), "namespace"),
        (("kube-system", "{k8s-app: kube-dns}", "[53]"), "namespace"),
    ],
)
def test_dns_that_differs_from_openshifts_is_reported(
    dns: tuple[str, str, str], column: str | None, root: Path
) -> None:
    line = _OPENSHIFT.format(*dns)
    plain = workspaces.CLUSTER + line
    workspaces.write(root, {CLUSTER: plain})
    assert "dns-openshift" not in {one.rule for one in gangplan("validate", "-C", root).findings}
    workspaces.write(root, {CLUSTER: plain.replace('"1.34.4"', '"1.34.4", openshift: "4.21.0"')})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "dns-openshift"]
    if column is None:
        assert found == []
        return
    (one,) = found
    at = line.index(f"{column}: ") + len(column) + 3
    assert one.place == f"{CLUSTER}:{plain.count(chr(10))}:{at}"
    assert one.help.startswith("Remove dns, or write namespace: openshift-dns, ")
