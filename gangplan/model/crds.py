"""The CRDs that a workspace imported (`gangplan schema import`), as stored in their files."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from gangplan.records import dataclass

_NAMES = ("group", "kind", "plural", "scope")


@dataclass(frozen=True, slots=True)
class CrdFiles:
    """The texts of the files that apply to a cluster. Of two with the same kind, the later one wins."""

    texts: tuple[str, ...] = ()


NO_CRDS = CrdFiles()


@lru_cache(maxsize=256)
def read_crd(text: str) -> dict[str, Any]:
    """Return the content of one file.

    Raises ValueError, in words for the owner of the file, if gangplan did not write it.
    """
    try:
        crd = json.loads(text)
    except json.JSONDecodeError as bad:
        raise ValueError(f"it is not JSON (line {bad.lineno}, column {bad.colno})") from None
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    if not isinstance(crd, dict):
        raise ValueError("it is not a JSON object")
    missing = next((name for name in _NAMES if not isinstance(crd.get(name), str)), None)
    if missing is not None:
        raise ValueError(f"{missing} is missing")
    versions = crd.get("versions")
    if not isinstance(versions, dict) or not all(isinstance(schema, dict) for schema in versions.values()):
        raise ValueError("versions are missing")
    return crd
