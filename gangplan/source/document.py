"""Loading one YAML document into plain Python values with positions; every error is a finding.

A loaded document contains only dictionaries with text keys, lists, and scalars as Kubernetes reads them.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from gangplan.findings import FieldPath, Finding, Fix, Location
from gangplan.records import dataclass
from gangplan.rules.core import YAML_CONTROL_CHARACTER, YAML_EMPTY, YAML_NOT_UTF8, YAML_TOO_LARGE
from gangplan.source.build import ValueBuilder, build_depth_finding
from gangplan.source.inside import locate_yaml_scalar_character
from gangplan.source.parser import (
    DepthError,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    compose_single_node,
    locate_node,
)
from gangplan.source.scalar_fix import build_scalar_fix, restyle_scalar
from gangplan.source.syntax import reword_yaml_error

# Characters that YAML itself refuses, or that YAML 1.1 reads as a line break (U+0085, U+2028, U+2029) and
# YAML 1.2 as text. The second pattern takes 3 ms to compile, and most files are ASCII.
_FORBIDDEN_ASCII = r"[^\t\n\r\x20-\x7e]"
_FORBIDDEN = "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
_BOM = "\ufeff"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


# The limit for a file of a workspace.
MAX_DOCUMENT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits for a file. A spec of 20 lines has about 1 kB, 4 levels and 40 entries.

    `max_entries` counts those of all mappings and lists after aliases are expanded. `max_depth` counts the
    mappings and lists around a value, and must stay below 200.
    """

    max_bytes: int = MAX_DOCUMENT_BYTES
    max_depth: int = 32
    max_entries: int = 50_000


class Document:
    """The value of a file, and the position of each part of it.

    `value` contains no aliases: an anchor that is used twice yields two equal, separate values. Positions are
    found by parsing again at the first request, so that they cost no memory for valid files.
    """

    __slots__ = ("_root", "_text", "file", "value")

    def __init__(self, file: str, value: Any, text: str) -> None:
        self.file = file
        self.value = value
        self._text = text
        self._root: Node | None = None

    @property
    def source(self) -> str:
        """The text of the file, without a byte order mark."""
        return self._text

    def where(self, path: FieldPath, key: bool = False) -> Location:
        """Return the place of the value at `path`, or of its key; if it is absent, that of its nearest
        ancestor."""
        name, node, _ = self._find(path)
        return locate_node(self.file, name if key and name is not None else node)

    def home(self, path: FieldPath) -> tuple[str, FieldPath]:
        """Return the file that contains the value at `path`, and the path in that file."""
        return self.file, path

    def through(self, path: FieldPath) -> tuple[tuple[str, FieldPath], ...]:
        """Return further files and paths that the value at `path` comes from, such as parameters of a
        template."""
        return ()

    def text(self, path: FieldPath) -> str | None:
        """Return the scalar at `path` as written, without its quotes; None for anything else."""
        _, node, found = self._find(path)
        return node.value if found and isinstance(node, ScalarNode) else None

    def is_quoted(self, path: FieldPath) -> bool:
        """Return whether the value at `path` is a quoted or block scalar, which can only be text."""
        _, node, found = self._find(path)
        return found and isinstance(node, ScalarNode) and bool(node.style)

    def inside(self, path: FieldPath, offset: int) -> Location:
        """Return the place of the character at `offset` (code points) of the text at `path`; else that of the
        value."""
        _, node, found = self._find(path)
        if not found or not isinstance(node, ScalarNode):
            return self.where(path)
        return Location(self.file, *locate_yaml_scalar_character(self._text, node, offset))

    def fix(self, path: FieldPath, replacement: str, why: str, key: bool = False) -> Fix | None:
        """Return the fix that replaces the scalar at `path`, or its key, with a text (`build_scalar_fix`)."""
        name, node, found = self._find(path)
        part = name if key else node
        return (
            build_scalar_fix(self.file, self._text, part, replacement, why)
            if found and part is not None
            else None
        )

    def like(self, path: FieldPath, text: str) -> str | None:
        """Return another value for `path` in the same style as the current one; see `restyle_scalar`."""
        _, node, found = self._find(path)
        return restyle_scalar(node, text) if found else None

    def _find(self, path: FieldPath) -> tuple[Node | None, Node, bool]:
        """Return the key (None for the root and list entries) and the node at `path`, and whether all of it
        exists."""
        if self._root is None:
            self._root = compose_single_node(self._text)
        name: Node | None = None
        node: Node = self._root
        for part in path:
            step = _find_child_yaml_node(node, part)
            if step is None:
                return name, node, False
            name, node = step
        return name, node, True

    def __getstate__(self) -> tuple[str, Any, str]:
        return self.file, self.value, self._text

    def __setstate__(self, state: tuple[str, Any, str]) -> None:
        self.file, self.value, self._text = state
        self._root = None

    def __repr__(self) -> str:
        return f"Document({self.file!r})"


def load_document(
    data: bytes, file: str, limits: FileLimits | None = None
) -> tuple[Document | None, list[Finding]]:
    """Load the document in `data`; return either the document or the findings that explain why it cannot be
    read. Never raises."""
    limits = limits or FileLimits()
    if len(data) > limits.max_bytes:
        return None, [_report_too_large_yaml_file(file, limits, len(data))]
    text = _read_utf8_yaml_text(data, file)
    if isinstance(text, Finding):
        return None, [text]
    if bad := re.search(_FORBIDDEN_ASCII if text.isascii() else _FORBIDDEN, text):
        return None, [_report_yaml_control_character(text, bad.start(), file)]
    try:
        root = compose_single_node(text)
    except DepthError as problem:
        near = problem.near.start_mark if problem.near else None
        where = Location(file, near.line + 1, near.column + 1) if near else Location(file)
        return None, [build_depth_finding(where, limits.max_depth)]
    except yaml.YAMLError as problem:
        return None, [reword_yaml_error(problem, text, file)]
    builder = ValueBuilder(file, text, limits.max_depth, limits.max_entries)
    value = builder.document(root)
    if builder.findings:
        return None, builder.findings
    if value is None:
        return None, [_report_empty_yaml_file(file)]
    return Document(file, value, text), []


def _find_child_yaml_node(node: Node, part: str | int) -> tuple[Node | None, Node] | None:
    if isinstance(node, MappingNode):
        return next(((name, value) for name, value in node.value if name.value == part), None)
    if isinstance(node, SequenceNode) and isinstance(part, int) and 0 <= part < len(node.value):
        return None, node.value[part]
    return None


def _read_utf8_yaml_text(data: bytes, file: str) -> str | Finding:
    try:
        text = data.decode()
    except UnicodeDecodeError as problem:
        if data.startswith(_UTF16):
            return Finding(
                YAML_NOT_UTF8,
                Location(file, 1, 1),
                "the file is UTF-16, not UTF-8",
                "save it as UTF-8 (in the editor's 'Save with encoding')",
            )
        before = data[: problem.start].decode()
        return Finding(
            YAML_NOT_UTF8,
            _locate_character(before, len(before), file),
            f"byte 0x{data[problem.start]:02x} at offset {problem.start} is not UTF-8",
            "save the file as UTF-8, or retype the character",
        )
    return text.removeprefix(_BOM)


def _locate_character(text: str, index: int, file: str) -> Location:
    """Return the line and column of a character."""
    start = text.rfind("\n", 0, index) + 1
    return Location(file, text.count("\n", 0, index) + 1, index - start + 1)


def _report_yaml_control_character(text: str, index: int, file: str) -> Finding:
    return Finding(
        YAML_CONTROL_CHARACTER,
        _locate_character(text, index, file),
        f"the invisible character U+{ord(text[index]):04X} is not allowed in YAML",
        "delete it; inside double quotes it can be written as an escape such as \\u0007",
    )


def _report_too_large_yaml_file(file: str, limits: FileLimits, size: int) -> Finding:
    return Finding(
        YAML_TOO_LARGE,
        Location(file),
        f"the file has more than {limits.max_bytes} bytes, and no more are read",
        "split it, or keep data out of it",
    )


# Files that a workspace, a cluster or a team needs, and the kind of each.
_NEEDED = {"catalog.yaml": "ImageCatalog", "cluster.yaml": "Cluster", "team.yaml": "Team"}


def _report_empty_yaml_file(file: str) -> Finding:
    return Finding(
        YAML_EMPTY,
        Location(file, 1, 1),
        "the file contains only blank lines and comments",
        f"write the document that belongs there: gangplan explain {_NEEDED[name]} lists its fields"
        if (name := file.rpartition("/")[2]) in _NEEDED
        else "delete the file, or write the document it was meant to hold",
    )
