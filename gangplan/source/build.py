"""Building plain Python values from a node tree; duplicate keys, odd keys, tags and bad numbers become
findings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gangplan.findings import Finding, Fix, Location
from gangplan.rules.core import (
    YAML_ALIAS_BOMB,
    YAML_BAD_NUMBER,
    YAML_DUPLICATE_KEY,
    YAML_KEY_TYPE,
    YAML_MERGE_KEY,
    YAML_TAG,
    YAML_TOO_DEEP,
    YAML_TOO_LARGE,
)
from gangplan.rules.model import Rule
from gangplan.source.parser import MappingNode, Node, ScalarNode, SequenceNode, is_plain_scalar, locate_node
from gangplan.source.scalar_fix import build_scalar_fix, quote_scalar
from gangplan.source.scalars import (
    SCALAR_WORDS,
    NotFiniteError,
    parse_plain_yaml_scalar,
    parse_tagged_yaml_scalar,
)

_CORE = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null"))
_COLLECTION_TAGS: dict[type[Node], str] = {
    MappingNode: "tag:yaml.org,2002:map",
    SequenceNode: "tag:yaml.org,2002:seq",
}
_MERGE = "<<"


class _StopError(Exception):
    """A limit was exceeded."""


class ValueBuilder:
    """A builder of the value of one document; `findings` are its errors."""

    def __init__(self, file: str, text: str, max_depth: int, max_entries: int) -> None:
        self.findings: list[Finding] = []
        # libyaml drops a tag that is only "!", which Kubernetes reads as !!str, so look for it in the text.
        self._bare_tags = text if "!" in text else ""
        self._file = file
        self._text = text
        self._max_depth = max_depth
        self._max_entries = max_entries
        self._left = max_entries

    def document(self, root: Node | None) -> Any:
        """Return the value of the root; it is meaningless if there are findings."""
        if root is None:
            return None
        try:
            return self._value(root, 1)
        except _StopError:
            self._excess(root)
            return None

    def _value(self, node: Node, depth: int) -> Any:
        if self._bare_tags:
            self._bare_tag(node)
        if type(node) is ScalarNode:
            return self._scalar(node)
        self._left -= len(node.value)
        if self._left < 0 or depth > self._max_depth:
            raise _StopError
        if type(node.tag) is str and node.tag != _COLLECTION_TAGS[type(node)]:
            self._tag(node)
        if type(node) is SequenceNode:
            return [self._value(entry, depth + 1) for entry in node.value]
        return self._mapping(node, depth + 1)

    def _mapping(self, node: Node, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for name, value in node.value:
            text = name.value
            if self._bare_tags:
                self._bare_tag(name)
            # The common case: the key is plain text.
            if type(name) is not ScalarNode or not self._is_text(name):
                self._key(name)
            elif text in mapping:
                self._duplicate(node, name)
            else:
                mapping[text] = self._value(value, depth)
        return mapping

    def _is_text(self, name: ScalarNode) -> bool:
        if type(name.tag) is str:
            return name.tag == "tag:yaml.org,2002:str"
        try:
            return bool(name.style) or (
                isinstance(parse_plain_yaml_scalar(name.value), str) and name.value != _MERGE
            )
        except NotFiniteError:
            return False

    def _scalar(self, node: ScalarNode) -> Any:
        tag = node.tag
        try:
            if type(tag) is not str:
                return node.value if node.style else parse_plain_yaml_scalar(node.value)
            if tag in _CORE:
                return parse_tagged_yaml_scalar(tag, node.value)
        except NotFiniteError:
            message = f"{node.value!r} is not a number that Kubernetes can store"
            self._report(YAML_BAD_NUMBER, node, message, "write a finite number, or quote it as text")
            return None
        except ValueError:
            pass
        self._tag(node)
        return None

    def _key(self, name: Node) -> None:
        if type(name) is not ScalarNode:
            self._report(
                YAML_KEY_TYPE,
                name,
                "a key must be a word, not a mapping or a list",
                "quote the value if it begins with a brace or a bracket, such as '{{ name }}'",
            )
        elif name.value == _MERGE and is_plain_scalar(name):
            self._report(
                YAML_MERGE_KEY,
                name,
                "the merge key '<<' is not supported",
                "write the merged keys out, or set them once as defaults of the team",
            )
        elif type(name.tag) is str and name.tag not in _CORE:
            self._tag(name)
        else:
            kind = _describe_unquoted_yaml_scalar(name.value)
            help = f'quote it: "{name.value}"' if name.value else "write the key before the ':'"
            message = f"the key {name.value!r} is read as {kind}"
            why = f"{name.value} without quotes is {kind}"
            fix = (
                build_scalar_fix(self._file, self._text, name, quote_scalar(name.value), why)
                if is_plain_scalar(name)
                else None
            )
            self._report(YAML_KEY_TYPE, name, message, help, fix if kind != "nothing" else None)

    def _duplicate(self, node: Node, name: Node) -> None:
        first = next(other for other, _ in node.value if other.value == name.value)
        message = f"{name.value!r} is set twice; first at line {first.start_mark.line + 1}"
        self._report(YAML_DUPLICATE_KEY, name, message, "keep one")

    def _tag(self, node: Node) -> None:
        written = node.tag.replace("tag:yaml.org,2002:", "!!")
        if node.tag in _CORE:
            message = f"{node.value!r} does not fit its tag {written}"
        else:
            message = f"the tag {written} is not supported"
        help = "remove the tag; quote a value that begins with '!'"
        self._report(YAML_TAG, node, message, help)

    def _bare_tag(self, node: Node) -> None:
        index = node.start_mark.index
        if type(node.tag) is not str and self._bare_tags[index : index + 1] == "!":
            self._report(YAML_TAG, node, "the tag ! is not supported", "remove the '!', or quote the value")

    def _excess(self, root: Node) -> None:
        """Report which limit was exceeded, and whether by the text itself or only by its aliases."""
        entries, depth, deepest = _measure_yaml_tree(root)
        if depth > self._max_depth:
            self.findings.append(build_depth_finding(self._location(deepest), self._max_depth))
        elif entries > self._max_entries:
            message = f"the file contains more than {self._max_entries} entries"
            self._report(YAML_TOO_LARGE, root, message, "split it, or keep data out of it")
        else:
            message = "aliases such as '*name' repeat too much, or contain themselves"
            self._report(YAML_ALIAS_BOMB, root, message, "write the values out")

    def _report(self, rule: Rule, node: Node, message: str, help: str, fix: Fix | None = None) -> None:
        finding = replace(Finding(rule, self._location(node), message, help), fix=fix)
        if finding not in self.findings:  # an alias can repeat the same mistake
            self.findings.append(finding)

    def _location(self, node: Node) -> Location:
        return locate_node(self._file, node)


def build_depth_finding(where: Location, max_depth: int) -> Finding:
    """Return the finding for a document that is nested too deeply."""
    message = f"values are nested more than {max_depth} deep"
    return Finding(YAML_TOO_DEEP, where, message, "check for brackets or indentation repeated by mistake")


def _measure_yaml_tree(root: Node) -> tuple[int, int, Node]:
    """Return the number of entries, the depth, and the deepest mapping or list, before aliases are
    expanded."""
    entries, depth, deepest = 0, 0, root
    seen: set[int] = set()
    todo = [(root, 1)]
    while todo:
        node, level = todo.pop()
        if type(node) is ScalarNode or id(node) in seen:
            continue
        seen.add(id(node))
        entries += len(node.value)
        if level > depth:
            depth, deepest = level, node
        # The stack is last in, first out: an anchor must be visited before its aliases.
        for entry in reversed(node.value):
            inner = reversed(entry) if type(node) is MappingNode else (entry,)
            todo.extend((child, level + 1) for child in inner)
    return entries, depth, deepest


def _describe_unquoted_yaml_scalar(text: str) -> str:
    """Return, in words, what an unquoted scalar is read as if it is not text."""
    if text in SCALAR_WORDS:
        value = SCALAR_WORDS[text]
        return "nothing" if value is None else f"the boolean {str(value).lower()}"
    return "a number"
