"""The one function of this package."""

from __future__ import annotations

from typing import Any

from gangplan.validate.apiserver.defaulting import admitted, builtin, crds
from gangplan.validate.apiserver.defaulting.paths import copied, fill
from gangplan.validate.apiserver.defaulting.structural import fill_object
from gangplan.validate.apiserver.schema import SchemaVersions

Body = dict[str, Any]


def with_defaults(body: Body, versions: SchemaVersions) -> Body:
    """A copy of the object with all that the server fills in; fields of the wrong type are left alone.

    A CRD that the workspace took in is the cluster's own: its defaults count, and the tables do not.
    """
    result: Body = copied(body)
    api_version, kind = body.get("apiVersion"), body.get("kind")
    schema = versions.crds.schema(str(api_version), str(kind)) if versions.crds else None
    if schema is not None:
        fill_object(result, schema)
    else:
        fill(result, crds.table(api_version, kind, versions))
    builtin.fill_in(result)
    admitted.fill_in(result, versions)
    return result
