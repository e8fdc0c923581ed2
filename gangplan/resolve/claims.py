"""What a team can write to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gangplan.spec.team import Claim


def writable(claims: Mapping[str, Claim], connections: Iterable[str]) -> str:
    """A help that names what checkpoints can be written to."""
    names = [
        name
        for name, claim in claims.items()
        if not claim.read_only and set(claim.access_modes) != {"ReadOnlyMany"}
    ]
    names += [name for name in connections if name not in names]
    if not names:
        return "Ask for a writable claim: accessModes: [ReadWriteMany] in team.yaml."
    return f"Use a writable one: {', '.join(names)}."
