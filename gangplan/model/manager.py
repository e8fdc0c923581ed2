"""What Kueue's manager is configured with on a cluster, as far as it decides about runs."""

from __future__ import annotations

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Transformation:
    """What quota counts instead of a resource, or beside it: `outputs` are billionths per whole unit."""

    resource: str
    outputs: tuple[tuple[str, int], ...]
    replaces: bool


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Settings of the manager, and what stands beside it. `external_checks` are admission checks that
    somebody else creates; `is_concurrent` is the feature gate ConcurrentAdmission. Resources that begin with
    one of `excluded` are not counted, others as `transformations` say.
    """

    external_checks: frozenset[str] = frozenset()
    is_concurrent: bool = False
    excluded: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()

    @property
    def counts_as_written(self) -> bool:
        """Whether quota counts what pods ask for, and nothing else."""
        return not self.excluded and not self.transformations

    def is_excluded(self, resource: str) -> bool:
        """Whether quota leaves a resource out."""
        return resource.startswith(self.excluded)

    def of(self, resource: str) -> Transformation | None:
        """What is counted for a resource; None for itself alone."""
        return next((one for one in self.transformations if one.resource == resource), None)


UNCONFIGURED = ManagerSettings()
