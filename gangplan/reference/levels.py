"""The order in which docs/spec.md lists the fields of a format: first those that everybody writes.

A field that is not named here has the level of the one before it in its model.
"""

from __future__ import annotations

from collections.abc import Iterable

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Level:
    """A part of a format's table: its heading, a sentence about who needs it, and its fields in order."""

    title: str
    about: str
    fields: tuple[str, ...]


def _build_field_level(title: str, about: str, fields: str) -> Level:
    return Level(title, about, tuple(fields.split()))


LEVELS: dict[str, tuple[Level, ...]] = {
    "spec": (
        _build_field_level(
            "every job",
            "Most jobs need no other fields.",
            "apiVersion kind image command workers gpus cpu memory data timeout",
        ),
        _build_field_level(
            "which job it is, and where it runs",
            "",
            "name description template parameters team clusters profile priority queue labels",
        ),
        _build_field_level(
            "what the program finds",
            "[pods.md](pods.md) has examples.",
            "env secrets files workdir checkpoint scratch volumes",
        ),
        _build_field_level(
            "how it is started",
            "[job-commands.md](job-commands.md) says how each command is started.",
            "framework slots mpi launcher elastic roles steps setup sidecars preflight backend",
        ),
        _build_field_level(
            "which hardware",
            "",
            "gpu devices hugePages disk network placement",
        ),
        _build_field_level(
            "how it ends, and what happens then",
            "[gitops.md](gitops.md) has the life of a run.",
            "extendedTimeout gracePeriod logRetention retries exitCodes schedule after model run state keep retired debug",
        ),
        _build_field_level(
            "regulated data, and rights",
            "",
            "compliance residency serviceAccount",
        ),
    ),
    "team": (
        _build_field_level(
            "every team",
            "",
            "apiVersion kind name description namespace contact costCentre clusters groups",
        ),
        _build_field_level(
            "what its jobs may name",
            "",
            "claims connections secrets configMaps onlyOn pullSecrets defaults",
        ),
        _build_field_level(
            "rights and rules",
            "",
            "debuggers compliance identity",
        ),
    ),
    "cluster": (
        _build_field_level(
            "every cluster",
            "Enough to render for a cluster. [clusters.md](clusters.md) says which versions work together.",
            "apiVersion kind name description environment versions region nodePools teams storageClasses",
        ),
        _build_field_level(
            "rules and protection",
            "See [policies.md](policies.md) and [security.md](security.md).",
            "policies certifications fips networkEncrypted logsRedacted gitopsOnly limits runtimeClasses retention support",
        ),
        _build_field_level(
            "queues and quotas",
            "See [quotas.md](quotas.md).",
            "cohorts gang podsReadyTimeout fairSharing preemption overcommit keepRuns kueue admissionChecks multiKueue",
        ),
        _build_field_level(
            "network and registries",
            "See [network.md](network.md).",
            "cni domain dns egress proxy airGapped registries mirrors",
        ),
        _build_field_level(
            "hardware and storage beyond node pools",
            "See [fabrics.md](fabrics.md).",
            "fabrics topology location volumes",
        ),
        _build_field_level(
            "services of the cluster",
            "",
            "context monitoring schedules pipelines secretStore workloadIdentity currency defaults env",
        ),
    ),
}


def group_format_fields_by_level(kind: str, fields: Iterable[str]) -> list[Level]:
    """Return the levels of a format with the fields that it has, which come as they are declared.

    A field that no level names follows the one before it. Formats without levels have none.
    """
    levels, there = LEVELS.get(kind, ()), list(fields)
    order = [list(one.fields) for one in levels]
    last = ""
    for name in there if levels else ():
        if not any(name in one for one in order):
            own = next((one for one in order if last in one), order[-1])
            own.insert(own.index(last) + 1 if last in own else len(own), name)
        last = name
    return [
        Level(one.title, one.about, tuple(name for name in own if name in there))
        for one, own in zip(levels, order, strict=True)
    ]
