"""Causes of the fields of a tenant's objects (generators in TENANT_GENERATORS)."""

from __future__ import annotations

from functools import partial

from gangplan.generators.tenants import grant_name
from gangplan.model.backend import BACKENDS
from gangplan.model.site import DebugGrant, Tenant
from gangplan.trace.cause import Cause, Path, asides
from gangplan.trace.context import namespace_causes
from gangplan.trace.files import own
from gangplan.trace.metadata import waived
from gangplan.trace.network import dns_causes
from gangplan.trace.persistent import of_volume, volume
from gangplan.trace.place import StandingPlace
from gangplan.trace.quotas import bound_causes, quota_facts
from gangplan.trace.table import Row, Table
from gangplan.waivers import Subject


def queue_name(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of metadata.name of a LocalQueue."""
    holder, name = ("teams", tenant_of(place).team), place.body["metadata"]["name"]
    own = place.cluster(*holder, "queue")
    if place.value("cluster", *holder, "queue") == name:
        return [own, place.gang()]
    stated = place.cluster(*holder, "localQueues", name, because=f"LocalQueue {name}", key=True)
    return [stated, own.aside(), place.gang()]


GROUPS = {"viewer": "viewers", "data-scientist": "dataScientists", "mlops": "mlops", "admin": "admins"}


def tenant_of(place: StandingPlace) -> Tenant:
    """Return the team that an object is for."""
    assert place.tenant is not None
    return place.tenant


def namespace(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of a team's namespace."""
    return namespace_causes(place.files, tenant_of(place).team)


def _grants(place: StandingPlace) -> list[tuple[int, str]]:
    """Return the debug grants of a binding by its name, which contains the last day and a hash."""
    listed = place.value("team", "debuggers") or []
    found = []
    for index, one in enumerate(listed):
        one_grant = DebugGrant(one["group"], str(one["until"]), one["reason"])
        if grant_name(one_grant) == place.body["metadata"]["name"]:
            found.append((index, one["group"]))
    return found


def grant(place: StandingPlace, stars: Path, field: str) -> list[Cause]:
    """Return a field of the debug grants that a binding comes from."""
    return [place.team("debuggers", index, field) for index, _ in _grants(place)]


def binding_name(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of metadata.name of a RoleBinding."""
    grants = _grants(place)
    if grants:
        return [cause for index, _ in grants for cause in _named_grant(place, index)]
    return role(place, stars)


def _named_grant(place: StandingPlace, index: int) -> list[Cause]:
    return [place.team("debuggers", index, field) for field in ("until", "group", "reason")]


def role(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of the role that a binding grants."""
    if place.body["metadata"]["name"] == "gangplan-scheduler":
        return [place.cluster("schedules", because="CronJobs of the cluster start the runs of schedules")]
    if place.body["metadata"]["name"].startswith("training-"):
        return [
            own("OpenShift: images run as their own user"),
            place.cluster("versions", "openshift").aside(),
        ]
    if _grants(place):
        return [own("who may open a shell in pods has the role of a debugger")]
    around = [place.cluster("gitopsOnly").aside(), *asides(_members(place))]
    return [own("the role of a persona; where only Git writes, everybody looks"), *around]


def _members(place: StandingPlace) -> list[Cause]:
    return [
        place.team("groups", field, index)
        for field in GROUPS.values()
        for index in range(len(place.value("team", "groups", field) or ()))
    ]


def _group(place: StandingPlace, stars: Path) -> list[Cause]:
    if grants := _grants(place):
        return [place.team("debuggers", index, "group") for index, _ in grants]
    name = place.body["subjects"][stars[0]]["name"]
    found = [cause for cause in _members(place) if place.value("team", *cause.field) == name]
    others = asides(cause for cause in _members(place) if cause not in found)
    return [*found, *others, place.cluster("gitopsOnly").aside()]


def subject(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of a subject: groups of the team's file, or on OpenShift the account of the pods."""
    is_account = place.body["subjects"][stars[0]].get("kind") == "ServiceAccount"
    return role(place, stars) if is_account else _group(place, stars)


def subject_kind(place: StandingPlace, stars: Path) -> list[Cause]:
    """Return the causes of a subject's kind: the same for every group, as long as it exists."""
    return [
        own("groups of the identity provider, or on OpenShift the pods' account"),
        *asides(subject(place, stars)),
    ]


def _identity(place: StandingPlace, stars: Path, cloud: str, field: str) -> list[Cause]:
    here = place.cluster("teams", place.word("team"), "identity", cloud, field)
    own, answers = place.team("identity", cloud, field), place.cluster("workloadIdentity", "provider").aside()
    return [here, own.aside(), answers] if here.is_written else [own, here.aside(), answers]


ACCOUNT = tuple(
    (f"metadata annotations {key}", partial(_identity, cloud=cloud, field=field))
    for key, cloud, field in (
        ("eks.amazonaws.com/role-arn", "aws", "role"),
        ("iam.gke.io/gcp-service-account", "gcp", "serviceAccount"),
        ("azure.workload.identity/client-id", "azure", "clientId"),
        ("azure.workload.identity/tenant-id", "azure", "tenantId"),
    )
)


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
    """Return the causes of the level that a namespace enforces: restricted unless stated."""
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
    """Return the causes of a bound of the namespace's quota (resolve/backstop.py)."""
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
    """Return the key in `claims` of the entry that creates this object."""
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
