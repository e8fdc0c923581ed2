"""What the policies of a cluster need from the project that applies them."""

from __future__ import annotations

from gangplan.records import dataclass

# Group and kind.
Kinds = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Guardrails:
    """The prefix of policy names; the namespaces of parameters, and their cluster-scoped and namespaced
    kinds."""

    prefix: str = "gangplan-"
    namespaces: tuple[str, ...] = ("gangplan-policies",)
    wide: Kinds = ()
    spaced: Kinds = ()


# What packs need, which any cluster may list one day.
NO_POLICIES = Guardrails()
