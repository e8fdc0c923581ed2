"""The command lines of etcd and of Kubernetes' own servers."""

from __future__ import annotations

from .site import Site

Command = list[str]

SERVICE_RANGE = "10.96.0.0/16"
ISSUER = "https://kubernetes.default.svc"


def etcd(site: Site) -> Command:
    """Return etcd's command; speed matters here, crash safety does not."""
    client = f"http://127.0.0.1:{site.etcd_port}"
    peer = f"http://127.0.0.1:{site.ports.take()}"
    return [
        str(site.executable("etcd")),
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def gates(site: Site) -> Command:
    """Return the flag for the feature gates that a test needs; alpha ones are off otherwise."""
    if not site.gates:
        return []
    return [f"--feature-gates={','.join(f'{name}=true' for name in site.gates)}"]


def api_server(site: Site) -> Command:
    """Return the API server's command: default admission, RBAC, loopback only."""
    pki = site.identity.folder
    return [
        str(site.executable("kubernetes", "kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{site.etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={site.api_port}",
        f"--cert-dir={pki}",
        f"--token-auth-file={pki / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-signing-key-file={site.signing_key}",
        f"--service-account-key-file={site.signing_key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--endpoint-reconciler-type=none",
        "--enable-priority-and-fairness=false",
        # As kubeadm and managed clusters start it; Pod Security says which namespaces may.
        "--allow-privileged=true",
        "--profiling=false",
        *gates(site),
    ]


def controller_manager(site: Site) -> Command:
    """Return the controller manager's command.

    A quota counts objects of a custom kind only after the next discovery of kinds, every 30 seconds upstream,
    and refuses all of them until the resync 5 minutes later; the short period makes that seconds.
    """
    return [
        str(site.executable("kubernetes", "kube-controller-manager")),
        f"--kubeconfig={site.kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        f"--service-account-private-key-file={site.signing_key}",
        f"--root-ca-file={site.identity.certificate}",
        "--resource-quota-sync-period=5s",
        # A starved machine must not make every pod unready: simulated nodes never fail by themselves.
        "--node-monitor-grace-period=1h",
        "--controllers=*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *gates(site),
    ]


def scheduler(site: Site) -> Command:
    """Return the scheduler's command."""
    return [
        str(site.executable("kubernetes", "kube-scheduler")),
        f"--kubeconfig={site.kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        *gates(site),
    ]
