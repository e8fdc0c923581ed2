"""All implementations, by overload id and by function."""

from __future__ import annotations

from gangplan.cel.library import (
    comprehensions,
    conversions,
    core,
    formats,
    formatting,
    lists,
    net,
    optional,
    quantity,
    regex,
    semver,
    sets,
    strings,
    times,
    url,
)
from gangplan.cel.library.base import Implementation

_MODULES = (
    comprehensions,
    conversions,
    core,
    formats,
    formatting,
    lists,
    net,
    optional,
    quantity,
    regex,
    semver,
    sets,
    strings,
    times,
    url,
)

# By overload id.
OVERLOADS: dict[str, Implementation] = {
    overload.id: overload for module in _MODULES for overload in module.TABLE
}


def _group_overloads_by_function() -> dict[str, tuple[Implementation, ...]]:
    found: dict[str, list[Implementation]] = {}
    for overload in OVERLOADS.values():
        found.setdefault(overload.function, []).append(overload)
    return {function: tuple(listed) for function, listed in found.items()}


# By function name, in the order in which they are tried.
FUNCTIONS: dict[str, tuple[Implementation, ...]] = _group_overloads_by_function()
