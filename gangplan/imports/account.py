"""The account of an import: every leaf field of a source, at its line, and what became of it.

A leaf is a scalar, or an empty mapping or list. Whatever a reader does not mark is asked about at the end, so that
nothing of a source is lost without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from gangplan.findings import Location
from gangplan.objects import walk
from gangplan.records import dataclass
from gangplan.source import Document

Path = tuple[str | int, ...]
# mapped: it is in the spec or in a suggestion; defaulted: the run has it without a word in the spec; dropped: the
# run does not need it, `why` says so; asked: only a person can say what becomes of it.
State = Literal["mapped", "defaulted", "dropped", "asked"]
STATES: tuple[State, ...] = ("mapped", "defaulted", "dropped", "asked")

_UNKNOWN = "gangplan has no place for it"
_NULL = "null is as if it were not there"
_ASKED: tuple[State, str, str] = ("asked", "", _UNKNOWN)
# Mappings that say nothing where they are empty.
_EMPTY = (("annotations",), ("labels",), ("nodeSelector",))


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one leaf: the field that it went `to`, or `why` it did not."""

    path: Path
    where: Location
    value: Any
    state: State
    to: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The path as people write it: `spec.containers[0].image`."""
        return path_text(self.path)


def path_text(path: Path) -> str:
    """A path of keys and indexes as people write it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "(whole)"


class Account:
    """What is known of the leaves of one source so far. `leaves` gives each its place and value."""

    __slots__ = ("_leaves", "_marks", "_root", "file")

    def __init__(self, file: str, leaves: Mapping[Path, tuple[Location, Any]], root: Any = None) -> None:
        self.file = file
        self._leaves = leaves
        self._marks: dict[Path, tuple[State, str, str]] = {}
        self._root = root

    @classmethod
    def of(cls, document: Document, base: Path = ()) -> Account:
        """The account of one object of a YAML document: the document itself, or what stands at `base` in it."""
        value = document.value
        for part in base:
            value = value[part]
        leaves = {path: (document.where((*base, *path)), leaf) for path, leaf in walk(value)}
        return cls(document.file, leaves, value)

    def root(self) -> Node:
        """The cursor at the top."""
        return Node(self, (), self._root)

    def part(self, path: Path) -> Account:
        """An account of its own for an object inside of this one."""
        value = self._root
        for key in path:
            value = value[key]
        depth = len(path)
        leaves = {leaf[depth:]: self._leaves[leaf] for leaf in self.below(path)}
        return Account(self.file, leaves, value)

    def without(self, key: str) -> Account:
        """The account of this object but for what is below a key; both know what is said of either."""
        rest = Account(
            self.file, {leaf: one for leaf, one in self._leaves.items() if leaf[:1] != (key,)}, self._root
        )
        rest._marks = self._marks
        return rest

    def below(self, path: Path) -> Iterator[Path]:
        """The leaves at or below a path."""
        if path in self._leaves:  # nothing is below a leaf
            return iter((path,))
        return (leaf for leaf in self._leaves if leaf[: len(path)] == path)

    def mark(self, path: Path, state: State, to: str = "", why: str = "") -> None:
        """Say what became of the leaves at or below a path that nobody has said anything about."""
        for leaf in self.below(path):
            self._marks.setdefault(leaf, (state, to, why))

    def remark(self, path: Path, state: State, to: str = "", why: str = "") -> None:
        """Say it anew, whatever was said before."""
        for leaf in self.below(path):
            self._marks[leaf] = (state, to, why)

    def where(self, path: Path) -> Location:
        """The place of the first leaf at or below a path; the file where there is none."""
        leaf = next(self.below(path), None)
        return self._leaves[leaf][0] if leaf is not None else Location(self.file)

    def entries(self) -> tuple[Entry, ...]:
        """All leaves in their order; those that nobody spoke of are asked about."""
        return tuple(
            Entry(
                path,
                where,
                value,
                *self._marks.get(path, ("dropped", "", _NULL) if _is_nothing(path, value) else _ASKED),
            )
            for path, (where, value) in self._leaves.items()
        )


def _is_nothing(path: Path, value: Any) -> bool:
    """Whether nothing is said: null, or a mapping of labels or annotations without any."""
    return value is None or (value == {} and path[-1:] in _EMPTY)


class Node:
    """A place in a source, and the value there (None where there is nothing)."""

    __slots__ = ("account", "path", "value")

    def __init__(self, account: Account, path: Path, value: Any) -> None:
        self.account, self.path, self.value = account, path, value

    def __bool__(self) -> bool:
        """Whether something stands here: null counts as absent, as it does for Kubernetes."""
        return self.value is not None

    def __getitem__(self, key: str | int) -> Node:
        """What stands at a key or an index; an absent node where nothing does, or where this is neither."""
        value = None
        if isinstance(self.value, dict) and isinstance(key, str):
            value = self.value.get(key)
        elif isinstance(self.value, list) and isinstance(key, int) and key < len(self.value):
            value = self.value[key]
        return Node(self.account, (*self.path, key), value)

    def at(self, *keys: str | int) -> Node:
        """What stands at the end of several keys."""
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
        return path_text(self.path)

    def items(self) -> Iterator[Node]:
        """The entries of a list; none where it is no list."""
        return (self[index] for index in range(len(self.value))) if isinstance(self.value, list) else iter(())

    def fields(self) -> Iterator[tuple[str, Node]]:
        """The fields of a mapping; none where it is no mapping."""
        return ((key, self[key]) for key in self.value) if isinstance(self.value, dict) else iter(())

    def text(self) -> str:
        """A scalar as text, with truth values as YAML writes them; empty where there is none."""
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return "" if self.value is None or isinstance(self.value, dict | list) else str(self.value)

    def number(self) -> int | None:
        """A whole number, also one written as text; None for anything else."""
        if isinstance(self.value, bool | dict | list):
            return None
        try:
            return int(str(self.value))
        except ValueError:
            return None

    def texts(self) -> tuple[str, ...]:
        """The entries of a list of scalars; a single scalar is a list of one."""
        if isinstance(self.value, list):
            return tuple(one.text() for one in self.items())
        return (self.text(),) if self.value is not None and not isinstance(self.value, dict) else ()

    def mapped(self, to: str) -> Node:
        """It went to this field."""
        self.account.mark(self.path, "mapped", to)
        return self

    def same(self, why: str) -> Node:
        """The run has it by itself."""
        self.account.mark(self.path, "defaulted", "", why)
        return self

    def dropped(self, why: str) -> Node:
        """The run does not need it."""
        self.account.mark(self.path, "dropped", "", why)
        return self

    def asked(self, why: str) -> Node:
        """A person must say what becomes of it."""
        self.account.mark(self.path, "asked", "", why)
        return self
