"""Canonical YAML and references for Kubernetes objects, which are dictionaries.

The same object always gives the same text, and every reader in use (YAML 1.1 of Kubernetes and PyYAML,
YAML 1.2 of kustomize) reads back exactly that object: a string is unquoted only if no reader could differ.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gangplan.findings import FieldPath
from gangplan.parts import SharedParts
from gangplan.records import dataclass

Body = dict[str, Any]

# The API version and kinds of admission policies.
ADMISSION_API = "admissionregistration.k8s.io/v1"
POLICY_KIND, BINDING_KIND = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """The identity of an object; the namespace of a cluster-scoped one is empty."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


def ref_of(body: Mapping[str, Any]) -> Ref:
    """Return the reference of an object; a missing part is empty."""
    metadata = body.get("metadata") or {}
    return Ref(
        body.get("apiVersion") or "",
        body.get("kind") or "",
        metadata.get("namespace") or "",
        metadata.get("name") or "",
    )


def walk_leaves(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield every leaf with its path, in order; an empty mapping or list is a leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from walk_leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from walk_leaves(inner, (*path, index))
    else:
        yield path, value


def dump_all(bodies: Iterable[Mapping[str, Any]], header: Sequence[str] = ()) -> str:
    """Return the objects as one stream of documents, in their order, after the header as comment lines."""
    return join_documents(map(dump_object_as_block_yaml, bodies), header)


def join_documents(texts: Iterable[str], header: Sequence[str] = ()) -> str:
    """Join the texts of objects into one stream of documents, after the header as comment lines."""
    return _format_comment_header(header) + "---\n".join(texts)


class WrittenParts:
    """The texts of parts that many objects share, one for each indent or width."""

    __slots__ = ("_texts", "flows", "ids")

    def __init__(self, parts: SharedParts) -> None:
        self.ids = parts.ids
        self._texts: dict[tuple[int, str, str], str] = {}
        self.flows: dict[int, str] = {}

    def write(self, part: Any, lead: str, indent: str) -> str:
        """Return the lines of a held part, which must not be empty."""
        key = id(part), lead, indent
        text = self._texts.get(key)
        if text is None:
            lines: list[str] = []
            flows = _OneLineTexts(self)
            (_append_mapping_lines if type(part) is dict else _append_list_lines)(
                part, lead, indent, lines, flows
            )
            text = "\n".join(lines)
            if len(self._texts) < _CACHED:
                self._texts[key] = text
        return text


class _OneLineTexts:
    """The texts on one line of an object's mappings and lists.

    Each is made once, although it is asked for twice: by the mapping around it and, if that one needs several
    lines, for its own place. A text is empty if the value needs several lines: it has many entries, long
    ones, or text of several lines. A long list, or one of several mappings, has a line for each entry, so
    that a change shows the entry.
    """

    __slots__ = ("_own", "_shared", "ids", "written")

    def __init__(self, written: WrittenParts | None) -> None:
        self._own: dict[int, str] = {}
        self._shared = self._own if written is None else written.flows
        self.ids: Container[int] = () if written is None else written.ids
        self.written = written

    def of(self, value: Any) -> str:
        """Return a mapping or list that is not empty as `{a: 1, b: {c: d}}` or `[a, b]`, or an empty text."""
        key = id(value)
        texts = self._shared if key in self.ids else self._own
        text = texts.get(key)
        if text is None:
            if len(value) > _FEW:
                text = ""
            elif type(value) is list:
                text = self._write_list(value)
            else:
                text = self._write_mapping(value)
            if texts is self._own or len(texts) < _CACHED:
                texts[key] = text
        return text

    def _write_mapping(self, value: Mapping[str, Any]) -> str:
        parts, width = [], _WIDTH
        for key, inner in value.items():
            is_nested = (type(inner) is dict or type(inner) is list) and inner
            text = self.of(inner) if is_nested else _format_yaml_flow_scalar(inner)
            if not text:
                return ""
            parts.append(f"{_KEYS.get(key) or _format_yaml_key(key)}: {text}")
            width -= len(parts[-1]) + 2
            if width < 0:
                return ""
        return "{" + ", ".join(parts) + "}"

    def _write_list(self, entries: Sequence[Any]) -> str:
        """Return scalars, or a single mapping, between brackets."""
        parts = []
        for entry in entries:
            if (type(entry) is dict or type(entry) is list) and entry:
                text = self.of(entry) if len(entries) == 1 and type(entry) is dict else ""
            else:
                text = _format_yaml_flow_scalar(entry)
            if not text:
                return ""
            parts.append(text)
        return "[" + ", ".join(parts) + "]"


def dump_object_as_block_yaml(
    body: Mapping[str, Any], *, header: Sequence[str] = (), written: WrittenParts | None = None
) -> str:
    """Return one object as canonical block YAML; `written` holds the texts of parts that were written before.

    Raises `TypeError` and `ValueError` on what YAML cannot carry.
    """
    lines: list[str] = []
    _append_mapping_lines(_put_well_known_keys_first(body), "", "", lines, _OneLineTexts(written))
    return _format_comment_header(header) + "\n".join(lines) + "\n"


def is_one_line(text: str) -> bool:
    """Return whether a comment can hold the text: no line end, and nothing else that YAML has to escape."""
    return not _ESCAPED.search(text.translate(_QUOTES))


def _format_comment_header(header: Sequence[str]) -> str:
    for line in header:
        if not is_one_line(line):
            raise ValueError(f"not one line of text: {line!r}")
    return "".join(f"# {line}".rstrip() + "\n" for line in header)


def _put_well_known_keys_first(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with the well-known keys first; all others stay in the order of insertion."""
    ordered = _move_keys_first(body, ("apiVersion", "kind", "metadata"))
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        metadata = _move_keys_first(metadata, ("name", "namespace", "labels", "annotations"))
        for name in ("labels", "annotations"):
            if isinstance(metadata.get(name), dict):
                metadata[name] = dict(sorted(metadata[name].items()))
        ordered["metadata"] = metadata
    return ordered


def _move_keys_first(mapping: Mapping[str, Any], names: Sequence[str]) -> Body:
    ordered = {name: mapping[name] for name in names if name in mapping}
    ordered.update(mapping)
    return ordered


def _append_mapping_lines(
    mapping: Mapping[str, Any], lead: str, indent: str, lines: list[str], flows: _OneLineTexts
) -> None:
    """Append the lines of a mapping; `lead` precedes the first key, `indent` the others."""
    if not mapping:
        lines.append(lead + "{}")
        return
    for key, value in mapping.items():
        prefix = f"{lead}{_KEYS.get(key) or _format_yaml_key(key)}:"
        lead = indent
        kind = type(value)
        if kind is str:
            text = _PLAIN.get(value)
            lines.append(f"{prefix} {text or _format_yaml_string(value, indent + '  ')}")
        elif (kind is dict or kind is list) and value:
            if not (key in _BLOCK and len(indent) < _NESTED):
                text = flows.of(value)
                if text and max(len(text), _LEAST) <= _WIDTH - len(prefix):
                    lines.append(f"{prefix} {text}")
                    continue
            lines.append(prefix)
            inner = indent + "  " if kind is dict else indent
            if flows.written is not None and id(value) in flows.ids:
                lines.append(flows.written.write(value, inner, inner))
            elif kind is dict:
                _append_mapping_lines(value, inner, inner, lines, flows)
            else:
                _append_list_lines(value, inner, inner, lines, flows)
        else:
            lines.append(f"{prefix} {_format_non_text_yaml_scalar(value)}")


def _append_list_lines(
    entries: Sequence[Any], lead: str, indent: str, lines: list[str], flows: _OneLineTexts
) -> None:
    inner = indent + "  "
    for entry in entries:
        kind = type(entry)
        if kind is str:
            text = _PLAIN.get(entry)
            lines.append(f"{lead}- {text or _format_yaml_string(entry, inner)}")
        elif (kind is dict or kind is list) and entry:
            text = flows.of(entry) if kind is dict else ""
            if text and max(len(text), _LEAST) <= _WIDTH - len(inner):
                lines.append(f"{lead}- {text}")
            elif flows.written is not None and id(entry) in flows.ids:
                lines.append(flows.written.write(entry, lead + "- ", inner))
            elif kind is dict:
                _append_mapping_lines(entry, lead + "- ", inner, lines, flows)
            else:
                _append_list_lines(entry, lead + "- ", inner, lines, flows)
        else:
            lines.append(f"{lead}- {_format_non_text_yaml_scalar(entry)}")
        lead = indent


def _format_yaml_flow_scalar(value: Any) -> str:
    """Return a scalar on one line; empty for text of several lines.

    PyYAML before 5.1 and libyaml before 0.2.1 refuse an unquoted colon between brackets.
    """
    if type(value) is not str:
        return _format_non_text_yaml_scalar(value)
    if "\n" in value:
        return ""
    return (
        _quote_yaml_string(value)
        if ":" in value
        else _PLAIN.get(value) or _format_one_line_yaml_string(value)
    )


def _format_non_text_yaml_scalar(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    kind = type(value)
    if kind is int:
        if not _INT_MIN <= value <= _INT_MAX:
            raise ValueError(f"{value} does not fit into 64 bits")
        return str(value)
    if kind is dict:
        return "{}"
    if kind is list:
        return "[]"
    raise TypeError(f"{value!r} ({kind.__name__}) has no canonical form")


# A small mapping has at most so many entries, and ends before this column; none is shorter than _LEAST.
_FEW, _WIDTH, _LEAST = 5, 150, 6
# Mappings that people read and engines change entry by entry: those of the object itself, which are indented
# by less than _NESTED, and no others of these names.
_BLOCK, _NESTED = frozenset(("metadata", "labels", "annotations", "data", "spec")), 4

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1

# Strings that every reader reads as a string: words, image names, paths and long flags, unless some YAML
# version reserves the word; and amounts and times with a unit, which no YAML version reads as a number.
_SAFE = re.compile(
    r"(?:[A-Za-z/]|--[A-Za-z])[A-Za-z0-9_./@+=-]*(?::[A-Za-z0-9_./@+=-]+)*"
    r"|[1-9][0-9]*(?:[mkMGTP]|[KMGTPE]i|[smhd])",
    re.ASCII,
)
_WORDS = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity")
)

# Written as escapes: what YAML forbids, what its versions disagree about (U+0085, U+2028, U+2029), and what a
# reviewer cannot see: other controls, unusual spaces, joiners and marks that change the direction of text.
_ESCAPED = re.compile(
    '["\\\\\x00-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202f'
    "\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
_QUOTES = str.maketrans({'"': "'", "\\": "/"})
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
# In a literal block a reviewer must see every character: no trailing blanks, no tabs, no odd first line.
_NOT_LITERAL = re.compile(r"\A[ \n]|[ \t]$|^\t|\n\n\Z", re.MULTILINE)
# A YAML reader looks for the ':' of a key within 1024 characters only.
_KEY_LENGTH = 1000

# Strings met before, with their text: the same few hundred make up nearly all manifests.
_PLAIN: dict[str, str] = {}
_KEYS: dict[str, str] = {}
_CACHED = 20_000


def format_scalar(value: str | int | bool | None) -> str:
    """Return a scalar on one line, valid in block and flow YAML. Raises `TypeError` and `ValueError`."""
    if type(value) is not str:
        return _format_non_text_yaml_scalar(value)
    return _PLAIN.get(value) or _format_one_line_yaml_string(value)


def _format_one_line_yaml_string(text: str) -> str:
    written = text if _SAFE.fullmatch(text) and text.lower() not in _WORDS else _quote_yaml_string(text)
    # Text of several lines is not cached: as a key or in a template it is on one line, as a value it is not.
    if len(_PLAIN) < _CACHED and len(text) < 200 and "\n" not in text:
        _PLAIN[text] = written
    return written


def _quote_yaml_string(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape_yaml_character, text)}"'


def _escape_yaml_character(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"half a surrogate pair, U+{code:04X}, is not text")
    return _SHORT.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


@lru_cache(maxsize=1024)  # nearly all runs contain the same few scripts
def _format_yaml_string(text: str, indent: str) -> str:
    """Return a string after its key; several lines become a literal block if every reader reads it alike."""
    if "\n" not in text or _NOT_LITERAL.search(text) or _ESCAPED.search(text.translate(_LITERAL)):
        return _format_one_line_yaml_string(text)
    body = text.removesuffix("\n")
    lines = [f"{indent}{line}" if line else "" for line in body.split("\n")]
    return "\n".join(["|" if body != text else "|-", *lines])


_LITERAL = str.maketrans({'"': "'", "\\": "/", "\n": " "})


def _format_yaml_key(key: Any) -> str:
    if type(key) is not str:
        raise TypeError(f"a key must be text, not {key!r}")
    written = _format_one_line_yaml_string(key)
    if len(written) > _KEY_LENGTH:
        raise ValueError(f"the key {key[:20]!r}... is longer than {_KEY_LENGTH} characters")
    if len(_KEYS) < _CACHED:
        _KEYS[key] = written
    return written
