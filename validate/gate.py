"""The checks of every object: its schema, then the consistency of its parts, then the rules of its CRD."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from gangplan.validate import consistency, dropped
from gangplan.validate.apiserver.crdrules.check import check_crd_rules as crd_problems
from gangplan.validate.apiserver.schema import SchemaVersions
from gangplan.validate.apiserver.schema import check_object_against_api_schema as schema_problems
from gangplan.validate.problems import Problem
from gangplan.validate.trainer import lifecycle


def find_object_problems(
    bodies: Sequence[dict[str, Any]], versions: SchemaVersions, shown: Sequence[bool] = ()
) -> list[list[Problem]]:
    """Return the problems of each object of a run or a tenant, in the order of the objects; never raises.

    Consistency checks read only objects that fit their schema, so a value of the wrong type is reported once.
    `shown` marks objects whose shape the schemas have already accepted; empty if that is not known.
    """
    known = shown or repeat(False, len(bodies))
    found = [schema_problems(body, versions, one) for body, one in zip(bodies, known, strict=True)]
    good = [body for body, problems in zip(bodies, found, strict=True) if not problems]
    return [
        problems or consistency.check_object_consistency(body, good, versions) or crd_problems(body, versions)
        for body, problems in zip(bodies, found, strict=True)
    ]


def judge_built(
    bodies: Sequence[dict[str, Any]], versions: SchemaVersions, shown: Sequence[bool] = ()
) -> list[list[Problem]]:
    """Return what `find_object_problems` returns, and for objects that servers accept, what goes wrong
    later."""
    found = find_object_problems(bodies, versions, shown)
    good = [body for body, problems in zip(bodies, found, strict=True) if not problems]
    return [
        problems
        or [
            *lifecycle.check_trainer_lifecycle_traps(body, good, versions),
            *dropped.check_fields_that_server_drops(body),
        ]
        for body, problems in zip(bodies, found, strict=True)
    ]
