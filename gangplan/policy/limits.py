"""The size limits of applied policies: names with gangplan's prefix, and parameters in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gangplan.findings import Finding
from gangplan.objects import BINDING_KIND, POLICY_KIND
from gangplan.packs.read import PolicySource
from gangplan.policy.objects import POLICY_PREFIX
from gangplan.rules.policy import POLICY_INVALID
from gangplan.validate.apiserver.policy.model import PlacedObject

# Source: validation.go of apimachinery and of core (MaxSecretSize, for ConfigMaps too), v1.34.
LONGEST_NAME, LARGEST_MAP = 253, 1024 * 1024


def check_policy_sizes(sources: Iterable[PolicySource]) -> Iterator[Finding]:
    """Yield findings for objects that fit as written but exceed a limit of the API server as applied."""
    for source in sources:
        written = PlacedObject(source.body, source.document, source.file)
        metadata, data = source.body.get("metadata") or {}, source.body.get("data") or {}
        name = str(metadata.get("name")) if isinstance(metadata, dict) else ""
        if source.body.get("kind") in (POLICY_KIND, BINDING_KIND) and len(name) > LONGEST_NAME - len(
            POLICY_PREFIX
        ):
            most = LONGEST_NAME - len(POLICY_PREFIX)
            message = (
                f"the name has {len(name)} characters; with '{POLICY_PREFIX}' before it {most} are the most"
            )
            yield Finding(POLICY_INVALID, written.where(("metadata", "name")), message, "Shorten the name.")
        size = sum(len(str(one).encode()) for one in data.values()) if isinstance(data, dict) else 0
        if size > LARGEST_MAP:
            message = (
                f"the parameters of policy '{name.removeprefix(POLICY_PREFIX)}' have {size} bytes;"
                f" a ConfigMap holds {LARGEST_MAP} at most"
            )
            help = "Shorten its lists: remove images, scans or claims that nobody uses."
            yield Finding(POLICY_INVALID, written.where(), message, help)
