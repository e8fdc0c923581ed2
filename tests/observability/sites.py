"""Sites to render alerts and dashboards for: newest and oldest versions, without GPUs, without Kueue."""

from __future__ import annotations

from dataclasses import replace

from gangplan.model.job import DnsService, Platform
from gangplan.model.quantity import parse_quantity
from gangplan.model.site import FlavorQuota, Monitor, QueuePreemption, QuotaAmount, Site, SiteQueue
from gangplan.model.version import parse_version

RESOURCES = (("cpu", "512"), ("memory", "4096Gi"), ("nvidia.com/gpu", "32"))
DNS = DnsService("kube-system", (("k8s-app", "kube-dns"),), (53,))
MONITOR = Monitor("monitoring", (("release", "prometheus"),), (("grafana_dashboard", "1"),), 1800)


def platform(kueue: str | None, trainer: str) -> Platform:
    """Return a cluster at some versions."""
    return Platform(
        cluster="lab",
        environment="prod",
        region="eu",
        kubernetes=parse_version("1.34.4"),
        trainer=parse_version(trainer),
        jobset=parse_version("0.12.0"),
        kueue=parse_version(kueue) if kueue else None,
        openshift=None,
        domain="cluster.local",
        dns=DNS,
        gang="kueue" if kueue else "none",
    )


def queue(team: str) -> SiteQueue:
    """Return the queue of a team with 32 GPUs."""
    quota = FlavorQuota(
        "a100", tuple(QuotaAmount(name, parse_quantity(amount)) for name, amount in RESOURCES)
    )
    preempt = QueuePreemption("LowerPriority", "Any", "Never")
    return SiteQueue(
        f"{team}-queue", team, f"ns-{team}", "gpu", "training", parse_quantity("1"), (quota,), preempt
    )


NEW = Site(
    "overlays/lab/cluster.yaml",
    platform("0.19.2", "2.3.0"),
    ("low", "normal", "high"),
    covered=tuple(name for name, _ in RESOURCES),
    queues=(queue("team-cv"), queue("team-nlp")),
    monitor=MONITOR,
)
MPIJOBS = replace(NEW, platform=replace(NEW.platform, mpi_operator=parse_version("0.8.2")))
SITES = {
    "new": NEW,
    "mpijobs": MPIJOBS,
    "old": replace(NEW, platform=platform("0.15.2", "2.1.0")),
    "cpu": replace(NEW, covered=("cpu", "memory")),
    "bare": replace(NEW, platform=platform(None, "2.3.0"), covered=(), queues=()),
}
