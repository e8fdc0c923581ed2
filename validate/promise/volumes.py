"""Checks of volumes that each pod has to itself: the planned driver and attributes, or the planned size."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.model.job import InlineVolume, Mount, PodClaim
from gangplan.model.quantity import parse_quantity
from gangplan.objects import Body
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan

Found = Iterator[tuple[int, Problem]]


def check_promised_private_volume(
    laid: ExpandedRun, role: ExpandedRole, at: FieldPath, wanted: Mount, found: Body, volume: Body
) -> Found:
    """Check a volume that each pod has to itself.

    A site may use another kind of volume, but not one that the pods share.
    """
    volumes: FieldPath = (*role.pod, "volumes")
    if bool(found.get("readOnly")) and not wanted.read_only:
        message = f"{role.title} could not write to {wanted.path}, although the spec requires it"
        yield laid.runtime, report_broken_promise(at, message, "Remove readOnly.", "volumes")
    if wanted.own_claim:
        yield from _check_promised_pod_volume_claim(
            laid, role, volumes, wanted.own_claim, wanted.path, volume
        )
    elif wanted.inline and "csi" in volume:
        yield from _check_promised_inline_csi_volume(laid, role, volumes, wanted.inline, volume["csi"])


def _check_promised_inline_csi_volume(
    laid: ExpandedRun, role: ExpandedRole, at: FieldPath, wanted: InlineVolume, built: Body
) -> Found:
    if built.get("driver") != wanted.driver:
        message = (
            f"{role.title} would have volume '{wanted.name}' of driver {built.get('driver')};"
            f" the plan has it of {wanted.driver}"
        )
        yield (
            laid.runtime,
            report_weakened_plan(at, message, "Write the driver in volumes of the cluster's file."),
        )
        return
    given = built.get("volumeAttributes") or {}
    for key, value in wanted.attributes:
        if given.get(key) != value:
            other = f"'{given[key]}'" if key in given else "nothing"
            message = (
                f"the driver of volume '{wanted.name}' would get {other} as {key}; the plan has '{value}'"
            )
            yield (
                laid.runtime,
                report_broken_promise(
                    at, message, "Write it in volumes of the cluster's file, or of the spec.", "volumes"
                ),
            )


def _check_promised_pod_volume_claim(
    laid: ExpandedRun, role: ExpandedRole, at: FieldPath, wanted: PodClaim, path: str, volume: Body
) -> Found:
    claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
    size = ((claim.get("resources") or {}).get("requests") or {}).get("storage")
    if "persistentVolumeClaim" in volume:
        message = f"all pods would share {path}; the plan gives each a volume '{wanted.name}' of its own"
        yield (
            laid.runtime,
            report_broken_promise(at, message, "Mount it elsewhere, or write data in the spec.", "volumes"),
        )
    elif size is not None and parse_quantity(str(size)) < wanted.size:
        message = f"{role.title} would have {size} of volume '{wanted.name}'; the plan has {wanted.size}"
        yield laid.runtime, report_weakened_plan(at, message, "Write its size in volumes of the spec.")
