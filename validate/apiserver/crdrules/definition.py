"""What a server refuses in a CRD apart from its schemas: names, versions, conversion, subresources, columns.

Source: apiextensions-apiserver v0.34, pkg/apis/apiextensions/validation/validation.go, and
pkg/apihelpers/helpers.go for the approval of Kubernetes' own groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

Place = tuple[str | int, ...]
Found = Iterator[tuple[Place, str]]
ReadOnlyBody = Mapping[str, Any]

_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_COLUMNS = ("integer", "number", "string", "boolean", "date")
_FORMATS = ("int32", "int64", "float", "double", "byte", "date", "date-time", "password")
_APPROVED = "api-approved.kubernetes.io"
_SCALARS = ("string", "boolean", "integer")
_MOST_SELECTABLE = 8


def check_crd_definition(crd: ReadOnlyBody) -> Found:
    """Yield the path in the CRD and the mistake there.

    The types of the fields must have been checked before.
    """
    spec = crd["spec"]
    yield from _check_crd_names(spec["names"], ("spec", "names"))
    yield from _check_crd_approval(crd)
    if spec.get("preserveUnknownFields"):
        help = "x-kubernetes-preserve-unknown-fields: true in a schema says the same for a part"
        yield ("spec", "preserveUnknownFields"), f"it cannot be true; {help}"
    versions = [one for one in spec["versions"] if isinstance(one, dict)]
    if sum(one.get("storage") is True for one in versions) != 1:
        yield ("spec", "versions"), "not exactly one version has storage: true"
    for index, one in enumerate(versions):
        yield from _check_crd_version(one, ("spec", "versions", index))
    yield from _check_crd_conversion(spec.get("conversion"), ("spec", "conversion"))


def _check_crd_names(names: ReadOnlyBody, at: Place) -> Found:
    for name in ("singular", "listKind"):
        value = names.get(name)
        text = value.lower() if name == "listKind" and isinstance(value, str) else value
        if value and not _is_label(text):
            yield (*at, name), f"{name} is not a DNS label"
    if names.get("listKind") and names["listKind"] == names["kind"]:
        yield (*at, "listKind"), "kind and listKind are the same"
    for name in ("shortNames", "categories"):
        for index, value in enumerate(names.get(name) or ()):
            if not _is_label(value):
                yield (*at, name, index), f"an entry of {name} is not a DNS label"


def _is_label(value: Any) -> bool:
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None


def _check_crd_approval(crd: ReadOnlyBody) -> Found:
    group = crd["spec"]["group"]
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in ("k8s.io", "kubernetes.io"):
        return
    value = (crd["metadata"].get("annotations") or {}).get(_APPROVED) or ""
    url = urlsplit(str(value))
    if not str(value).startswith("unapproved") and not (url.scheme and url.netloc):
        where: Place = ("metadata", "annotations", _APPROVED) if value else ("metadata",)
        yield where, f"groups of Kubernetes need the annotation {_APPROVED}: a URL, or unapproved"


def _check_crd_version(version: ReadOnlyBody, at: Place) -> Found:
    warning = version.get("deprecationWarning")
    if warning is not None and (not version.get("deprecated") or not str(warning).strip()):
        yield (*at, "deprecationWarning"), "it is not empty, and needs deprecated: true"
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        for name, below in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
            if not str(scale.get(name) or "").startswith(below):
                yield (*at, "subresources", "scale"), f"{name} is not a path below {below[:-1]}"
        labels = scale.get("labelSelectorPath")
        if labels and not str(labels).startswith((".spec.", ".status.")):
            yield (*at, "subresources", "scale"), "labelSelectorPath is not a path below .spec or .status"
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _check_crd_printer_column(column, (*at, "additionalPrinterColumns", index))
    yield from _check_crd_selectable_fields(version, at)


def _check_crd_printer_column(column: ReadOnlyBody, at: Place) -> Found:
    if not column.get("name"):
        yield at, "a column has no name"
    if column.get("type") not in _COLUMNS:
        yield at, f"the type of a column is none of {', '.join(_COLUMNS)}"
    if column.get("format") and column["format"] not in _FORMATS:
        yield (*at, "format"), f"the format of a column is none of {', '.join(_FORMATS)}"
    if not str(column.get("jsonPath") or "").startswith("."):
        yield at, "the jsonPath of a column does not begin with a dot"


def _check_crd_selectable_fields(version: ReadOnlyBody, at: Place) -> Found:
    seen: list[str] = []
    for index, entry in enumerate(version.get("selectableFields") or ()):
        path = str(entry.get("jsonPath") or "")
        place = (*at, "selectableFields", index)
        found: Any = version["schema"]["openAPIV3Schema"]
        for step in path.removeprefix(".").split("."):
            found = (found.get("properties") or {}).get(step) or {}
        if not path.startswith(".") or found.get("type") not in _SCALARS or path.startswith(".metadata."):
            yield place, "jsonPath does not lead to a text, a whole number or true or false of the schema"
        elif path in seen:
            yield place, f"the field {path} is there twice"
        seen.append(path)
    if len(set(seen)) > _MOST_SELECTABLE:
        yield (*at, "selectableFields"), f"at most {_MOST_SELECTABLE} fields can be selected by"


def _check_crd_conversion(conversion: Any, at: Place) -> Found:
    if not isinstance(conversion, dict):
        return
    strategy, webhook = conversion.get("strategy"), conversion.get("webhook") or {}
    if strategy not in ("None", "Webhook"):
        yield (*at, "strategy"), "the strategy is neither None nor Webhook"
        return
    if strategy == "None":
        if webhook:
            yield (*at, "webhook"), "a webhook needs strategy: Webhook"
        return
    client = webhook.get("clientConfig") or {}
    if (client.get("url") is None) == (client.get("service") is None):
        yield at, "strategy: Webhook needs clientConfig with a url or a service, not both"
        return
    if client.get("url") is not None and not str(client["url"]).startswith("https://"):
        yield (*at, "webhook", "clientConfig", "url"), "the url does not begin with https://"
    reviewed = webhook.get("conversionReviewVersions") or []
    if not {"v1", "v1beta1"} & set(map(str, reviewed)) or len(set(map(str, reviewed))) < len(reviewed):
        yield (*at, "webhook"), "conversionReviewVersions names neither v1 nor v1beta1, or one twice"
