"""What the policies of a cluster need of the project that applies them."""

from __future__ import annotations

from gangplan.records import dataclass

# Group and kind.
Kinds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Guardrails:
    """How names of policies begin; the namespaces of parameters, their cluster-scoped, namespaced kinds."""

    prefix: str = "gangplan-"
    namespaces: tuple[str, ...] = ("gangplan-policies",)
    wide: Kinds = ()
    spaced: Kinds = ()


# Those of packs, which any cluster may list one day.
NO_POLICIES = Guardrails()
