"""The configuration of Kueue's manager on a cluster, as far as it affects runs."""

from __future__ import annotations

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Transformation:
    """What quota counts instead of a resource, or in addition to it: `outputs` are in billionths per whole
    unit."""

    resource: str
    outputs: tuple[tuple[str, int], ...]
    replaces: bool


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """Settings of the manager, and of controllers next to it.

    `external_checks` are admission checks that are created elsewhere; `is_concurrent` is the feature gate
    ConcurrentAdmission. Resources that begin with one of `excluded` are not counted, others as
    `transformations` say, and devices that pods claim under the resource of their class, in `device_classes`.
    """

    external_checks: frozenset[str] = frozenset()
    is_concurrent: bool = False
    excluded: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()
    device_classes: tuple[tuple[str, str], ...] = ()

    @property
    def counts_as_written(self) -> bool:
        """Whether quota counts exactly what pods request."""
        return not self.excluded and not self.transformations

    def is_excluded(self, resource: str) -> bool:
        """Return whether quota ignores a resource."""
        return resource.startswith(self.excluded)

    def of(self, resource: str) -> Transformation | None:
        """Return how a resource is transformed; None if it is counted as it is."""
        return next((one for one in self.transformations if one.resource == resource), None)


UNCONFIGURED_MANAGER = ManagerSettings()


def format_claim_quota_key(device_class: str) -> str:
    """Return the resource of a ResourceQuota for devices that claims ask for.

    Kubernetes v1.34, pkg/quota/v1/evaluator/core/resource_claims.go.
    """
    return f"{device_class}.deviceclass.resource.k8s.io/devices"
