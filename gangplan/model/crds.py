"""The CRDs that a workspace took in (`gangplan schema import`), as their files hold them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class CrdFiles:
    """The texts of the files that hold for a cluster; of two with one kind, the later wins."""

    texts: tuple[str, ...] = ()


NO_CRDS = CrdFiles()


@lru_cache(maxsize=256)
def read_crd(text: str) -> dict[str, Any]:
    """What one file says. Raises ValueError for one that gangplan did not write."""
    try:
        crd: dict[str, Any] = json.loads(text)
        for name in ("group", "kind", "plural", "scope"):
            if not isinstance(crd[name], str):
                raise ValueError(f"{name} is no text")
        if not all(isinstance(schema, dict) for schema in crd["versions"].values()):
            raise ValueError("a version is no schema")
    except (KeyError, TypeError, AttributeError) as bad:
        raise ValueError(f"{type(bad).__name__}: {bad}") from None
    return crd
