"""Every campaign by name, and how much longer its cases take than texts."""

from __future__ import annotations

import random
from pathlib import Path

from tests.fuzz.base import Campaign, Stories
from tests.fuzz.killing import KILL
from tests.fuzz.odd import TOOLS
from tests.fuzz.orders import COMMANDS, CRDS
from tests.fuzz.spaces import WORKSPACES
from tests.fuzz.strings import STRINGS
from tests.fuzz.texts import CEL, QUANTITY, REGEX, YAML
from tests.incremental import edits


def _edits(chance: random.Random, folder: Path) -> None:
    edits.story(folder, chance.randrange(1 << 30), 30)


CAMPAIGNS: dict[str, Campaign] = {
    "yaml": YAML,
    "quantities": QUANTITY,
    "commands": COMMANDS,
    "cel": CEL,
    "regex": REGEX,
    "crds": CRDS,
    "tools": TOOLS,
    "kill": KILL,
    "workspaces": WORKSPACES,
    "strings": STRINGS,
    "edits": Stories(_edits),
}
# How many texts are tried in the time of one case: COUNT counts texts.
SIZES = {"workspaces": 20, "strings": 20, "tools": 20, "kill": 200, "edits": 500}
