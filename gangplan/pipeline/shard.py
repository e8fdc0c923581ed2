"""A part of the specs, for one machine of several: all specs of a team stay together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from gangplan.errors import UserError
from gangplan.records import dataclass
from gangplan.workspace import SPECS

_WRITTEN = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")


@dataclass(frozen=True, slots=True)
class SpecShard:
    """Part `number` of `of`, from 1. The first one also reports what is about no spec: platform, tenants."""

    number: int
    of: int

    @property
    def is_first(self) -> bool:
        """Whether it also reports what is about no spec."""
        return self.number == 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_shard_flag(text: str) -> SpecShard:
    """Read the shard of a flag, `3/8`. Raises UserError."""
    written = _WRITTEN.fullmatch(text)
    shard = SpecShard(*map(int, written.groups())) if written else None
    if shard is None or shard.number > shard.of:
        raise UserError(
            f"--shard {text} is not a part of a whole", "Write --shard 3/8 for the third of eight."
        )
    return shard


def select_shard_teams(shard: SpecShard, teams: Iterable[str]) -> frozenset[str]:
    """Return the teams of a shard; `teams` has the team of each spec.

    The team with the most specs goes first, each to the shard that has the fewest so far; ties are broken by
    name and number. So no shard has more specs than the one with the fewest and the largest team together.
    """
    loads = [0] * shard.of
    found = set()
    for team, count in sorted(Counter(teams).items(), key=lambda item: (-item[1], item[0])):
        least = loads.index(min(loads))
        loads[least] += count
        if least + 1 == shard.number:
            found.add(team)
    return frozenset(found)


def parse_spec_team(file: str) -> str:
    """Return the team whose spec a file is, by its path from the root; empty for every other file."""
    top, team, *rest = [*file.split("/"), ""]
    return team if top == SPECS and rest and rest[0] not in ("", "team.yaml") else ""
