"""Fields of a tenant's objects: where each comes from (generators of TENANT_GENERATORS)."""

from __future__ import annotations

from functools import partial

from gangplan.model.backend import BACKENDS
from gangplan.trace.account import ACCOUNT
from gangplan.trace.bindings import binding_name, grant, namespace, role, subject, subject_kind, tenant_of
from gangplan.trace.cause import Cause, Path
from gangplan.trace.files import own
from gangplan.trace.local_queue import queue_name
from gangplan.trace.metadata import waived
from gangplan.trace.network import dns_causes
from gangplan.trace.persistent import of_volume, volume
from gangplan.trace.place import StandingPlace
from gangplan.trace.quotas import bound_causes, quota_facts
from gangplan.trace.table import Row, Table
from gangplan.waivers import Subject

PREFIX = "gangplan.dev/"
COUNTS = {"persistentvolumeclaims": "claims", "pods": "pods"}
COUNTS |= {f"count/{made.resource}": "runs" for made in BACKENDS.values()}


def _label(place: StandingPlace, stars: Path) -> list[Cause]:
    key = str(stars[-1])
    if key.startswith(f"{PREFIX}waived-"):
        subject = Subject(place.name, tenant_of(place).team)
        return waived(place.workspace.waivers, key.removeprefix(f"{PREFIX}waived-"), subject)
    if key.startswith(PREFIX):
        return _compliance(place, key.removeprefix(PREFIX))
    return [own("gangplan marks all that it renders")]


def _pod_security(place: StandingPlace, stars: Path) -> list[Cause]:
    """The level that a namespace enforces: restricted unless stated."""
    level = place.cluster("teams", tenant_of(place).team, "podSecurity", "level")
    return [level] if level.is_written else [own(_POD_SECURITY), level.aside()]


_POD_SECURITY = "the namespace of every team follows the restricted level of pod security"


def _compliance(place: StandingPlace, key: str) -> list[Cause]:
    listed = place.value("team", "compliance")
    if isinstance(listed, list) and key in listed:
        return [place.team("compliance", listed.index(key))]
    team = tenant_of(place).team
    pinned = place.value("cluster", "teams", team, "compliance")
    if isinstance(pinned, list) and key in pinned:
        return [place.cluster("teams", team, "compliance", pinned.index(key))]
    return [place.team("compliance", because="compliance in the team's file sets it")]


def _hard(place: StandingPlace, stars: Path) -> list[Cause]:
    """A bound of the namespace's quota (resolve/backstop.py)."""
    key = str(stars[0])
    if "scopeSelector" in place.body["spec"]:
        return [own("no pod may have the priorities that are listed below")]
    if key in COUNTS:
        return [place.cluster("limits", "objects", COUNTS[key])]
    if ".storageclass." in key:
        stated = ("hardQuota", "storage", key.partition(".storageclass.")[0])
        return [place.cluster("teams", tenant_of(place).team, *stated)]
    if not key.startswith("requests."):
        return [own("training needs no way in from outside the cluster")]
    resource, team = key.removeprefix("requests."), tenant_of(place).team
    pools = (place.value("cluster", "nodePools") or {}).values()
    gpus = {(pool.get("gpu") or {}).get("resource", "nvidia.com/gpu") for pool in pools}
    field = "gpus" if resource in gpus else resource
    capped = place.cluster("teams", team, "hardQuota", field)
    return [capped] if capped.is_written else [*quota_facts(place, team, resource), capped.aside()]


def _priorities(place: StandingPlace, stars: Path) -> list[Cause]:
    name = place.body["spec"]["scopeSelector"]["matchExpressions"][0]["values"][stars[-1]]
    around = [place.cluster("teams", tenant_of(place).team, "priorities").aside()]
    if str(name).startswith("system-"):
        return [own("a pod with this priority could evict anybody's")]
    return [
        own("runs of the team may not have this priority"),
        *around,
        place.cluster("limits", "priorities").aside(),
    ]


def _bounds(place: StandingPlace, stars: Path) -> list[Cause]:
    return bound_causes(place, str(stars[-2]), str(stars[-1]))


def _dns(place: StandingPlace, stars: Path) -> list[Cause]:
    return dns_causes(place, list(stars))


def _dns_addresses(place: StandingPlace, stars: Path) -> list[Cause]:
    return dns_causes(place, list(stars), is_address=True)


def _secret_name(place: StandingPlace, stars: Path) -> list[Cause]:
    return _secret(place, place.body["metadata"]["name"])


def _secret(place: StandingPlace, name: str) -> list[Cause]:
    found = []
    for field in ("secrets", "pullSecrets"):
        listed = place.value("team", field) or []
        found += [place.team(field, index) for index, one in enumerate(listed) if one == name]
    for one, connection in (place.value("team", "connections") or {}).items():
        if connection.get("secret") == name:
            found.append(place.team("connections", one, "secret"))
    return found


def _key(place: StandingPlace, stars: Path) -> list[Cause]:
    path = str(place.value("cluster", "secretStore", "path") or "")
    home = namespace(place, stars) if "{namespace}" in path else []
    return [place.cluster("secretStore", "path"), *_secret_name(place, stars), *home]


def _pull_template(place: StandingPlace, stars: Path) -> list[Cause]:
    listed = place.value("team", "pullSecrets") or []
    name = place.body["metadata"]["name"]
    index = listed.index(name) if name in listed else 0
    return [
        own("a secret for pulling images has a type of its own"),
        place.team("pullSecrets", index).aside(),
    ]


def _claim_name(place: StandingPlace) -> str:
    """The entry of `claims` that makes this object."""
    name = place.body["metadata"]["name"]
    for one, claim in (place.value("team", "claims") or {}).items():
        if (claim.get("claimName") or one) == name and claim.get("size") is not None:
            return str(one)
    return str(name)


def _claim_named(place: StandingPlace, stars: Path) -> list[Cause]:
    return [place.team("claims", _claim_name(place), "claimName")]


def _mode(place: StandingPlace, stars: Path) -> list[Cause]:
    return [place.team("claims", _claim_name(place), "accessModes", stars[0])]


def _size(place: StandingPlace, stars: Path) -> list[Cause]:
    return [place.team("claims", _claim_name(place), "size")]


def _class(place: StandingPlace, stars: Path) -> list[Cause]:
    stated = place.team("claims", _claim_name(place), "storageClass")
    if stated.is_written:
        return [stated]
    kinds = place.value("cluster", "storageClasses") or {}
    default = next((one for one, kind in kinds.items() if kind.get("default")), "")
    words = f"the cluster's default storage class, {default}"
    return [place.cluster("storageClasses", default, because=words, key=True), stated.aside()]


_ON_CLUSTER = "~cluster.teams.{team}#: team {team} is on cluster {cluster}"
_OPENSHIFT = "= OpenShift's dashboard and its Kueue look for it | ~cluster.versions.openshift"
_SECURE = f"= {_POD_SECURITY}"
_META: tuple[Row, ...] = (
    ("metadata namespace", namespace),
    (
        f"metadata labels {PREFIX}team",
        f"team.name: the team is that of specs/{{team}}/ | {_ON_CLUSTER}",
    ),
    (f"metadata labels {PREFIX}cost-centre", "team.costCentre"),
    *(
        (f"metadata labels pod-security.kubernetes.io/{mode}-version", "cluster.versions.kubernetes")
        for mode in ("enforce", "audit", "warn")
    ),
    ("metadata labels pod-security.kubernetes.io/enforce", _pod_security),
    ("metadata labels pod-security.kubernetes.io/audit", _SECURE),
    ("metadata labels pod-security.kubernetes.io/warn", _SECURE),
    ("metadata labels opendatahub.io/dashboard", _OPENSHIFT),
    ("metadata labels kueue.openshift.io/managed", f"{_OPENSHIFT} | ~cluster.versions.kueue | ~cluster.gang"),
    ("metadata labels *", _label),
    (f"metadata annotations {PREFIX}contact", "team.contact"),
    (f"metadata annotations {PREFIX}description", "team.description"),
    (f"metadata annotations {PREFIX}source", "team: the team's file is {source}"),
    (f"metadata annotations {PREFIX}pod-security-reason", "cluster.teams.{team}.podSecurity.reason"),
    (f"metadata annotations {PREFIX}pod-security-until", "cluster.teams.{team}.podSecurity.until"),
    (f"metadata annotations {PREFIX}reason", partial(grant, field="reason")),
    (f"metadata annotations {PREFIX}until", partial(grant, field="until")),
    ("metadata annotations openshift.io/description", "team.description | ~cluster.versions.openshift"),
    (
        "metadata annotations openshift.io/display-name",
        "= OpenShift shows the team's name, {team} | ~cluster.versions.openshift",
    ),
    ("metadata annotations *", "= what Argo CD may do with a tenant's objects: the same for every team"),
)
REST = "= gangplan writes it for every team ({kind})"
TENANT: dict[str, Table] = {
    "Namespace": Table(("metadata name", namespace), *_META, ("**", REST)),
    "ResourceQuota": Table(
        *_META,
        (
            "spec hard *",
            _hard,
        ),
        ("spec scopeSelector matchExpressions 0 values *", _priorities),
        ("**", REST),
    ),
    "LimitRange": Table(*_META, ("spec limits 0 * *", _bounds), ("**", REST)),
    "NetworkPolicy": Table(
        *_META, ("spec egress 0 **", _dns), ("spec egress 1 **", _dns_addresses), ("**", REST)
    ),
    "ServiceAccount": Table(
        *ACCOUNT, *_META, ("imagePullSecrets * name", "team.pullSecrets.{0}"), ("**", REST)
    ),
    "RoleBinding": Table(
        ("metadata name", binding_name),
        *_META,
        ("roleRef name", role),
        ("subjects * name", subject),
        ("subjects * namespace", namespace),
        ("subjects * *", subject_kind),
        ("**", REST),
    ),
    "ExternalSecret": Table(
        ("metadata name", _secret_name),
        *_META,
        ("spec secretStoreRef *", "cluster.secretStore.{0}"),
        ("spec refreshInterval", "cluster.secretStore.refresh"),
        ("spec target name", _secret_name),
        ("spec target template **", _pull_template),
        ("spec dataFrom 0 extract key", _key),
        (
            "spec dataFrom 0 extract nullBytePolicy",
            "= External Secrets 2.3 and later keep it | ~cluster.versions.externalSecrets",
        ),
        ("**", REST),
    ),
    "PersistentVolume": Table(
        ("metadata name", volume),
        *_META,
        ("spec claimRef namespace", namespace),
        ("spec **", volume),
        ("**", REST),
    ),
    "PersistentVolumeClaim": Table(
        ("metadata name", of_volume(_claim_named)),
        *_META,
        ("spec accessModes *", of_volume(_mode, "accessModes")),
        ("spec resources requests storage", of_volume(_size, "storage")),
        ("spec storageClassName", of_volume(_class)),
        ("spec volumeName", volume),
        ("**", REST),
    ),
    "LocalQueue": Table(
        ("metadata name", queue_name),
        *_META,
        ("spec clusterQueue", "cluster.teams.{team}.clusterQueue | ~cluster.gang"),
        ("spec fairSharing weight", "cluster.teams.{team}.localQueues.{name}.weight"),
        ("**", REST),
    ),
}
