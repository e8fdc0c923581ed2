"""The tables valid.yaml and broken.yaml as test cases: objects, and the cluster versions for each."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gangplan.validate.apiserver.schema import SchemaVersions
from tests import plain

HERE = Path(__file__).parent
# The combinations that clusters really have; the other Kubernetes minor versions are in EVERY_KUBERNETES.
CLUSTERS = [
    SchemaVersions("1.30", "2.1", "0.15", "0.10"),
    SchemaVersions("1.34", "2.2", "0.17", "0.11"),
    SchemaVersions("1.34", "2.3", "0.19", "0.12"),
]
EVERY_KUBERNETES = [f"1.{minor}" for minor in range(30, 38)]
EVERY_KUEUE = [f"0.{minor}" for minor in range(15, 20)]


@dataclass(frozen=True)
class Good:
    """One document of valid.yaml."""

    name: str
    body: dict[str, Any]
    only: dict[str, list[str]]

    def clusters(self, only: dict[str, list[str]] | None = None) -> Iterator[SchemaVersions]:
        """Yield the clusters for which the object is valid."""
        limits = {**self.only, **(only or {})}
        for cluster in CLUSTERS:
            for kueue in limits.get("kueue", [cluster.kueue]):
                at = SchemaVersions(cluster.kubernetes, cluster.trainer, kueue, cluster.jobset)
                is_served = at.kubernetes in limits.get("kubernetes", [at.kubernetes])
                if is_served and at.trainer in limits.get("trainer", [at.trainer]):
                    yield at


@cache
def valid() -> dict[str, Good]:
    """Return valid.yaml by name."""
    documents = plain.load_all((HERE / "valid.yaml").read_text(encoding="utf-8"))
    return {one["name"]: Good(one["name"], one["object"], one.get("versions", {})) for one in documents}


@cache
def broken() -> list[dict[str, Any]]:
    """Return broken.yaml."""
    cases: list[dict[str, Any]] = plain.load((HERE / "broken.yaml").read_text(encoding="utf-8"))
    return cases


def broken_object(case: dict[str, Any]) -> dict[str, Any]:
    """Return the valid object with the case's one change."""
    body = deepcopy(valid()[case["object"]].body)
    *way, last = case["at"]
    node: Any = body
    for step in way:
        node = node[step]
    if case.get("drop"):
        del node[last]
    else:
        node[last] = case["put"]
    return body


def nodes(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every field and list entry of an object."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in entries:
        yield (*path, key)
        yield from nodes(item, (*path, key))
