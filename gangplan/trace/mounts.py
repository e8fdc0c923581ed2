"""What is mounted in a pod of a run: claims, secrets, scratch, and where each comes from."""

from __future__ import annotations

from gangplan.model.job import Mount
from gangplan.trace.cause import Cause, asides
from gangplan.trace.context import TraceContext
from gangplan.trace.files import own


def mounted(context: TraceContext, mount: Mount, field: str) -> list[Cause]:
    """What decides about a mount: data, `secrets.files`, scratch or the checkpoint; the claim."""
    if mount.scratch:
        return _scratch(context, field)
    if mount.own_claim or (mount.inline and mount.inline.name):
        from gangplan.trace import volumes  # few runs have one

        return volumes.mounted(context, mount.name, field)
    if mount.file:
        if field == "mountPath":
            return [context.spec("files", mount.file)]
        asked = context.spec("files", mount.file, because=f"file {mount.file}", key=True)
        if field == "name":
            return [*context.run_name(), asked.aside()]
        return [asked.aside(), own("files beside the spec are mounted one by one, for reading")]
    if mount.config_map:
        if field == "mountPath":
            return [context.spec("files", mount.config_map)]
        asked = context.spec("files", mount.config_map, because=f"ConfigMap {mount.config_map}", key=True)
        return [asked.aside(), own("ConfigMaps are mounted for reading, by their declared names")]
    if mount.inline:
        return _bucket(context, mount, field)
    if mount.secret:
        return _secret(context, mount, field)
    for name, target in (context.value("spec", "data") or {}).items():
        claim = context.value("team", "connections", name, "claim") or name
        if target == mount.path and _is_claim(context, claim, mount):
            asked = context.spec("data", name, because=f"data in the spec: {name}")
            return _claim(context, mount, field, claim, asked)
    to = context.value("spec", "checkpoint", "to")
    if field == "mountPath":
        return [context.spec("checkpoint", "path"), context.spec("checkpoint", "to").aside()]
    asked = context.spec("checkpoint", "to")
    return _claim(context, mount, field, str(to), asked)


def _bucket(context: TraceContext, mount: Mount, field: str) -> list[Cause]:
    """A connection that is a folder by itself."""
    assert mount.inline is not None
    name = mount.inline.connection
    in_data = context.files.has("spec", "data", name)
    asked = context.spec("data", name) if in_data else context.spec("checkpoint", "path")
    stated = {
        "bucketName": [context.team("connections", name, "bucket")],
        "mountOptions": [context.team("connections", name, "prefix"), *asides(context.chosen("image"))],
        "readOnly": [context.team("connections", name, "readOnly")],
        "driver": [context.team("connections", name, "mount")],
        "mountPath": [asked],
    }
    around = [asked.aside(), context.spec("checkpoint", "to").aside()]
    return [*stated.get(field, [own("a volume is named after its connection")]), *around]


def _is_claim(context: TraceContext, claim: str, mount: Mount) -> bool:
    return (context.value("team", "claims", claim, "claimName") or claim) == mount.claim


def _claim(context: TraceContext, mount: Mount, field: str, claim: str, asked: Cause) -> list[Cause]:
    around = [asked.aside()]
    if context.files.has("cluster", "teams", context.job.team, "persistentVolumes", claim):
        if field == "readOnly" and context.files.has("team", "connections", claim):
            return [context.team("connections", claim, "readOnly"), *around]
        around.append(
            context.cluster("teams", context.job.team, "persistentVolumes", claim, key=True).aside()
        )
    if asked.field[:1] == ("data",) and (
        via := context.value("team", "connections", asked.field[-1], "claim")
    ):
        around.append(context.team("connections", str(asked.field[-1]), "claim").aside())
        assert via == claim
    if field == "mountPath":
        return [asked, *around[1:]]
    if field == "readOnly":
        facts = [context.team("claims", claim, part) for part in ("readOnly", "accessModes")]
        return [*asides(facts), own("a claim that is read-only is mounted so"), *around]
    if field == "claim":
        return [context.team("claims", claim, "claimName"), *around]
    return [asked.aside(), own("a volume is named after its claim"), *around[1:]]


def _secret(context: TraceContext, mount: Mount, field: str) -> list[Cause]:
    if field == "mountPath":
        return [context.spec("secrets", "files", mount.secret)]
    asked = context.spec("secrets", "files", mount.secret, because=f"secret {mount.secret}", key=True)
    return [asked.aside(), own("secrets are mounted for reading, by their declared names")]


def _scratch(context: TraceContext, field: str) -> list[Cause]:
    """Where it is, how much, and of what; what the spec leaves out, gangplan says."""
    if field == "mountPath":
        return [context.spec(*context.scratch("path")), *asides([context.spec("scratch")])]
    if field in ("sizeLimit", "storage"):
        return [context.spec(*context.scratch("size"))]
    medium = context.spec(*context.scratch("medium"))
    if field == "storageClassName":
        pool = context.job.worker_pool.name
        return [context.cluster("nodePools", pool, "localDisk", "storageClass"), medium.aside()]
    if field == "medium":
        return [medium]
    return [own("scratch is a volume of this kind"), medium.aside(), context.spec("scratch").aside()]
