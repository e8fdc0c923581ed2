"""Causes of the fields of a tenant's objects (generators in TENANT_GENERATORS)."""

from __future__ import annotations

from functools import partial

from gangplan.findings import FieldPath
from gangplan.generators.tenants import format_grant_name
from gangplan.model.backend import BACKENDS
from gangplan.model.manager import format_claim_quota_key
from gangplan.model.site import DebugGrant, Tenant
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.context import trace_namespace_causes
from gangplan.trace.files import build_own_cause
from gangplan.trace.metadata import trace_waiver_causes
from gangplan.trace.network import trace_dns_rule_causes
from gangplan.trace.persistent import build_claim_cause_rule, trace_persistent_volume_causes
from gangplan.trace.place import ClusterObjectContext
from gangplan.trace.quotas import trace_limit_range_bound_causes, trace_queue_maximum_causes
from gangplan.trace.table import CauseRow, CauseTable
from gangplan.waivers import Subject


def trace_local_queue_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of metadata.name of a LocalQueue."""
    holder, name = ("teams", tenant_of(place).team), place.body["metadata"]["name"]
    own = place.cluster(*holder, "queue")
    if place.value("cluster", *holder, "queue") == name:
        return [own, place.gang()]
    stated = place.cluster(*holder, "localQueues", name, because=f"LocalQueue {name}", key=True)
    return [stated, own.aside(), place.gang()]


GROUPS = {"viewer": "viewers", "data-scientist": "dataScientists", "mlops": "mlops", "admin": "admins"}


def tenant_of(place: ClusterObjectContext) -> Tenant:
    """Return the team that an object is for."""
    assert place.tenant is not None
    return place.tenant


def namespace(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a team's namespace."""
    return trace_namespace_causes(place.files, tenant_of(place).team)


def _find_debug_grants_of_traced_binding(place: ClusterObjectContext) -> list[tuple[int, str]]:
    """Return the debug grants of a binding by its name, which contains the last day and a hash."""
    listed = place.value("team", "debuggers") or []
    found = []
    for index, one in enumerate(listed):
        one_grant = DebugGrant(one["group"], str(one["until"]), one["reason"])
        if format_grant_name(one_grant) == place.body["metadata"]["name"]:
            found.append((index, one["group"]))
    return found


def grant(place: ClusterObjectContext, stars: FieldPath, field: str) -> list[Cause]:
    """Return a field of the debug grants that a binding comes from."""
    return [place.team("debuggers", index, field) for index, _ in _find_debug_grants_of_traced_binding(place)]


def trace_role_binding_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of metadata.name of a RoleBinding."""
    grants = _find_debug_grants_of_traced_binding(place)
    if grants:
        return [cause for index, _ in grants for cause in _trace_grant_name_causes(place, index)]
    return trace_role_causes_of_binding(place, stars)


def _trace_grant_name_causes(place: ClusterObjectContext, index: int) -> list[Cause]:
    return [place.team("debuggers", index, field) for field in ("until", "group", "reason")]


def trace_role_causes_of_binding(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of the role that a binding grants."""
    if place.body["metadata"]["name"] == "gangplan-scheduler":
        return [place.cluster("schedules", because="CronJobs of the cluster start the runs of schedules")]
    if place.body["metadata"]["name"].startswith("training-"):
        return [
            build_own_cause("OpenShift: images run as their own user"),
            place.cluster("versions", "openshift").aside(),
        ]
    if _find_debug_grants_of_traced_binding(place):
        return [build_own_cause("who may open a shell in pods has the role of a debugger")]
    around = [place.cluster("gitopsOnly").aside(), *mark_indirect(_trace_team_group_causes(place))]
    return [build_own_cause("the role of a persona; where only Git writes, everybody looks"), *around]


def _trace_team_group_causes(place: ClusterObjectContext) -> list[Cause]:
    return [
        place.team("groups", field, index)
        for field in GROUPS.values()
        for index in range(len(place.value("team", "groups", field) or ()))
    ]


def _trace_subject_group_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    if grants := _find_debug_grants_of_traced_binding(place):
        return [place.team("debuggers", index, "group") for index, _ in grants]
    name = place.body["subjects"][stars[0]]["name"]
    found = [cause for cause in _trace_team_group_causes(place) if place.value("team", *cause.field) == name]
    others = mark_indirect(cause for cause in _trace_team_group_causes(place) if cause not in found)
    return [*found, *others, place.cluster("gitopsOnly").aside()]


def subject(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a subject: groups of the team's file, or on OpenShift the account of the pods."""
    is_account = place.body["subjects"][stars[0]].get("kind") == "ServiceAccount"
    return (
        trace_role_causes_of_binding(place, stars)
        if is_account
        else _trace_subject_group_causes(place, stars)
    )


def trace_binding_subject_kind_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a subject's kind: the same for every group, as long as it exists."""
    return [
        build_own_cause("groups of the identity provider, or on OpenShift the pods' account"),
        *mark_indirect(subject(place, stars)),
    ]


def _trace_cloud_identity_causes(
    place: ClusterObjectContext, stars: FieldPath, cloud: str, field: str
) -> list[Cause]:
    here = place.cluster("teams", place.word("team"), "identity", cloud, field)
    own, answers = place.team("identity", cloud, field), place.cluster("workloadIdentity", "provider").aside()
    return [here, own.aside(), answers] if here.is_written else [own, here.aside(), answers]


ACCOUNT = tuple(
    (f"metadata annotations {key}", partial(_trace_cloud_identity_causes, cloud=cloud, field=field))
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


def _trace_tenant_label_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    key = str(stars[-1])
    if key.startswith(f"{PREFIX}waived-"):
        subject = Subject(place.name, tenant_of(place).team)
        return trace_waiver_causes(place.workspace.waivers, key.removeprefix(f"{PREFIX}waived-"), subject)
    if key.startswith(PREFIX):
        return _trace_compliance_causes(place, key.removeprefix(PREFIX))
    return [build_own_cause("gangplan marks all that it renders")]


def _trace_pod_security_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of the level that a namespace enforces: restricted unless stated."""
    level = place.cluster("teams", tenant_of(place).team, "podSecurity", "level")
    return [level] if level.is_written else [build_own_cause(_POD_SECURITY), level.aside()]


_POD_SECURITY = "the namespace of every team follows the restricted level of pod security"


def _trace_compliance_causes(place: ClusterObjectContext, key: str) -> list[Cause]:
    listed = place.value("team", "compliance")
    if isinstance(listed, list) and key in listed:
        return [place.team("compliance", listed.index(key))]
    team = tenant_of(place).team
    pinned = place.value("cluster", "teams", team, "compliance")
    if isinstance(pinned, list) and key in pinned:
        return [place.cluster("teams", team, "compliance", pinned.index(key))]
    return [place.team("compliance", because="compliance in the team's file sets it")]


def _trace_hard_quota_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a bound of the namespace's quota (resolve/backstop.py)."""
    key = str(stars[0])
    if "scopeSelector" in place.body["spec"]:
        return [build_own_cause("no pod may have the priorities that are listed below")]
    if key in COUNTS:
        return [place.cluster("limits", "objects", COUNTS[key])]
    if ".storageclass." in key:
        stated = ("hardQuota", "storage", key.partition(".storageclass.")[0])
        return [place.cluster("teams", tenant_of(place).team, *stated)]
    classes = {format_claim_quota_key(one): resource for one, resource in place.site.manager.device_classes}
    if not key.startswith("requests.") and key not in classes:
        return [build_own_cause("training needs no way in from outside the cluster")]
    resource, team = classes.get(key) or key.removeprefix("requests."), tenant_of(place).team
    pools = (place.value("cluster", "nodePools") or {}).values()
    gpus = {(pool.get("gpu") or {}).get("resource", "nvidia.com/gpu") for pool in pools}
    field = "gpus" if resource in gpus else resource
    capped = place.cluster("teams", team, "hardQuota", field)
    return (
        [capped]
        if capped.is_written
        else [*trace_queue_maximum_causes(place, team, resource), capped.aside()]
    )


def _trace_barred_priority_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    name = place.body["spec"]["scopeSelector"]["matchExpressions"][0]["values"][stars[-1]]
    around = [place.cluster("teams", tenant_of(place).team, "priorities").aside()]
    if str(name).startswith("system-"):
        return [build_own_cause("a pod with this priority could evict anybody's")]
    return [
        build_own_cause("runs of the team may not have this priority"),
        *around,
        place.cluster("limits", "priorities").aside(),
    ]


def _trace_limit_range_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return trace_limit_range_bound_causes(place, str(stars[-2]), str(stars[-1]))


def _trace_dns_pod_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return trace_dns_rule_causes(place, list(stars))


def _trace_dns_address_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return trace_dns_rule_causes(place, list(stars), is_address=True)


def _trace_secret_name_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return _trace_named_secret_causes(place, place.body["metadata"]["name"])


def _trace_named_secret_causes(place: ClusterObjectContext, name: str) -> list[Cause]:
    found = []
    for field in ("secrets", "pullSecrets"):
        listed = place.value("team", field) or []
        found += [place.team(field, index) for index, one in enumerate(listed) if one == name]
    for one, connection in (place.value("team", "connections") or {}).items():
        if connection.get("secret") == name:
            found.append(place.team("connections", one, "secret"))
    return found


def _trace_secret_key_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    path = str(place.value("cluster", "secretStore", "path") or "")
    home = namespace(place, stars) if "{namespace}" in path else []
    return [place.cluster("secretStore", "path"), *_trace_secret_name_causes(place, stars), *home]


def _trace_pull_secret_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    listed = place.value("team", "pullSecrets") or []
    name = place.body["metadata"]["name"]
    index = listed.index(name) if name in listed else 0
    return [
        build_own_cause("a secret for pulling images has a type of its own"),
        place.team("pullSecrets", index).aside(),
    ]


def _find_claim_key_of_traced_object(place: ClusterObjectContext) -> str:
    """Return the key in `claims` of the entry that creates this object."""
    name = place.body["metadata"]["name"]
    for one, claim in (place.value("team", "claims") or {}).items():
        if (claim.get("claimName") or one) == name and claim.get("size") is not None:
            return str(one)
    return str(name)


def _trace_claim_field_causes(place: ClusterObjectContext, stars: FieldPath, field: str) -> list[Cause]:
    return [place.team("claims", _find_claim_key_of_traced_object(place), field, *stars)]


def _trace_volume_retention_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    return trace_persistent_volume_causes(place, ("retention",))


def _trace_storage_class_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    stated = place.team("claims", _find_claim_key_of_traced_object(place), "storageClass")
    if stated.is_written:
        return [stated]
    kinds = place.value("cluster", "storageClasses") or {}
    default = next((one for one, kind in kinds.items() if kind.get("default")), "")
    words = f"the cluster's default storage class, {default}"
    return [place.cluster("storageClasses", default, because=words, key=True), stated.aside()]


_ON_CLUSTER = "~cluster.teams.{team}#: team {team} is on cluster {cluster}"
_OPENSHIFT = "= OpenShift's dashboard and its Kueue look for it | ~cluster.versions.openshift"
_SECURE = f"= {_POD_SECURITY}"
_META: tuple[CauseRow, ...] = (
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
    ("metadata labels pod-security.kubernetes.io/enforce", _trace_pod_security_causes),
    ("metadata labels pod-security.kubernetes.io/audit", _SECURE),
    ("metadata labels pod-security.kubernetes.io/warn", _SECURE),
    ("metadata labels opendatahub.io/dashboard", _OPENSHIFT),
    ("metadata labels kueue.openshift.io/managed", f"{_OPENSHIFT} | ~cluster.versions.kueue | ~cluster.gang"),
    ("metadata labels *", _trace_tenant_label_causes),
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
TENANT_TABLES: dict[str, CauseTable] = {
    "Namespace": CauseTable(("metadata name", namespace), *_META, ("**", REST)),
    "ResourceQuota": CauseTable(
        *_META,
        (
            "spec hard *",
            _trace_hard_quota_causes,
        ),
        ("spec scopeSelector matchExpressions 0 values *", _trace_barred_priority_causes),
        ("**", REST),
    ),
    "LimitRange": CauseTable(*_META, ("spec limits 0 * *", _trace_limit_range_causes), ("**", REST)),
    "NetworkPolicy": CauseTable(
        *_META,
        ("spec egress 0 **", _trace_dns_pod_causes),
        ("spec egress 1 **", _trace_dns_address_causes),
        ("**", REST),
    ),
    "ServiceAccount": CauseTable(
        *ACCOUNT, *_META, ("imagePullSecrets * name", "team.pullSecrets.{0}"), ("**", REST)
    ),
    "RoleBinding": CauseTable(
        ("metadata name", trace_role_binding_name_causes),
        *_META,
        ("roleRef name", trace_role_causes_of_binding),
        ("subjects * name", subject),
        ("subjects * namespace", namespace),
        ("subjects * *", trace_binding_subject_kind_causes),
        ("**", REST),
    ),
    "ExternalSecret": CauseTable(
        ("metadata name", _trace_secret_name_causes),
        *_META,
        ("spec secretStoreRef *", "cluster.secretStore.{0}"),
        ("spec refreshInterval", "cluster.secretStore.refresh"),
        ("spec target name", _trace_secret_name_causes),
        ("spec target template **", _trace_pull_secret_causes),
        ("spec dataFrom 0 extract key", _trace_secret_key_causes),
        (
            "spec dataFrom 0 extract nullBytePolicy",
            "= External Secrets 2.3 and later keep it | ~cluster.versions.externalSecrets",
        ),
        ("**", REST),
    ),
    "PersistentVolume": CauseTable(
        ("metadata name", trace_persistent_volume_causes),
        (f"metadata labels {PREFIX}retention", _trace_volume_retention_causes),
        *_META,
        ("spec claimRef namespace", namespace),
        ("spec **", trace_persistent_volume_causes),
        ("**", REST),
    ),
    "PersistentVolumeClaim": CauseTable(
        ("metadata name", build_claim_cause_rule(partial(_trace_claim_field_causes, field="claimName"))),
        (
            f"metadata labels {PREFIX}retention",
            build_claim_cause_rule(partial(_trace_claim_field_causes, field="retention"), "retention"),
        ),
        *_META,
        (
            "spec accessModes *",
            build_claim_cause_rule(partial(_trace_claim_field_causes, field="accessModes"), "accessModes"),
        ),
        (
            "spec resources requests storage",
            build_claim_cause_rule(partial(_trace_claim_field_causes, field="size"), "storage"),
        ),
        ("spec storageClassName", build_claim_cause_rule(_trace_storage_class_causes)),
        ("spec volumeName", trace_persistent_volume_causes),
        ("**", REST),
    ),
    "LocalQueue": CauseTable(
        ("metadata name", trace_local_queue_name_causes),
        *_META,
        ("spec clusterQueue", "cluster.teams.{team}.clusterQueue | ~cluster.gang"),
        ("spec fairSharing weight", "cluster.teams.{team}.localQueues.{name}.weight"),
        ("**", REST),
    ),
}
