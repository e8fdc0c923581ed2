"""A spec with a template as one document, in which every place is in the file that contains the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.findings import FieldPath, Fix, Location
from gangplan.records import dataclass
from gangplan.source import Document
from gangplan.spec.placeholders import (
    PARAMETER_PREFIX,
    GivenValue,
    fill_scalar,
    find_template_placeholders,
    list_parameters_at,
)


@dataclass(frozen=True, slots=True)
class Argument:
    """The value of a parameter, and its place: in the spec, or as a default in a template."""

    given: GivenValue
    document: Document
    path: FieldPath


@dataclass(frozen=True, slots=True)
class Layer:
    """A file with fields of the job, which are below `prefix` in its document, and values for
    placeholders."""

    document: Document
    prefix: FieldPath
    arguments: Mapping[str, Argument]

    @property
    def value(self) -> Any:
        """The fields as written."""
        value = self.document.value
        for step in self.prefix:
            value = value[step]
        return value

    @property
    def given(self) -> dict[str, GivenValue]:
        """The values of the placeholders."""
        return {name: one.given for name, one in self.arguments.items()}


def merge_job_template_fields(over: Any, under: Any) -> Any:
    """Merge two layers of fields: mappings are merged, any other value in `over` replaces that in `under`.

    An empty field in `over` removes the field of `under`.
    """
    if not isinstance(over, dict) or not isinstance(under, dict):
        return over
    found = dict(under)
    for key, item in over.items():
        if key not in under:
            found[key] = item
        elif item is None:
            del found[key]
        else:
            found[key] = merge_job_template_fields(item, under[key])
    return found


class FilledDocument(Document):
    """The document of a spec with a template: the spec over its template, over what that extends."""

    __slots__ = ("_layers",)

    def __init__(self, value: Mapping[str, Any], layers: Sequence[Layer]) -> None:
        """Store the whole job as `value`; `layers` begin with the spec itself."""
        super().__init__(layers[0].document.file, value, "")
        self._layers = tuple(layers)

    def _layer(self, path: FieldPath) -> tuple[Layer, FieldPath]:
        """Return the layer with the value at a path, or at its nearest ancestor, and the path in its
        document."""
        levels = [(one, one.value) for one in self._layers]
        for step in path:
            below = list(_list_job_template_layers_at_step(levels, step))
            if not below:
                break
            levels = below
        layer = levels[0][0]
        return layer, (*layer.prefix, *path)

    def _filled(self, layer: Layer, path: FieldPath) -> tuple[str | None, list[Argument]]:
        """Return the scalar at a path as written in its file, and the values that are filled into it."""
        found = layer.document.text(path)
        names = [one.name for one in find_template_placeholders(found)] if found and layer.arguments else []
        return found, [layer.arguments[name] for name in names]

    def _shown(self, path: FieldPath) -> tuple[Document, FieldPath]:
        """Return the document and path of the value at a path.

        If a parameter is filled in that the spec sets, or that is the whole value, it is the parameter's
        value, else the field.
        """
        layer, there = self._layer(path)
        found, arguments = self._filled(layer, there)
        is_whole = found is not None and found.startswith("${{") and found.endswith("}}")
        for one in arguments:
            if (is_whole and len(arguments) == 1) or one.document is self._layers[0].document:
                return one.document, one.path
        return layer.document, there

    def where(self, path: FieldPath, key: bool = False) -> Location:
        """Return the place of the value, or of its key, in the file that contains it."""
        if key:
            layer, there = self._layer(path)
            return layer.document.where(there, key=True)
        document, there = self._shown(path)
        return document.where(there)

    def home(self, path: FieldPath) -> tuple[str, FieldPath]:
        """Return the file that contains the value at a path, and the path in that file."""
        document, there = self._shown(path)
        return document.home(there)

    def through(self, path: FieldPath) -> tuple[tuple[str, FieldPath], ...]:
        """Return where the value at a path has a parameter, and where these have their values."""
        layer, there = self._layer(path)
        names = list_parameters_at(layer.document.value, there)
        found = [layer.document.home(there)] if names else [*layer.document.through(there)]
        for name in sorted(names):
            if one := layer.arguments.get(f"{PARAMETER_PREFIX}{name}"):
                found += [one.document.home(one.path), *one.document.through(one.path)]
        return tuple(found)

    def text(self, path: FieldPath) -> str | None:
        """Return the scalar as it would be written in a single file."""
        layer, there = self._layer(path)
        found = layer.document.text(there)
        if found is None or not layer.arguments:
            return found
        filled = fill_scalar(found, layer.given)
        return found if filled is None else filled

    def is_quoted(self, path: FieldPath) -> bool:
        """Return whether the value at a path can only be text."""
        layer, there = self._layer(path)
        _, arguments = self._filled(layer, there)
        if len(arguments) == 1:
            return arguments[0].document.is_quoted(arguments[0].path)
        return layer.document.is_quoted(there)

    def inside(self, path: FieldPath, offset: int) -> Location:
        """Return the place of a character; if the value is filled in, that of the whole value."""
        layer, there = self._layer(path)
        if self._filled(layer, there)[1]:
            return self.where(path)
        return layer.document.inside(there, offset)

    def fix(self, path: FieldPath, replacement: str, why: str, key: bool = False) -> Fix | None:
        """Return the fix of the spec; None for a value in a template, which other specs use as well."""
        layer, there = self._layer(path)
        return layer.document.fix(there, replacement, why, key=key) if layer is self._layers[0] else None

    def like(self, path: FieldPath, text: str) -> str | None:
        """Return another value for the path in the style of the current one."""
        layer, there = self._layer(path)
        return layer.document.like(there, text)

    def __getstate__(self) -> Any:
        return self.value, self._layers

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _list_job_template_layers_at_step(
    levels: Sequence[tuple[Layer, Any]], step: str | int
) -> Iterator[tuple[Layer, Any]]:
    """Yield the layers with a value at a step: all that are mappings there, and the first that is not."""
    for layer, value in levels:
        is_entry = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not is_entry and not (isinstance(value, dict) and step in value):
            continue
        inner = value[step]
        yield layer, inner
        if not isinstance(inner, dict):
            return
