"""What a help proposes, read as a person who pastes it would, and the file with it pasted in."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import BaseModel

from gangplan.findings import Finding
from gangplan.source import Document, load_document
from gangplan.spec.blocks import list_spec_fields_at
from gangplan.spec.catalog import ImageCatalog
from gangplan.spec.cluster import Cluster
from gangplan.spec.job import TrainingJob
from gangplan.spec.team import Team
from tests import plain

Path = tuple[str | int, ...]
# Where a proposal may end: at the end of its sentence, or before a reason, another choice or a further step.
_ENDS = re.compile(r"\.(?=\s|$)|[;,?](?=\s|$)| (?=or |and |\(|each |under |below |at the |with )|$")
_HOLES = re.compile(
    r"\b(?:NAME|CLAIM|KEY|SECRET|JOB|GROUP|MODEL|FILE|SCRIPT|LABEL|BUCKET|QUEUE|CIDR|instead)\b|\.\.\.|<"
)
_DOES = re.compile(r"\b(?:Write|Add|Swap them:|Did you mean|Quote it:) ")
_KEPT = re.compile(r"Keep \S+: and remove (\S+):\.|, and remove (\S+):\.")


class UnreadError(Exception):
    """A program could paste nothing of what the help says."""


def proposed(help: str) -> list[Any]:
    """Return the values that a help tells users to write, in order: fields as a mapping, others as they are.

    The first sentence that names something counts; what is in capitals is for readers to fill in.
    """
    if renamed := re.fullmatch(r"Write (\S+):\.", help):
        return [renamed[1]]
    for verb in _DOES.finditer(help):
        found = list(_values(help, verb.end()))
        if found:
            return found
    return []


def _values(help: str, at: int) -> Iterator[Any]:
    while (found := _value(help, at)) is not None:
        value, end = found
        yield value
        more = re.match(r",? and (?=\w+: )", help[end:])
        if more is None:
            return
        at = end + more.end()


def _value(help: str, at: int) -> tuple[Any, int] | None:
    """Return the shortest text from `at` on that is YAML with closed quotes and brackets, and its end."""
    for end in (found.start() for found in _ENDS.finditer(help, at)):
        text = help[at:end].strip()
        if not text or text.endswith(":") or _HOLES.search(re.sub(r"'[^']*'|\"[^\"]*\"", "", text)):
            continue
        is_field = re.match(r"[\w./$-]+: ", text) is not None
        if not is_field and " " in text and text[0] not in "'\"[{":
            continue
        try:
            value = plain.load(f"{{{text}}}" if is_field else text)
        except yaml.YAMLError:
            continue
        if is_field and any(_is_prose(one, text) for one in value.values()):
            return None
        return value, end
    return None


def _is_prose(value: Any, text: str) -> bool:
    """Return whether a field's value is words for the reader: several words without quotes."""
    return isinstance(value, str) and " " in value and f"'{value}'" not in text and f'"{value}"' not in text


def pasted(text: str, finding: Finding) -> str:
    """Return the file with what the help of a finding proposes; raise UnreadError if it cannot be pasted."""
    document, _ = load_document(text.encode(), finding.where.file)
    if document is None:
        return _line(text, finding)
    path, is_key = _place(document, finding)
    root = copy.deepcopy(document.value)
    _change(root, path, is_key, finding)
    after: str = yaml.safe_dump(root, sort_keys=False, allow_unicode=True, width=10_000)
    return after


def _change(root: Any, path: Path, is_key: bool, finding: Finding) -> None:
    help, unknown = finding.help, finding.rule == "spec-unknown-field"
    if kept := _KEPT.search(help):
        _parent(root, path).pop(kept[1] or kept[2])
        if kept[1]:
            return
    elif help.startswith("Remove "):
        _remove(root, path, help)
        if not re.search(r"\bWrite command: ", help):
            return
    values = proposed(help)
    if not values:
        raise UnreadError(help)
    if any(isinstance(value, dict) and None in value.values() for value in values):
        values = [next(iter(value)) for value in values] if finding.rule == "command-placeholder" else []
    if help.startswith("Add "):
        values = [value for value in values if isinstance(value, dict)]
    if not values:
        raise UnreadError(help)
    if help.endswith("and remove it here."):
        _parent(root, path).pop(path[-1], None)
    named = {key for value in values if isinstance(value, dict) for key in value}
    is_elsewhere = named and finding.rule == "spec-type" and not named & set(path)
    if (unknown and is_key and not kept) or is_elsewhere:
        _parent(root, path).pop(path[-1], None)
    for value in values:
        if finding.rule == "command-placeholder":
            _parent(root, path)[path[-1]] = f"{{{value}}}"
        elif isinstance(value, dict):
            _merge(root, path, value, "top level" in help)
        elif is_key:
            _rename(root, path, str(value).removesuffix(":"))
        else:
            _parent(root, path)[path[-1]] = value


def _remove(root: Any, path: Path, help: str) -> None:
    """Remove the field that the help names; "it" and "the line" are the field of the finding."""
    named = re.match(r"Remove ([\w.]*\w)(?: line)?(?::.*?)?(?:,|;|\.| or|$)", help)
    if named is None:
        raise UnreadError(help)
    name, steps = named[1], path
    if name in path:
        steps = path[: path.index(name) + 1]
    elif name not in ("it", "the"):
        steps = (*path[:-1], name) if name in _parent(root, path) else tuple(name.split("."))
    try:
        del _parent(root, steps)[steps[-1]]
    except (KeyError, TypeError):
        raise UnreadError(help) from None


def _merge(root: Any, path: Path, value: dict[str, Any], is_top: bool) -> None:
    """Set fields in the innermost block around the place that has them, or else where the format does."""
    model = _MODELS.get(root.get("kind", "")) if isinstance(root, dict) else None
    for key, item in value.items():
        depth = next((at for at in range(len(path) - 1, -1, -1) if path[at] == key), None)
        blocks = [path[:at] for at in range(len(path) - 1, -1, -1)]
        home = next((one for one in blocks if model and key in list_spec_fields_at(model, one)), path[:-1])
        if depth is not None:
            _parent(root, path[: depth + 1])[key] = item
        elif is_top:
            root[key] = item
        else:
            _parent(root, (*home, key))[key] = item


_MODELS: dict[str, type[BaseModel]] = {
    one.__name__: one for one in (TrainingJob, Team, Cluster, ImageCatalog)
}


def _rename(root: Any, path: Path, name: str) -> None:
    parent = _parent(root, path)
    if not isinstance(parent, dict):
        parent[path[-1]] = name
        return
    entries = [(name if key == path[-1] else key, value) for key, value in parent.items()]
    parent.clear()
    parent.update(entries)


def _parent(root: Any, path: Path) -> Any:
    for step in path[:-1]:
        root = root[step]
    return root


def _place(document: Document, finding: Finding) -> tuple[Path, bool]:
    """Return the path of the field at which a finding is, and whether it is about the field's name."""
    where = (finding.where.line, finding.where.column)
    ways = (True,) if finding.rule == "spec-unknown-field" else (False, True)
    for path in _paths(document.value, ()):
        for is_key in ways:
            found = document.where(path, key=is_key)
            if (found.line, found.column) == where:
                is_name = isinstance(path[-1], str) and document.where(path) != document.where(path, key=True)
                return path, is_key and is_name
    raise UnreadError("the finding stands at no field")


def _paths(value: Any, path: Path) -> Iterator[Path]:
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from _paths(inner, (*path, key))


def _line(text: str, finding: Finding) -> str:
    """Return a file that is not YAML, with the line of the finding as the help corrects it."""
    lines, at = text.split("\n"), finding.where.line - 1
    line, column = lines[at], finding.where.column - 1
    if said := re.match(r"Quote (?:it|the value): (.*)\.$", finding.help):
        bare = said[1].strip("'\"")
        begin = line.index(": ") + 2
        lines[at] = line.replace(bare, said[1], 1) if bare in line else f"{line[:begin]}{said[1]}"
    elif said := re.match(r"Write (\w+: .*)\.$", finding.help):
        lines[at] = said[1]
    elif "tab" in finding.help:
        lines[at] = line.replace("\t", "  ")
    elif said := re.match(r"Close it with '(.)'", finding.help):
        lines[at] = f"{line}{said[1]}"
    elif finding.help.startswith("Close it"):
        lines[at] = line + line[column]
    elif said := re.match(r"Align it with line (\d+)", finding.help):
        like = lines[int(said[1]) - 1]
        lines[at] = like[: len(like) - len(like.lstrip())] + line.lstrip()
    elif finding.rule == "yaml-duplicate-key":
        del lines[at]
    else:
        raise UnreadError(finding.help)
    return "\n".join(lines)


def added(finding: Finding) -> tuple[str, str, Any] | None:
    """Return what a help adds to another file: the file, the field, and the names or entries below it."""
    if said := re.search(r"add (\S+) to (\w+): in (\S+)\.$", finding.help):
        return said[3], said[2], [said[1]]
    said = re.search(r"adds? (\S+: .*) under (\w+): in (\S+)\.$", finding.help)
    return (said[3], said[2], plain.load(f"{{{said[1]}}}")) if said else None
