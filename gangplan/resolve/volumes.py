"""Volumes of the cluster, one for each pod of a run: inline CSI volumes, and claims that end with a pod.

Sources: Kubernetes v1.34, `CSIVolumeSource` and `EphemeralVolumeSource` of core/v1, whose claims a quota
counts like any other (pkg/quota/v1/evaluator/core/persistent_volume_claims.go). Pod Security admits both at
every level (pod-security-admission v0.34, check_restrictedVolumes.go). OpenShift since 4.13 also has the CSI
Volume Admission plugin, which admits an inline CSI volume if the namespace's level is the driver's or a
weaker one (OpenShift 4.21, Storage, "Pod security profile enforcement"); a driver without a label counts as
privileged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit
from gangplan.model.job import InlineVolume, Mount, Origin, Origins, PodClaim, ValueOrigin
from gangplan.model.quantity import Quantity
from gangplan.resolve.context import JobResolution
from gangplan.resolve.facts import ENCRYPTING_REGIMES
from gangplan.resolve.tenant import count_team_claims_on_cluster, find_default_class
from gangplan.rules.volumes import (
    VOLUME_NOT_ADMITTED,
    VOLUME_OVER_QUOTA,
    VOLUME_UNKNOWN,
    VOLUME_UNUSABLE,
)
from gangplan.spec.declare import suggest_known_or_new
from gangplan.spec.pods import PodVolume, VolumeUse
from gangplan.workspace import suggest_nearest

# Levels of Pod Security, the strictest first.
LEVELS = ("restricted", "baseline", "privileged")


def resolve_volume_mounts(context: JobResolution) -> list[Mount]:
    """Return a mount for each entry of `volumes` that the cluster offers the team; report the others."""
    offered = {
        name: one
        for name, one in context.cluster.spec.volumes.items()
        if one.teams is None or context.team.name in one.teams
    }
    found = list[Mount]()
    for name, asked in context.spec.spec.volumes.items():
        kind = offered.get(name)
        if kind is None:
            _report_volume_not_offered_to_team(context, name, list(offered))
            continue
        use = asked if isinstance(asked, VolumeUse) else VolumeUse(path=asked)
        context.origins["volumes"] = Origin("spec", context.where("volumes"))
        found.append(
            _resolve_inline_csi_mount(context, name, kind, use)
            if kind.driver
            else _resolve_pod_claim_mount(context, name, kind, use)
        )
    return found


def _report_volume_not_offered_to_team(context: JobResolution, name: str, offered: list[str]) -> None:
    cluster, team = context.cluster, context.team
    message = f"cluster {cluster.name} has no volume '{name}' for team {team.name}"
    help = "Ask the cluster's owner to list it in volumes of its file."
    if offered:
        help = suggest_known_or_new("volume", name, offered, cluster.document.file)
    if name in team.spec.claims or name in team.spec.connections:
        help = f"'{name}' is the team's own: write it in data."
    elif name in cluster.spec.volumes:
        help = (
            f"{cluster.document.file} offers it to {', '.join(cluster.spec.volumes[name].teams or ())} alone."
        )
    context.report(VOLUME_UNKNOWN, context.where("volumes", name, key=True), message, help)


def _resolve_inline_csi_mount(context: JobResolution, name: str, kind: PodVolume, use: VolumeUse) -> Mount:
    """Return the mount of a volume that a CSI driver creates as the pod starts."""
    if use.size is not None:
        message = f"volume '{name}' is made by driver {kind.driver}, which takes no size"
        context.report(VOLUME_UNUSABLE, context.where("volumes", name, "size"), message, "Remove size.")
    for key in use.attributes:
        if key not in kind.settable:
            context.report(
                VOLUME_UNUSABLE,
                context.where("volumes", name, "attributes", key, key=True),
                f"the cluster's file does not let specs set attribute {key} of volume '{name}'",
                f"Remove it, or ask the owner of {context.cluster.name} to list it in settable."
                + (f" {suggest_nearest(key, kind.settable)}" if kind.settable else ""),
            )
    level = _find_pod_security_level(context)
    if context.cluster.spec.versions.openshift and LEVELS.index(kind.pod_security) > LEVELS.index(level):
        context.report(
            VOLUME_NOT_ADMITTED,
            context.where("volumes", name, key=True),
            f"namespaces of level {level} admit no inline volumes of driver {kind.driver}, whose profile is"
            f" {kind.pod_security}",
            f"Have its CSIDriver labelled security.openshift.io/csi-ephemeral-volume-profile: {level} where that is"
            f" right, and write podSecurity: {level} at volume {name} in {context.cluster.document.file}.",
        )
    attributes = tuple(sorted({**kind.attributes, **use.attributes}.items()))
    inline = InlineVolume("", str(kind.driver), attributes, name, kind.secret or "", kind.fs_type or "")
    return _add_volume_mount_origins(
        context, name, use, Mount(_build_volume_name(name), use.path, inline=inline, read_only=kind.read_only)
    )


def _find_pod_security_level(context: JobResolution) -> str:
    raised = context.cluster.spec.teams[context.team.name].pod_security
    return raised.level if raised else "restricted"


def _resolve_pod_claim_mount(context: JobResolution, name: str, kind: PodVolume, use: VolumeUse) -> Mount:
    """Return the mount of a volume of a storage class, by a claim that ends with the pod."""
    size = use.size or kind.size
    for key in use.attributes:
        message = f"volume '{name}' is of storage class {kind.storage_class}, which takes no {key}"
        where = context.where("volumes", name, "attributes", key, key=True)
        context.report(VOLUME_UNUSABLE, where, message, "Remove attributes.")
    if size is None:
        message = f"volume '{name}' needs a size: the cluster's file states none"
        help = f"Write {name}: {{path: {use.path}, size: 200Gi}}."
        context.report(VOLUME_UNUSABLE, context.where("volumes", name), message, help)
    elif kind.most is not None and size > kind.most:
        message = f"volume '{name}' may have at most {format_with_unit('storage', kind.most)}, not {format_amount('storage', size)}"
        help = f"Write size: {format_for_spec('storage', kind.most)} or less."
        context.report(VOLUME_UNUSABLE, context.where("volumes", name, "size"), message, help)
    own = PodClaim(name, str(kind.storage_class), kind.access_mode, size or Quantity.of(1))
    return _add_volume_mount_origins(
        context, name, use, Mount(_build_volume_name(name), use.path, own_claim=own, read_only=kind.read_only)
    )


def _add_volume_mount_origins(context: JobResolution, name: str, use: VolumeUse, mount: Mount) -> Mount:
    """Return the mount with the origins of its parts: path and size of the spec, most else of the cluster."""
    is_block = isinstance(context.spec.spec.volumes[name], VolumeUse)
    asked, stated = ValueOrigin("spec", ("volumes", name)), ("volumes", name)
    around = asked.aside()
    named = ValueOrigin("", because="a volume is named after its entry in volumes")
    size = ValueOrigin("spec" if use.size is not None else "cluster", (*stated, "size"))
    origins: dict[str, Origins] = {
        "mountPath": (ValueOrigin("spec", (*stated, "path")) if is_block else asked,),
        "storage": (size, around),
        "0": (ValueOrigin("cluster", (*stated, "accessMode")), around),
        "": (named, ValueOrigin("cluster", (*stated, "secret"), is_direct=False), around),
    }
    for field in ("driver", "readOnly", "fsType", "storageClassName"):
        inside = "storageClass" if field == "storageClassName" else field
        origins[field] = ValueOrigin("cluster", (*stated, inside)), around
    for key, _ in mount.inline.attributes if mount.inline else ():
        of_spec = ValueOrigin("spec", (*stated, "attributes", key))
        of_cluster = ValueOrigin("cluster", (*stated, "attributes", key))
        origins[key] = (of_spec,) if key in use.attributes else (of_cluster, around)
    return replace(mount, single=True, origins=origins)


def _build_volume_name(name: str) -> str:
    return f"volume-{name}"[:63].rstrip("-")


def check_volumes_in_spec(
    context: JobResolution, mounts: Sequence[Mount], workers: int, regimes: tuple[str, ...]
) -> None:
    """Check that the namespace may have all claims at once, and that their data is encrypted if required."""
    own = [mount.own_claim for mount in mounts if mount.own_claim]
    if not own:
        return
    _check_pod_claim_count_in_spec(context, mounts, workers)
    _check_pod_claim_storage_in_spec(context, mounts, workers)
    asking, classes = sorted(ENCRYPTING_REGIMES & {*regimes}), context.cluster.spec.storage_classes
    for one in own:
        known = classes.get(one.storage_class)
        if asking and not (known and known.encrypted):
            context.report(
                VOLUME_UNUSABLE,
                context.where("volumes", one.name, key=True),
                f"the data falls under {asking[0]}, and storage class '{one.storage_class}' of volume '{one.name}' is"
                " not known to encrypt",
                f"Have the owner of {context.cluster.name} state it in storageClasses once it does.",
            )


def _resolve_pod_claim_sizes(mounts: Sequence[Mount]) -> Iterator[tuple[str, Quantity]]:
    """Yield the storage class and size of each claim that a worker gets."""
    for mount in mounts:
        if mount.own_claim:
            yield mount.own_claim.storage_class, mount.own_claim.size
        elif mount.scratch and mount.scratch.storage_class:
            yield mount.scratch.storage_class, mount.scratch.size


def _check_pod_claim_count_in_spec(context: JobResolution, mounts: Sequence[Mount], workers: int) -> None:
    """Check the limit of claims: a quota counts claims of pods in addition to those of the team."""
    each, most = len(list(_resolve_pod_claim_sizes(mounts))), context.cluster.spec.limits.objects.claims
    made = count_team_claims_on_cluster(context.cluster, context.team)
    if workers * each + made <= most:
        return
    claims = "a claim" if each == 1 else f"{each} claims"
    context.report(
        VOLUME_OVER_QUOTA,
        context.where("volumes"),
        f"{workers} workers need {claims} each, and the namespace may hold {most} ({made} are the team's)",
        f"Use fewer workers, or ask the owner of {context.cluster.name} for more (limits.objects.claims).",
    )


def _check_pod_claim_storage_in_spec(context: JobResolution, mounts: Sequence[Mount], workers: int) -> None:
    """Check the platform's cap on what claims of a class may request; claims of pods count too."""
    hard = context.cluster.spec.teams[context.team.name].hard_quota
    default = find_default_class(context.cluster.spec)
    for name, cap in (hard.storage if hard else {}).items():
        each = [size for of, size in _resolve_pod_claim_sizes(mounts) if of == name]
        own = [
            claim.size
            for claim in context.team.spec.claims.values()
            if claim.size is not None and (claim.storage_class or default) == name
        ]
        total = sum((size.nano * workers for size in each), sum(size.nano for size in own))
        if not each or total <= cap.nano:
            continue
        needed = Quantity(total, cap.format)
        context.report(
            VOLUME_OVER_QUOTA,
            context.where("volumes"),
            f"{workers} workers need {format_with_unit('storage', needed)} of storage class '{name}' at once, the team's claims"
            f" included, and the namespace may request {format_amount('storage', cap)}",
            "Use smaller volumes or fewer workers, or ask the owner of"
            f" {context.cluster.name} for more (teams.{context.team.name}.hardQuota.storage).",
        )
