"""The one function of this package."""

from __future__ import annotations

from typing import Any

from gangplan.validate.defaulting import admitted, builtin, crds
from gangplan.validate.defaulting.paths import copied, fill
from gangplan.validate.schema import SchemaVersions

Body = dict[str, Any]


def with_defaults(body: Body, versions: SchemaVersions) -> Body:
    """A copy of the object with all that the server fills in; fields of the wrong type are left alone."""
    result: Body = copied(body)
    fill(result, crds.table(body.get("apiVersion"), body.get("kind"), versions))
    builtin.fill_in(result)
    admitted.fill_in(result, versions)
    return result
