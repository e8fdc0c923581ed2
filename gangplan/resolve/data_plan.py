"""What the references of a spec to data amount to, while they are collected."""

from __future__ import annotations

from dataclasses import field

from gangplan.findings import Location
from gangplan.model.job import EnvVar, Mount
from gangplan.records import dataclass


@dataclass(slots=True)
class DataPlan:
    """What the references amount to, while they are collected."""

    mounts: list[Mount] = field(default_factory=list)
    env: dict[str, EnvVar] = field(default_factory=dict)
    egress: dict[str, Location] = field(default_factory=dict)  # endpoint -> where it is asked for
    connection: str = ""
