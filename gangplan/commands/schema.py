"""`gangplan schema print`."""

from __future__ import annotations

import json
import sys

from gangplan.errors import Exit
from gangplan.reference.schemas import schema_of


def print_schema(kind: str) -> Exit:
    """Print it."""
    sys.stdout.write(json.dumps(schema_of(kind), indent=2, ensure_ascii=False) + "\n")
    return Exit.CLEAN
