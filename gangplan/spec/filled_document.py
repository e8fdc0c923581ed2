"""A spec by template as if all of it stood in one file; every place is one in the file that says the value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gangplan.findings import Fix, Location
from gangplan.records import dataclass
from gangplan.source import Document, Path
from gangplan.spec.placeholders import Given, placeholders, written


@dataclass(frozen=True, slots=True)
class Argument:
    """The value of a parameter, and where it stands: in the spec, or as a default in a template."""

    given: Given
    document: Document
    path: Path


@dataclass(frozen=True, slots=True)
class Layer:
    """A file that says fields of the job: below `prefix` of its document, with values for placeholders."""

    document: Document
    prefix: Path
    arguments: Mapping[str, Argument]

    @property
    def value(self) -> Any:
        """Its fields as written."""
        value = self.document.value
        for step in self.prefix:
            value = value[step]
        return value

    @property
    def given(self) -> dict[str, Given]:
        """What its placeholders stand for."""
        return {name: one.given for name, one in self.arguments.items()}


def merged(over: Any, under: Any) -> Any:
    """Two layers of fields as one: mappings are joined, whatever else is in `over` replaces what is in `under`.

    A field that is empty in `over` is taken out of `under`.
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
            found[key] = merged(item, under[key])
    return found


class FilledDocument(Document):
    """The document of a spec by template: the spec over its template, over what that extends."""

    __slots__ = ("_layers",)

    def __init__(self, value: Mapping[str, Any], layers: Sequence[Layer]) -> None:
        """`value` is the whole job; `layers` begin with the spec itself."""
        super().__init__(layers[0].document.file, value, "")
        self._layers = tuple(layers)

    def _layer(self, path: Path) -> tuple[Layer, Path]:
        """The layer that says the value at a path, or at its nearest ancestor, and the path in its document."""
        levels = [(one, one.value) for one in self._layers]
        for step in path:
            below = list(_below(levels, step))
            if not below:
                break
            levels = below
        layer = levels[0][0]
        return layer, (*layer.prefix, *path)

    def _filled(self, layer: Layer, path: Path) -> tuple[str | None, list[Argument]]:
        """The scalar there as written in its file, and the values that are filled into it."""
        found = layer.document.text(path)
        names = [one.name for one in placeholders(found)] if found and layer.arguments else []
        return found, [layer.arguments[name] for name in names]

    def _shown(self, path: Path) -> tuple[Document, Path]:
        """What holds the value at a path: the parameter's, where one is filled in that the spec gives, or that is
        all; else the field."""
        layer, there = self._layer(path)
        found, arguments = self._filled(layer, there)
        is_whole = found is not None and found.startswith("${{") and found.endswith("}}")
        for one in arguments:
            if (is_whole and len(arguments) == 1) or one.document is self._layers[0].document:
                return one.document, one.path
        return layer.document, there

    def where(self, path: Path, key: bool = False) -> Location:
        """The place of the value in the file that says it, or of its key."""
        if key:
            layer, there = self._layer(path)
            return layer.document.where(there, key=True)
        document, there = self._shown(path)
        return document.where(there)

    def home(self, path: Path) -> tuple[str, Path]:
        """The file that says the value at a path, and the path there."""
        document, there = self._shown(path)
        return document.file, there

    def text(self, path: Path) -> str | None:
        """The scalar as it would be written in a file that says all."""
        layer, there = self._layer(path)
        found = layer.document.text(there)
        if found is None or not layer.arguments:
            return found
        filled = written(found, layer.given)
        return found if filled is None else filled

    def is_quoted(self, path: Path) -> bool:
        """Whether the value there is text and nothing else."""
        layer, there = self._layer(path)
        _, arguments = self._filled(layer, there)
        if len(arguments) == 1:
            return arguments[0].document.is_quoted(arguments[0].path)
        return layer.document.is_quoted(there)

    def inside(self, path: Path, offset: int) -> Location:
        """The place of a character; of the whole value where it is filled in."""
        layer, there = self._layer(path)
        if self._filled(layer, there)[1]:
            return self.where(path)
        return layer.document.inside(there, offset)

    def fix(self, path: Path, replacement: str, why: str, key: bool = False) -> Fix | None:
        """The fix of the spec; none in a template, which other specs have, too."""
        layer, there = self._layer(path)
        return layer.document.fix(there, replacement, why, key=key) if layer is self._layers[0] else None

    def like(self, path: Path, text: str) -> str | None:
        """How to write another value there."""
        layer, there = self._layer(path)
        return layer.document.like(there, text)

    def __getstate__(self) -> Any:
        return self.value, self._layers

    def __setstate__(self, state: Any) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _below(levels: Sequence[tuple[Layer, Any]], step: str | int) -> Iterator[tuple[Layer, Any]]:
    """The layers that say something at a step: all that are mappings there, up to the first that is not."""
    for layer, value in levels:
        is_entry = isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value)
        if not is_entry and not (isinstance(value, dict) and step in value):
            continue
        inner = value[step]
        yield layer, inner
        if not isinstance(inner, dict):
            return
