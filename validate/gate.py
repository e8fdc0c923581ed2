"""The gate that every object passes: its schema, then what its parts say together, then its CRD's rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from gangplan.validate import consistency, dropped
from gangplan.validate.apiserver.crdrules.check import problems as crd_problems
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import problems as schema_problems
from gangplan.validate.problems import Problem
from gangplan.validate.trainer import lifecycle


def judge(
    bodies: Sequence[dict[str, Any]], versions: SchemaVersions, shown: Sequence[bool] = ()
) -> list[list[Problem]]:
    """The problems of each object of a run or a tenant, in the order of the objects; never raises.

    The rules read only objects that fit their schema: what is of the wrong type is told once. `shown`: which
    objects show their schemas nothing that good ones have not shown; none where that is not known.
    """
    known = shown or repeat(False, len(bodies))
    found = [schema_problems(body, versions, one) for body, one in zip(bodies, known, strict=True)]
    good = [body for body, problems in zip(bodies, found, strict=True) if not problems]
    return [
        problems or consistency.problems(body, good, versions) or crd_problems(body, versions)
        for body, problems in zip(bodies, found, strict=True)
    ]


def judge_built(
    bodies: Sequence[dict[str, Any]], versions: SchemaVersions, shown: Sequence[bool] = ()
) -> list[list[Problem]]:
    """As `judge`, and for objects that servers accept the traps that they set for later."""
    return [
        problems or [*lifecycle.problems(body, bodies, versions), *dropped.problems(body)]
        for body, problems in zip(bodies, judge(bodies, versions, shown), strict=True)
    ]
