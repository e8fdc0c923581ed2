"""The mounts, variables and endpoints that a spec's references to data need, while they are collected."""

from __future__ import annotations

from dataclasses import field

from gangplan.findings import Location
from gangplan.model.job import EnvVar, Mount, Origins, ValueOrigin
from gangplan.model.trial import PartOrigins
from gangplan.records import dataclass
from gangplan.resolve.context import JobResolution


@dataclass(slots=True)
class DataPlan:
    """The mounts, variables and endpoints that references need, while they are collected."""

    mounts: list[Mount] = field(default_factory=list)
    env: dict[str, EnvVar] = field(default_factory=dict)
    egress: dict[str, Location] = field(default_factory=dict)  # endpoint -> where it is asked for
    connection: str = ""


def list_named_origins(path: tuple[str, ...], what: str, why: str) -> PartOrigins:
    """Return the origins of a mount by a declared name, which is the key of the spec's entry for the path."""
    asked = ValueOrigin("spec", path, what, is_direct=False, is_key=True)
    return {"mountPath": (ValueOrigin("spec", path),), "": (asked, ValueOrigin("", because=why))}


def list_claim_mount_origins(context: JobResolution, claim: str, asked: ValueOrigin) -> PartOrigins:
    """Return the origins of a claim's mount, or of a bucket's through the claim that gangplan creates."""
    team, around = context.team.spec, list[ValueOrigin]()
    is_made = claim in context.cluster.spec.teams[context.team.name].persistent_volumes
    if is_made:
        at = ("teams", context.team.name, "persistentVolumes", claim)
        around.append(ValueOrigin("cluster", at, is_direct=False, is_key=True))
    if asked.path[0] == "checkpoint":
        path: Origins = (ValueOrigin("spec", ("checkpoint", "path")), asked.aside())
    else:
        via = team.connections.get(str(asked.path[-1]))
        if via is not None and via.claim:
            around.append(ValueOrigin("team", ("connections", asked.path[-1], "claim"), is_direct=False))
        path = (asked, *around)
    if is_made and claim in team.connections:
        read_only: Origins = (ValueOrigin("team", ("connections", claim, "readOnly")), asked.aside())
    else:
        facts = (ValueOrigin("team", ("claims", claim, part)).aside() for part in ("readOnly", "accessModes"))
        why = ValueOrigin("", because="a claim that is read-only is mounted so")
        read_only = (*facts, why, asked.aside(), *around)
    return {
        "mountPath": path,
        "readOnly": read_only,
        "claimName": (ValueOrigin("team", ("claims", claim, "claimName")), asked.aside(), *around),
        "": (asked.aside(), ValueOrigin("", because="a volume is named after its claim"), *around),
    }
