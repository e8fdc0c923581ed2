"""The entry points of this package: an object as the server holds it, at rest and in a request."""

from __future__ import annotations

from typing import Any

from gangplan.objects import Body
from gangplan.validate.apiserver.defaulting import admitted, builtin, crds
from gangplan.validate.apiserver.defaulting.structural import fill_structural_object_defaults
from gangplan.validate.apiserver.schema import SchemaVersions


def fill_api_server_defaults(body: Body, versions: SchemaVersions) -> Body:
    """Return the object with everything that the server fills in; fields of the wrong type are left alone.

    Complete parts are not copied, so neither the object nor the result may be changed afterwards. For a kind
    that the workspace imported, the defaults of that CRD count instead of the tables.
    """
    api_version, kind = body.get("apiVersion"), body.get("kind")
    schema = versions.crds.schema(str(api_version), str(kind)) if versions.crds else None
    if schema is not None:
        result: Body = _copy_value_as_api_server_json(body)
        fill_structural_object_defaults(result, schema)
    else:
        result = crds.find_crd_filling(api_version, kind, versions).of(body)
    return admitted.fill_kueue_webhook_defaults(builtin.fill_builtin_defaults(result), versions)


def build_admission_request_objects(
    body: Body, old: Body | None, versions: SchemaVersions
) -> tuple[Body, Body | None]:
    """Return an object and the one that it replaces, as policies see them in a create or update request.

    The status in the request is ignored if the kind has a status subresource: a new object starts without
    one, a changed one keeps the one it has (PrepareForCreate and PrepareForUpdate of Kubernetes v1.34 and of
    custom resources with the subresource `status`).
    """
    if not _has_status_subresource(body, versions):
        return fill_api_server_defaults(body, versions), None if old is None else fill_api_server_defaults(
            old, versions
        )
    plain = {name: value for name, value in body.items() if name != "status"} if "status" in body else body
    if old is None:
        return fill_api_server_defaults(plain, versions), None
    earlier = fill_api_server_defaults(old, versions)
    if "status" in earlier:
        plain = {**plain, "status": earlier["status"]}
    return fill_api_server_defaults(plain, versions), earlier


def _has_status_subresource(body: Body, versions: SchemaVersions) -> bool:
    """Return whether the kind has a status subresource; False for unknown kinds."""
    api_version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    if versions.crds is not None and versions.crds.schema(api_version, kind) is not None:
        return versions.crds.has_status(api_version, kind)
    return (api_version, kind) in builtin.BUILTIN_DEFAULTS or (
        api_version.rpartition("/")[0],
        kind,
    ) in crds.CRD_DEFAULTS


def _copy_value_as_api_server_json(value: Any) -> Any:
    """Copy a value as a server reads it from JSON: whole numbers beyond 64 bits become floats."""
    if isinstance(value, dict):
        return {key: _copy_value_as_api_server_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy_value_as_api_server_json(inner) for inner in value]
    if type(value) is int and not -(2**63) <= value < 2**63:
        return float(value)
    return value
