"""The account of an import: every leaf field of a source, its line, and what became of it.

A leaf is a scalar, or an empty mapping or list. A leaf that no reader marks becomes a question at the end, so
that nothing of a source is lost silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from gangplan.findings import FieldPath, Location
from gangplan.objects import walk_leaves
from gangplan.records import dataclass
from gangplan.source import Document

# mapped: it is in the spec or in a suggestion; defaulted: the run has it without a field in the spec;
# dropped: the run does not need it, `why` gives the reason; asked: a person must decide.
State = Literal["mapped", "defaulted", "dropped", "asked"]
LEAF_STATES: tuple[State, ...] = ("mapped", "defaulted", "dropped", "asked")

_UNKNOWN = "gangplan has no place for it"
_NULL = "null is as if it were not there"
_ASKED: tuple[State, str, str] = ("asked", "", _UNKNOWN)
# Mappings that mean nothing when they are empty.
_EMPTY = (("annotations",), ("labels",), ("nodeSelector",))


@dataclass(frozen=True, slots=True)
class LeafOutcome:
    """What became of one leaf: the field that it went `to`, or `why` it did not."""

    path: FieldPath
    where: Location
    value: Any
    state: State
    to: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The path as people write it: `spec.containers[0].image`."""
        return format_field_path_of_imported_job(self.path)


def format_field_path_of_imported_job(path: FieldPath) -> str:
    """Write a path of keys and indices as people do."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(whole)"


class Account:
    """What is known so far about the leaves of one source; `leaves` gives the place and value of each."""

    __slots__ = ("_document", "_leaves", "_marks", "_root", "file", "miscounts")

    def __init__(self, file: str, leaves: Mapping[FieldPath, tuple[Location, Any]], root: Any = None) -> None:
        self.file = file
        self._leaves = leaves
        self._marks: dict[FieldPath, tuple[State, str, str]] = {}
        self._root = root
        self._document: tuple[Document, FieldPath] | None = None  # and where the object is in it
        self.miscounts: list[SourceNode] = []  # where the source should say how many, and does not

    @classmethod
    def of(cls, document: Document, base: FieldPath = ()) -> Account:
        """Return the account of one object of a YAML document: the document itself, or its part at `base`."""
        value = document.value
        for part in base:
            value = value[part]
        leaves = {path: (document.where((*base, *path)), leaf) for path, leaf in walk_leaves(value)}
        found = cls(document.file, leaves, value)
        found._document = document, base
        return found

    def root(self) -> SourceNode:
        """Return the node at the top."""
        return SourceNode(self, (), self._root)

    def part(self, path: FieldPath) -> Account:
        """Return a separate account for an object inside this one."""
        value = self._root
        for key in path:
            value = value[key]
        depth = len(path)
        leaves = {leaf[depth:]: self._leaves[leaf] for leaf in self.below(path)}
        found = Account(self.file, leaves, value)
        if self._document is not None:
            found._document = self._document[0], (*self._document[1], *path)
        return found

    def without(self, key: str) -> Account:
        """Return the account of this object without what is below a key; both share their marks."""
        rest = Account(
            self.file, {leaf: one for leaf, one in self._leaves.items() if leaf[:1] != (key,)}, self._root
        )
        rest._marks, rest.miscounts, rest._document = self._marks, self.miscounts, self._document
        return rest

    def below(self, path: FieldPath) -> Iterator[FieldPath]:
        """Yield the leaves at or below a path."""
        if path in self._leaves:  # nothing is below a leaf
            return iter((path,))
        return (leaf for leaf in self._leaves if leaf[: len(path)] == path)

    def mark(self, path: FieldPath, state: State, to: str = "", why: str = "") -> None:
        """Record what became of the unmarked leaves at or below a path."""
        for leaf in self.below(path):
            self._marks.setdefault(leaf, (state, to, why))

    def remark(self, path: FieldPath, state: State, to: str = "", why: str = "") -> None:
        """Record it even for leaves that are already marked."""
        for leaf in self.below(path):
            self._marks[leaf] = (state, to, why)

    def where(self, path: FieldPath) -> Location:
        """Return the place of the first leaf at or below a path, else the file."""
        leaf = next(self.below(path), None)
        return self._leaves[leaf][0] if leaf is not None else Location(self.file)

    def locate(self, path: FieldPath, piece: str, number: int = 0) -> Location:
        """Return the place of a piece of text in the leaves at or below a path, the first or a later one.

        It is that of the path where no leaf has it as it is written.
        """
        if self._document is None or not piece:
            return self.where(path)
        document, base = self._document
        for leaf in self.below(path):
            value = self._leaves[leaf][1]
            at = value.find(piece) if isinstance(value, str) else -1
            while at >= 0 and number:
                at, number = value.find(piece, at + len(piece)), number - 1
            if at >= 0:
                return document.inside((*base, *leaf), at)
        return self.where(path)

    def entries(self) -> tuple[LeafOutcome, ...]:
        """Return all leaves in order; unmarked ones become questions."""
        return tuple(
            LeafOutcome(
                path,
                where,
                value,
                *self._marks.get(path, ("dropped", "", _NULL) if _is_nothing(path, value) else _ASKED),
            )
            for path, (where, value) in self._leaves.items()
        )


def _is_nothing(path: FieldPath, value: Any) -> bool:
    """Return whether a leaf means nothing: null, or no annotations, labels or node selector."""
    return value is None or (value == {} and path[-1:] in _EMPTY)


class SourceNode:
    """A place in a source, and the value there (None if there is nothing)."""

    __slots__ = ("account", "path", "value")

    def __init__(self, account: Account, path: FieldPath, value: Any) -> None:
        self.account, self.path, self.value = account, path, value

    def __bool__(self) -> bool:
        """Return whether there is a value: null counts as absent, as it does for Kubernetes."""
        return self.value is not None

    def __getitem__(self, key: str | int) -> SourceNode:
        """Return the node at a key or an index; an absent node if there is nothing."""
        value = None
        if isinstance(self.value, dict) and isinstance(key, str):
            value = self.value.get(key)
        elif isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            value = self.value[key]
        return SourceNode(self.account, (*self.path, key), value)

    def at(self, *keys: str | int) -> SourceNode:
        """Return the node at the end of several keys."""
        node = self
        for key in keys:
            node = node[key]
        return node

    @property
    def where(self) -> Location:
        """Its place, or that of its first leaf."""
        return self.account.where(self.path)

    @property
    def name(self) -> str:
        """Its path as people write it."""
        return format_field_path_of_imported_job(self.path)

    def items(self) -> Iterator[SourceNode]:
        """Yield the entries of a list; none if this is not a list."""
        return (self[index] for index in range(len(self.value))) if isinstance(self.value, list) else iter(())

    def fields(self) -> Iterator[tuple[str, SourceNode]]:
        """Yield the fields of a mapping; none if this is not a mapping."""
        return ((key, self[key]) for key in self.value) if isinstance(self.value, dict) else iter(())

    def text(self) -> str:
        """Return a scalar as text, with booleans as YAML writes them; empty for anything else."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return "" if self.value is None or isinstance(self.value, dict | list) else str(self.value)

    def number(self) -> int | None:
        """Return an integer, also if it is written as text; None for anything else."""
        if isinstance(self.value, bool | dict | list):
            return None
        try:
            return int(str(self.value))
        except ValueError:
            return None

    def count(self) -> int | None:
        """Return how many of something there are; None for anything else, which the account keeps as a miscount."""
        number = self.number()
        if number is not None and number >= 0:
            return number
        if self and self.path not in [one.path for one in self.account.miscounts]:
            self.account.miscounts.append(self)
        return None

    def texts(self) -> tuple[str, ...]:
        """Return the entries of a list of scalars; a single scalar is a list of one."""
        if isinstance(self.value, list):
            return tuple(one.text() for one in self.items())
        return (self.text(),) if self.value is not None and not isinstance(self.value, dict) else ()

    def mapped(self, to: str) -> SourceNode:
        """Mark it as mapped to this field."""
        self.account.mark(self.path, "mapped", to)
        return self

    def same(self, why: str) -> SourceNode:
        """Mark it as something that every run has by default."""
        self.account.mark(self.path, "defaulted", "", why)
        return self

    def dropped(self, why: str) -> SourceNode:
        """Mark it as something that the run does not need."""
        self.account.mark(self.path, "dropped", "", why)
        return self

    def asked(self, why: str) -> SourceNode:
        """Mark it as something that a person must decide."""
        self.account.mark(self.path, "asked", "", why)
        return self
