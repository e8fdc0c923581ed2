"""Causes of the fields of a team's PersistentVolumes and their claims."""

from __future__ import annotations

from collections.abc import Sequence

from gangplan.findings import FieldPath
from gangplan.trace.cause import Cause, mark_indirect
from gangplan.trace.files import build_own_cause
from gangplan.trace.place import ClusterObjectContext
from gangplan.trace.table import CauseRule

# Field of the object -> field of the volume in the cluster's file.
_STATED = {
    "driver": "driver",
    "volumeHandle": "handle",
    "fsType": "fsType",
    "storage": "size",
    "server": "nfs",
    "path": "nfs",
    "volumeAttributes": "attributes",
}
# Attribute or option of a bucket -> field of the team's connection.
_CONNECTED = {"bucketName": "bucket", "containerName": "bucket"}
_OPTIONS = {"region": "region", "prefix": "prefix", "--subdirectory=": "prefix", "endpoint-url": "endpoint"}


def build_claim_cause_rule(rule: CauseRule, *path: str) -> CauseRule:
    """Return a rule for a claim: the causes of its volume if gangplan creates that, else the rule given."""

    def either(place: ClusterObjectContext, stars: FieldPath) -> Sequence[Cause]:
        if "volumeName" not in place.body["spec"]:
            return rule(place, stars)
        return trace_persistent_volume_causes(place, path)

    return either


def trace_persistent_volume_causes(place: ClusterObjectContext, stars: FieldPath) -> list[Cause]:
    """Return the causes of a field below `spec`, or of the names of both objects."""
    team, key = _find_volume_owner(place)
    entry = ("teams", team, "persistentVolumes", key)
    around = mark_indirect([place.cluster(*entry, key=True)])
    field, last = (str(stars[0]) if stars else "", str(stars[-1]) if stars else "")
    is_bucket = place.value("team", "connections", key) is not None
    block = "connections" if is_bucket else "claims"
    if field == "accessModes":
        return [place.team(block, key, "readOnly" if is_bucket else "accessModes"), *around]
    if last == "retention":
        return [place.team(block, key, "retention")]
    if field == "mountOptions":
        text = str(place.body["spec"]["mountOptions"][int(last)])
        of = next((one for start, one in _OPTIONS.items() if text.startswith(start)), "")
        stated = place.value("cluster", *entry, "mountOptions") or []
        if text in stated:
            return [place.cluster(*entry, "mountOptions", stated.index(text))]
        if of:
            return [place.team("connections", key, of), *around]
        closed = place.team("connections", key, "readOnly").aside()
        return [build_own_cause("what runs that are not root need of a bucket"), closed, *around]
    if last in _CONNECTED:
        return [
            place.team("connections", key, _CONNECTED[last]),
            *mark_indirect([place.cluster(*entry, "bucket")]),
        ]
    if last == "clientID":
        return [place.team("identity", "azure", "clientId"), *around]
    if "volumeAttributes" in stars:
        if place.value("cluster", *entry, "attributes", last) is not None:
            return [place.cluster(*entry, "attributes", last)]
        named = {"storageAccount": "account", "authenticationSource": "authentication"}.get(last)
        return (
            [place.cluster(*entry, named)]
            if named
            else [build_own_cause("what its driver mounts containers by"), *around]
        )
    if last == "name" and "nodeStageSecretRef" in stars:
        return [place.cluster(*entry, "secret")]
    if last in _STATED:
        return [place.cluster(*entry, _STATED[last]), *around]
    return [build_own_cause("a volume and its claim name each other, and outlive what is in Git"), *around]


def _find_volume_owner(place: ClusterObjectContext) -> tuple[str, str]:
    """Return team and key of the volume that an object is or claims."""
    assert place.tenant is not None
    name = place.body["spec"].get("volumeName") or place.body["metadata"]["name"]
    return place.tenant.team, next(one.key for one in place.tenant.volumes if one.name == name)
