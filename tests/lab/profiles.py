"""Version profiles: the versions that run together in one lab."""

from __future__ import annotations

from dataclasses import dataclass

from . import programs
from .programs import Program

DEFAULT = "new"


@dataclass(frozen=True)
class Profile:
    """One set of versions."""

    name: str
    kubernetes: str
    trainer: str
    jobset: str
    kueue: str
    note: str
    mpi_operator: str = ""

    @property
    def programs(self) -> tuple[Program, ...]:
        """Every program that the control plane of this profile runs."""
        return (
            programs.ETCD,
            programs.kubernetes(self.kubernetes),
            programs.jobset(self.jobset),
            programs.trainer(self.trainer),
            programs.kueue(self.kueue),
            *([programs.mpi_operator(self.mpi_operator)] if self.mpi_operator else ()),
            programs.KWOK,
        )

    def program(self, name: str) -> Program:
        """Return one program by its name."""
        return next(program for program in self.programs if program.name == name)

    def versions(self) -> str:
        """Return the versions in one line."""
        more = f", MPI operator {self.mpi_operator}" if self.mpi_operator else ""
        own = f"Trainer {self.trainer}, JobSet {self.jobset}, Kueue {self.kueue}"
        return f"Kubernetes {self.kubernetes}, {own}{more}"


PROFILES: tuple[Profile, ...] = (
    Profile("new", "1.34.4", "2.3.0", "0.12.0", "0.19.2", "the newest of each", "0.8.2"),
    Profile("middle", "1.34.4", "2.2.1", "0.11.0", "0.18.2", "what Kueue 0.18 was built against"),
    Profile("old", "1.33.13", "2.1.0", "0.10.1", "0.15.2", "podTemplateOverrides, an older Kubernetes"),
    Profile("broken", "1.34.4", "2.1.0", "0.10.1", "0.18.2", "runs stay suspended: never use it"),
)


def find(name: str) -> Profile:
    """Return a profile by name."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise KeyError(f"unknown lab profile {name!r}; there are {names}")
