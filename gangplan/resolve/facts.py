"""Facts of a cluster that policies get as parameters: texts, as a ConfigMap stores them.

A list is joined by commas. An empty text is an unstated fact; policies assume the worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import get_args

from gangplan.model.backend import MPIJOB, RUNTIME_KIND, TRAINJOB
from gangplan.model.fabric import GivenByFabrics
from gangplan.model.identity import METADATA_SERVERS
from gangplan.model.job import Platform
from gangplan.resolve.backstop import list_allowed_priorities
from gangplan.resolve.image import resolve_image_reference
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.resolve.proxy import resolve_proxy_egress
from gangplan.resolve.scans import read_image_scan_results
from gangplan.spec.catalog import Image
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import Regime
from gangplan.spec.namespaces import namespace_of
from gangplan.spec.team import Claim
from gangplan.workspace import TeamFile, Workspace

# Where the cluster's file states a fact; facts of other files are missing here.
STATED_FACTS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in ("region", "location", "environment", "fips", "certifications")},
    **{name: (name,) for name in ("networkEncrypted", "logsRedacted", "registries")},
    "auditDays": ("retention", "audit"),
    "internet": ("egress",),
    "egressRanges": ("egress",),
    "ownPools": ("nodePools",),
    **dict.fromkeys(("fabricCapabilities", "fabricPaths", "fabricWritable"), ("fabrics",)),
    "encryptedClasses": ("storageClasses",),
    "priorities": ("limits", "priorities"),
}
REGIMES: tuple[str, ...] = get_args(Regime)
# Regimes whose packs use the policy storage-encrypted.
ENCRYPTING_REGIMES = frozenset({"hipaa", "gdpr", "fedramp", "pci-dss"})
# Access modes with which many nodes can mount a claim.
SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def resolve_cluster_facts_for_policies(workspace: Workspace, cluster_name: str) -> dict[str, str]:
    """Return every fact of a cluster by the name that pack.yaml files use (`{fact: NAME}`)."""
    cluster = workspace.clusters[cluster_name]
    spec, platform = cluster.spec, resolve_platform_of_cluster_file(cluster)
    teams = {name: workspace.teams[name] for name in sorted(spec.teams) if name in workspace.teams}
    granted = list(_resolve_waiver_facts(workspace, cluster_name, teams))
    return {
        "cluster": cluster_name,
        "deadlineKind": _find_deadline_kind(platform),
        **_list_facts_stated_in_cluster_file(spec),
        **_resolve_storage_facts(spec, teams),
        **_resolve_image_facts(workspace, cluster_name),
        **_resolve_priority_facts(spec, teams),
        "scans": ",".join(
            f"{one.digest}={one.critical}/{one.high}" for one in read_image_scan_results(workspace.root)
        ),
        "waivers": _join_sorted_values(one for _, one in granted),
        "waiverEnds": _join_sorted_values(f"{day}={one}" for day, one in granted),
    }


def _list_facts_stated_in_cluster_file(spec: Cluster) -> dict[str, str]:
    """Return the facts that the cluster's file states directly."""
    audit, egress, given = spec.retention.audit, spec.egress, _collect_fabric_grants(spec)
    return {
        "region": spec.region,
        "location": spec.location,
        "environment": spec.environment,
        "fips": _format_boolean_fact(spec.fips),
        "networkEncrypted": _format_boolean_fact(spec.network_encrypted),
        "logsRedacted": _format_boolean_fact(spec.logs_redacted),
        "certifications": _join_sorted_values(spec.certifications),
        "auditDays": "" if audit is None else str(audit // 86_400),
        "registries": _join_sorted_values(spec.registries),
        "internet": _format_boolean_fact("internet" in egress),
        "egressRanges": _join_sorted_values(
            (
                *(target.cidr for targets in egress.values() for target in targets),
                *(target.cidr for target in (resolve_proxy_egress(spec.proxy) if spec.proxy else ())),
                *given.node_addresses,
                *(spec.dns.addresses if spec.dns else ()),
                *_list_metadata_server_ranges(spec),
            )
        ),
        "fabricCapabilities": _join_sorted_values(given.capabilities),
        "fabricPaths": _join_sorted_values(given.paths),
        "fabricWritable": _join_sorted_values(given.writable),
        "ownPools": _list_on_premises_pool_labels(spec),
    }


def _list_metadata_server_ranges(spec: Cluster) -> tuple[str, ...]:
    """Return the addresses of GKE's metadata server, which policies of runs with an identity open."""
    answers = spec.workload_identity
    return tuple(cidr for cidr, _ in METADATA_SERVERS) if answers and answers.provider == "gcp" else ()


def _collect_fabric_grants(spec: Cluster) -> GivenByFabrics:
    if not spec.fabrics:
        return GivenByFabrics()
    from gangplan.resolve.fabrics import collect_access_of_pool_fabrics  # few clusters have one

    return collect_access_of_pool_fabrics(spec)


def _list_on_premises_pool_labels(spec: Cluster) -> str:
    """Return the labels of each on-premises pool, joined by `&`; empty if the cluster rents no pools.

    A pool of which a rented one has all labels is left out: pods that ask for them may land on either.
    """
    places = {name: pool.location or spec.location for name, pool in spec.node_pools.items()}
    if set(places.values()) != {"on-prem", "cloud"}:
        return ""
    rented = [pool.labels.items() for name, pool in spec.node_pools.items() if places[name] == "cloud"]
    own = [
        pool.labels
        for name, pool in spec.node_pools.items()
        if places[name] == "on-prem" and not any(pool.labels.items() <= labels for labels in rented)
    ]
    # A label that no node has: none of its own pools can be distinguished from the rented ones.
    return (
        _join_sorted_values("&".join(f"{key}={labels[key]}" for key in sorted(labels)) for labels in own)
        or "none=none"
    )


def _find_deadline_kind(platform: Platform) -> str:
    """Return the kind with a run's deadline: TrainJob (TrainingRuntime before Trainer 2.2), or MPIJob."""
    if not platform.has_trainer:
        return MPIJOB.kind
    return TRAINJOB.kind if platform.trainer_line.has_run_deadline else RUNTIME_KIND


def _resolve_storage_facts(spec: Cluster, teams: Mapping[str, TeamFile]) -> dict[str, str]:
    """Return storage classes that encrypt, and encrypted and single-node claims as NAMESPACE/NAME."""
    claims = [
        (
            f"{namespace_of(spec, name, team.spec)}/{claim.claim_name or alias}",
            claim,
            {*team.spec.compliance, *spec.teams[name].compliance},
        )
        for name, team in teams.items()
        for alias, claim in team.spec.claims.items()
    ]
    return {
        "encryptedClasses": _join_sorted_values(
            name for name, one in spec.storage_classes.items() if one.encrypted
        ),
        "encryptedClaims": _join_sorted_values(
            [
                place
                for place, claim, regimes in claims
                if _is_claim_encrypted_on_cluster(claim, regimes, spec)
            ]
            + _list_encrypted_bucket_claims(spec, teams)
        ),
        "claimData": _join_sorted_values(
            f"{place}={claim.data_size}" for place, claim, _ in claims if claim.data_size is not None
        ),
        "retainedData": _list_data_with_retention(spec, teams),
        "singleClaims": _join_sorted_values(place for place, claim, _ in claims if _is_single(claim)),
    }


def _list_encrypted_bucket_claims(spec: Cluster, teams: Mapping[str, TeamFile]) -> list[str]:
    """Return the claims of buckets that the platform declares as encrypted."""
    return [
        f"{namespace_of(spec, name, team.spec)}/{key}"
        for name, team in teams.items()
        for key, volume in spec.teams[name].persistent_volumes.items()
        if volume.encrypted and key in team.spec.connections
    ]


def _list_data_with_retention(spec: Cluster, teams: Mapping[str, TeamFile]) -> str:
    """Return claims and connections that say how long their data is kept, by the names that specs use.

    A bucket that is read through a claim holds the claim's data: either of the two may say it.
    """
    found = []
    for name, team in teams.items():
        claims, connections = team.spec.claims, team.spec.connections
        kept = {key for key, claim in claims.items() if claim.retention is not None}
        kept |= {key for key, one in connections.items() if one.retention is not None or one.claim in kept}
        found += [f"{namespace_of(spec, name, team.spec)}/{key}" for key in kept]
    return _join_sorted_values(found)


def _is_claim_encrypted_on_cluster(claim: Claim, regimes: Set[str], spec: Cluster) -> bool:
    """Return whether a claim is known to be encrypted.

    The team declares it, or the storage class of a claim to be created encrypts, or the whole team falls
    under a regime that requires encryption, so that an unencrypted claim would be refused when created.
    """
    if not claim.size or claim.encrypted:
        return claim.encrypted
    classes = spec.storage_classes
    default = next((name for name, one in classes.items() if one.default), "")
    chosen = classes.get(claim.storage_class or default)
    return (chosen is not None and chosen.encrypted) or bool(ENCRYPTING_REGIMES & regimes)


def _is_single(claim: Claim) -> bool:
    return not SHARED & set(claim.access_modes)


def _resolve_image_facts(workspace: Workspace, cluster_name: str) -> dict[str, str]:
    """Return the catalog's images as the cluster pulls them: all, those for FIPS mode, and by regime."""
    images = workspace.catalog.images if workspace.catalog else {}
    cluster = workspace.clusters[cluster_name].spec
    pulled = [
        (image, build)
        for image in images.values()
        for build in _list_image_builds(image, cluster, cluster_name)
    ]
    found = {
        "catalogImages": _join_sorted_values(build for _, build in pulled),
        "fipsImages": _join_sorted_values(build for image, build in pulled if image.fips),
    }
    for regime in REGIMES:
        found[f"approved-{regime}"] = _join_sorted_values(
            build for image, build in pulled if regime in image.approved
        )
    return found


def _list_image_builds(image: Image, cluster: Cluster, cluster_name: str) -> list[str]:
    """Return an image as the cluster pulls it, and its earlier builds that running runs may still have."""
    today = resolve_image_reference(image, cluster, cluster_name)
    return [today, *(f"{today.partition('@')[0]}@{digest}" for digest in image.earlier)]


def _resolve_priority_facts(spec: Cluster, teams: Mapping[str, TeamFile]) -> dict[str, str]:
    """Return the priority classes of the cluster and, as NAMESPACE=CLASS/CLASS, those of each team."""
    own = {
        namespace_of(spec, name, team.spec): "/".join(
            f"training-{word}" for word in list_allowed_priorities(spec, spec.teams[name])
        )
        for name, team in teams.items()
    }
    return {
        "priorities": ",".join(f"training-{word}" for word in spec.limits.priorities),
        "teamPriorities": _join_sorted_values(f"{namespace}={classes}" for namespace, classes in own.items()),
    }


def _resolve_waiver_facts(
    workspace: Workspace, cluster_name: str, teams: Mapping[str, TeamFile]
) -> Iterator[tuple[str, str]]:
    """Yield the waivers that apply here: the last day, and a regex over NAMESPACE/JOB/RULE (RE2)."""
    for waiver in workspace.waivers:
        scope = waiver.spec.scope
        if scope.cluster and not re.fullmatch(_convert_glob_to_regex(scope.cluster), cluster_name):
            continue
        for name, team in teams.items():
            if scope.team is None or re.fullmatch(_convert_glob_to_regex(scope.team), name):
                job = ".*" if scope.job is None else _convert_glob_to_regex(scope.job)
                for policy in waiver.policies:
                    namespace = namespace_of(workspace.clusters[cluster_name].spec, name, team.spec)
                    yield str(waiver.spec.expires), f"^{re.escape(namespace)}/{job}/{policy}$"


def _convert_glob_to_regex(pattern: str) -> str:
    """Convert a pattern with * and ? to a regular expression."""
    return "".join({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in pattern)


def _format_boolean_fact(value: bool) -> str:
    return "true" if value else "false"


def _join_sorted_values(values: Iterable[str]) -> str:
    return ",".join(sorted(set(values)))
