"""Limits of what a spec may ask for: counts, timeouts, labels, priorities, endpoints and posture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangplan.findings import Location
from gangplan.model.duration import format_duration
from gangplan.model.frameworks import MPI_FRAMEWORKS
from gangplan.model.image import PulledImage
from gangplan.model.job import Egress, Origin, Posture
from gangplan.model.profiles import (
    DEFAULT_LOG_RETENTION_S,
    DEFAULT_POSTURE,
    EXTENDED_TIMEOUT_S,
    LEAST_GRACE_S,
    LEAST_LOG_RETENTION_S,
    MANY_WORKERS,
    MOST_GRACE_S,
    PLAIN_TIMEOUT_S,
    USUAL_GPUS,
)
from gangplan.resolve.backstop import list_allowed_priorities
from gangplan.resolve.context import JobResolution
from gangplan.resolve.grants import POSTURES, build_weak_posture_finding
from gangplan.resolve.proxy import INTERNET_ENDPOINT, resolve_proxy_egress
from gangplan.rules.grants import LABEL_INJECTS
from gangplan.rules.recipes import GRACE_PERIOD, LOG_RETENTION
from gangplan.rules.security import LABEL_RESERVED
from gangplan.rules.specs import (
    EGRESS_INTERNET,
    EGRESS_UNKNOWN,
    GPUS_UNUSUAL,
    PRIORITY_NOT_ALLOWED,
    PRIORITY_UNKNOWN,
    TIMEOUT_NOT_EXTENDED,
    TIMEOUT_OVER_LIMIT,
    WORKERS_MANY,
    WORKERS_ONE,
    WORKERS_OVER_LIMIT,
)
from gangplan.spec.declare import suggest_known_or_new

# Prefixes, and everything below them: controllers find, queue, isolate and prune objects by such labels.
RESERVED_LABEL_PREFIXES = (
    *(
        "gangplan.dev",
        "kubernetes.io",
        "k8s.io",
        "x-k8s.io",
        "kubeflow.org",
        "openshift.io",
        "argoproj.io",
        "istio.io",
    ),
    *("fluxcd.io", "volcano.sh"),
)
# Labels without a prefix that controllers own. The API server refuses a Job whose pods have another value of
# the first two (ValidateGeneratedSelector, kubernetes v1.34 pkg/apis/batch/validation); by the others,
# Deployments, DaemonSets and StatefulSets find their pods.
RESERVED_PLAIN_LABELS = frozenset(
    (
        *("job-name", "controller-uid", "pod-template-hash"),
        *("controller-revision-hash", "pod-template-generation"),
    )
)
# Prefixes, and a label without one, that webhooks read on pods: they inject cloud identities, secrets or
# containers. Azure AD workload and pod identity, EKS Pod Identity and IRSA, GKE; Vault's agent, Bank-Vaults,
# External Secrets, SPIRE; Linkerd, Consul, Dapr, App Mesh, Datadog, OpenTelemetry, Dynatrace.
INJECTING = (
    *("azure.workload.identity", "aadpodidbinding", "amazonaws.com", "iam.gke.io", "spiffe.io", "spire.io"),
    *("vault.hashicorp.com", "consul.hashicorp.com", "banzaicloud.io", "external-secrets.io"),
    *("linkerd.io", "dapr.io", "appmesh.k8s.aws", "datadoghq.com", "opentelemetry.io", "dynatrace.com"),
)
# Prefixes of labels that make policy engines ignore a pod, or network plugins attach another network.
EXEMPTING = (
    *(
        "kyverno.io",
        "gatekeeper.sh",
        "stackrox.io",
        "sigstore.dev",
        "projectcalico.org",
        "cilium.io",
        "ovn.org",
    ),
    *("cncf.io",),
)


def check_counts_against_cluster_limits(
    context: JobResolution, workers: int, gpus: int, slots: int, image: PulledImage | None
) -> None:
    """Check workers and GPUs against the cluster's limits and its nodes."""
    limit, cluster = context.cluster.spec.limits.workers, context.cluster.name
    where = context.origin_of("workers", ("workers",))
    if workers > limit:
        context.report(
            WORKERS_OVER_LIMIT,
            where,
            f"{workers} workers, but cluster {cluster} allows {limit} per run",
            f"Use at most {limit} workers, or ask the cluster's owner.",
        )
    elif workers > MANY_WORKERS:
        context.report(
            WORKERS_MANY,
            where,
            f"{workers} workers: start-up and network load grow with every worker above {MANY_WORKERS}",
            "Prefer more GPUs per worker where nodes have them.",
        )
    launcher = context.spec.spec.launcher
    is_parallel = max(gpus, slots) > 1 and image is not None and image.framework not in MPI_FRAMEWORKS
    runs_ranks = launcher and launcher.runs_ranks  # needs two workers, reported elsewhere
    if workers == 1 and not is_parallel and not runs_ranks:
        context.report(
            WORKERS_ONE, where, "one worker: nothing is distributed", "Raise workers, or ignore this."
        )
    _check_gpus_left_idle_on_pools(context, gpus)


def _check_gpus_left_idle_on_pools(context: JobResolution, gpus: int) -> None:
    """Report a number of GPUs that leaves some idle on every kind of node.

    Not for MIG slices, which the owner cuts in any number; more GPUs than a node has are reported when the
    pool is chosen.
    """
    sizes = {pool.gpu.count for pool in context.cluster.spec.node_pools.values() if pool.gpu} or {8}
    is_mig = context.spec.spec.gpu is not None and context.spec.spec.gpu.mig is not None
    if gpus in USUAL_GPUS or is_mig or gpus > max(sizes) or any(size % gpus == 0 for size in sizes):
        return
    size = min(one for one in sizes if one >= gpus)
    fitting = [str(number) for number in range(1, size + 1) if size % number == 0]
    context.report(
        GPUS_UNUSUAL,
        context.origin_of("gpus", ("gpus",)),
        f"{gpus} GPUs per worker leave {size % gpus} of the {size} GPUs of a node idle",
        f"Use {', '.join(fitting[:-1])} or {fitting[-1]}.",
    )


def check_timeout_against_team_and_cluster(context: JobResolution, timeout_s: int) -> None:
    """Check the timeout: 24 hours, with extendedTimeout seven days, never above the limit of the cluster or
    that of the team there."""
    spec, where = context.spec.spec, context.origin_of("timeout", ("timeout",))
    most_s, who, stated = _find_longest_allowed_timeout(context)
    by_profile = context.origins["timeout"].layer.startswith("profile")
    if timeout_s > most_s:
        most = format_duration(most_s)
        context.report(
            TIMEOUT_OVER_LIMIT,
            where,
            f"timeout is {format_duration(timeout_s)}, but {who} {most}",
            f"Write timeout: {most} or less, and save checkpoints{stated}.",
        )
    elif timeout_s > PLAIN_TIMEOUT_S and not spec.extended_timeout and not by_profile:
        context.report(
            TIMEOUT_NOT_EXTENDED,
            where,
            f"timeout is {format_duration(timeout_s)}, longer than 24h",
            "Add extendedTimeout: true.",
        )


def _find_longest_allowed_timeout(context: JobResolution) -> tuple[int, str, str]:
    """Return the longest timeout in seconds, who allows it, and where a limit of the team is written."""
    cluster, team = context.cluster, context.team.name
    most_s = min(cluster.spec.limits.timeout_hours * 3600, EXTENDED_TIMEOUT_S)
    queue = cluster.spec.teams.get(team)
    if queue is None or queue.timeout_hours is None or queue.timeout_hours * 3600 >= most_s:
        return most_s, f"cluster {cluster.name} allows", ""
    place = cluster.document.where(("teams", team, "timeoutHours"))
    return (
        queue.timeout_hours * 3600,
        f"cluster {cluster.name} allows team {team}",
        f"; or ask the cluster's owner to raise timeoutHours ({place.file}:{place.line})",
    )


def check_reserved_labels_in_spec(context: JobResolution) -> None:
    """Check that the spec sets no labels that controllers find, queue and count runs by."""
    for key in context.spec.spec.labels:
        prefix, slash, name = key.rpartition("/")
        where = context.where("labels", key, key=True)
        if slash and _matches_label_prefix(prefix, RESERVED_LABEL_PREFIXES):
            context.report(
                LABEL_RESERVED,
                where,
                f"labels of {prefix} belong to the platform: a run with '{key}' could be mistaken for something else",
                "Remove it; queue: selects a queue of the team other than its first."
                if name == "queue-name"
                else f"Use a prefix of your own, such as example.com/{name}.",
            )
        elif key in RESERVED_PLAIN_LABELS:
            context.report(
                LABEL_RESERVED,
                where,
                f"controllers find their pods by the label '{key}': with it, none of the run's pods would start",
                f"Use a prefix of your own, such as example.com/{name}.",
            )
        elif _matches_label_prefix(prefix or key, (*INJECTING, *EXEMPTING)):
            what = (
                "gives a pod an identity, secrets or another container"
                if _matches_label_prefix(prefix or key, INJECTING)
                else "exempts a pod from policies or networks"
            )
            context.report(
                LABEL_INJECTS,
                where,
                f"the label '{key}' {what}: only the platform may set it",
                f"Remove it; the platform can add it with a patch in overlays/{context.cluster.name}/kustomization.yaml.",
            )


def _matches_label_prefix(prefix: str, owners: Sequence[str]) -> bool:
    """Return whether the prefix of a label is one of these, or below one."""
    return any(prefix == one or prefix.endswith(f".{one}") for one in owners)


def check_requested_grace_period(context: JobResolution, grace_s: int) -> None:
    """Check the grace period, between 30 seconds and an hour.

    Less is too short to save a checkpoint; more keeps the GPUs from the next run.
    """
    if LEAST_GRACE_S <= grace_s <= MOST_GRACE_S:
        return
    least, most = format_duration(LEAST_GRACE_S), format_duration(MOST_GRACE_S)
    context.report(
        GRACE_PERIOD,
        context.origin_of("gracePeriod", ("gracePeriod",)),
        f"gracePeriod is {format_duration(grace_s)}; it must be between {least} and {most}",
        f"Write gracePeriod: {least if grace_s < LEAST_GRACE_S else most}.",
    )


def resolve_log_retention(context: JobResolution) -> int:
    """Return how long logs should stay, in seconds; report less than a day, and more than the cluster keeps.

    The built-in week is shorter where the cluster keeps logs for less.
    """
    most_s = context.cluster.spec.retention.logs
    built_in = max(min(DEFAULT_LOG_RETENTION_S, most_s or DEFAULT_LOG_RETENTION_S), LEAST_LOG_RETENTION_S)
    chosen_s: int = context.choose("log_retention", built_in)
    least = format_duration(LEAST_LOG_RETENTION_S)
    if chosen_s < LEAST_LOG_RETENTION_S:
        why, help = f"logs of failures must stay for {least} or more", f"Write logRetention: {least} or more."
    elif most_s is not None and chosen_s > most_s:
        place, most = context.cluster.document.where(("retention", "logs")), format_duration(most_s)
        why = f"cluster {context.cluster.name} keeps logs for {most}"
        help = f"Write logRetention: {most} or less; {place.file}:{place.line} has the limit."
    else:
        return chosen_s
    context.report(
        LOG_RETENTION,
        context.origin_of("logRetention", ("logRetention",)),
        f"logRetention is {format_duration(chosen_s)}, but {why}",
        help,
    )
    return chosen_s


def check_priority_against_team_and_cluster(context: JobResolution, priority: str) -> None:
    """Check that the priority exists on the cluster, and that the team's runs may have it."""
    spec = context.cluster.spec
    allowed = spec.limits.priorities
    if priority not in allowed:
        context.report(
            PRIORITY_UNKNOWN,
            context.origin_of("priority", ("priority",)),
            f"priority '{priority}' does not exist on cluster {context.cluster.name}",
            f"Use one of: {', '.join(allowed)}.",
        )
        return
    team = spec.teams.get(context.team.name)
    if team is not None and priority not in list_allowed_priorities(spec, team):
        context.report(
            PRIORITY_NOT_ALLOWED,
            context.origin_of("priority", ("priority",)),
            f"runs of team {context.team.name} may not have priority '{priority}' on cluster {context.cluster.name}",
            f"Use {' or '.join(list_allowed_priorities(spec, team))}, or ask the cluster's owner.",
        )


def resolve_egress(
    context: JobResolution, needed: Mapping[str, Location], posture: str
) -> tuple[Egress, ...]:
    """Return the endpoints that the spec, its defaults and its connections need, with their addresses.

    `needed` are those of connections, each with the place that asks for it.
    """
    network, offered = context.spec.spec.network, context.cluster.spec.egress
    asked = network.egress if network and network.egress else context.choose("egress", ())
    proxy = context.cluster.spec.proxy
    behind = resolve_proxy_egress(proxy) if proxy else ()
    rules: list[Egress] = []
    for name in sorted({*asked, *needed}):
        where = _locate_requested_endpoint(context, name, asked) if name in asked else needed[name]
        through = behind if name == INTERNET_ENDPOINT else ()
        if name not in offered and not through:
            message = f"cluster {context.cluster.name} offers no endpoint '{name}'"
            known = {*offered, *([INTERNET_ENDPOINT] if behind else [])}
            help = suggest_known_or_new("endpoint", name, known, context.cluster.document.file)
            context.report(EGRESS_UNKNOWN, where, message, help)
            continue
        if name == INTERNET_ENDPOINT and (posture == "isolated" or context.cluster.spec.air_gapped):
            reason = "the posture is isolated" if posture == "isolated" else "the cluster is air-gapped"
            context.report(
                EGRESS_INTERNET,
                where,
                f"the internet cannot be reached: {reason}",
                "Remove internet from egress, or change the posture.",
            )
            continue
        targets = offered.get(name, ())
        rules.extend(Egress(name, target.cidr, target.excluding, target.ports) for target in targets)
        rules.extend(through)
    return tuple(rules)


def _locate_requested_endpoint(context: JobResolution, name: str, asked: Sequence[str]) -> Location:
    """Return where an endpoint is named: in the spec's, the team's or the cluster's list."""
    index = asked.index(name)
    network = context.spec.spec.network
    if network and network.egress:
        return context.where("network", "egress", index)
    layer = context.origins["egress"].layer
    source = context.team if layer.startswith("team ") else context.cluster
    return source.document.where(("defaults", "egress", index))


def resolve_posture(context: JobResolution) -> Posture:
    """Return the posture of the spec, else of the chain, never weaker than the platform requires."""
    network, granted = context.spec.spec.network, context.cluster.spec.teams.get(context.team.name)
    least: Posture = (granted.posture if granted else None) or "default"
    if network and network.posture:
        where = context.where("network", "posture")
        context.origins["posture"] = Origin("spec", where)
        if POSTURES.index(network.posture) < POSTURES.index(least):
            cluster = context.cluster.name
            context.findings.append(
                build_weak_posture_finding(where, network.posture, least, context.team.name, cluster)
            )
        return network.posture
    posture: Posture = context.choose("posture", DEFAULT_POSTURE)
    if POSTURES.index(posture) >= POSTURES.index(least):
        return posture
    # The team's own weaker default is an error in its file; other defaults are not meant for this team.
    pinned = context.cluster.document.where(("teams", context.team.name, "posture"))
    context.origins["posture"] = Origin(f"cluster {context.cluster.name}", pinned)
    return least
