"""Whether an import accounts for everything in a source, from its text and the printed account alone.

Nothing here belongs to the importer: YAML is read by PyYAML, scripts line by line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

_STATES = {"mapped", "defaulted", "dropped", "asked"}
_SCRIPTS = ("slurm", "pbs")


def lost(kind: str, file: str, text: str, imported: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a source that the account (that of `--format json`) does not mention."""
    imported = list(imported)
    if not imported:
        return []
    if kind in _SCRIPTS:
        return [one for each in imported for one in _of_script(kind, file, text, each["account"])]
    told: set[tuple[int, int]] = set()
    for one in imported:
        for entry in one["account"]:
            assert entry["state"] in _STATES
            assert entry["to"] or entry["why"], entry
            if entry["file"] == file:
                told.add((entry["line"], entry["column"]))
    leaves = {(line, column): path for line, column, path in _leaves(kind, text)}
    said, heard = (Counter(line for line, _ in some) for some in (leaves, told))
    words = {line: path for (line, _), path in leaves.items()}
    return [f"{file}:{line}: {words[line]}" for line, count in sorted(said.items()) if heard[line] < count]


def _leaves(kind: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the line, column and path of every leaf of the objects of a kind."""
    for document in yaml.compose_all(
        text.replace("\t", " ") if text.lstrip().startswith("{") else text, yaml.SafeLoader
    ):
        for each in _objects(document):
            if _is_of(kind, each):
                yield from _below(each, "", set())


def _objects(node: Any) -> Iterator[Any]:
    """Yield a document, or the items of a List."""
    fields = {key.value: value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    if str(getattr(fields.get("kind"), "value", "")).endswith("List") and "items" in fields:
        for one in fields["items"].value:
            yield from _objects(one)
    elif fields:
        yield node


def _is_of(kind: str, node: Any) -> bool:
    fields = {key.value: getattr(value, "value", "") for key, value in node.value}
    if kind in ("azureml", "sagemaker"):
        return True
    wanted = {"volcano": "job", "job": "job"}.get(kind, kind)
    return str(fields.get("kind", "")).lower() == wanted


def _below(node: Any, path: str, above: set[int]) -> Iterator[tuple[int, int, str]]:
    if id(node) in above:
        return
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode) and node.value:
        for key, value in node.value:
            name = "" if key.value == "<<" else str(key.value)
            yield from _below(value, f"{path}.{name}".strip("."), {*above, id(node)})
    elif isinstance(node, yaml.SequenceNode) and node.value:
        for number, value in enumerate(node.value):
            yield from _below(value, f"{path}[{number}]", {*above, id(node)})
    else:
        yield line, node.start_mark.column, path


def _of_script(kind: str, file: str, text: str, account: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines with an option or a command that no entry names."""
    told = {entry["line"] for entry in account if entry["file"] == file}
    mark = {"slurm": "SBATCH", "pbs": "PBS"}[kind]
    for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
        bare = line.strip()
        is_option = re.match(rf"#{mark}\s+[^\s#]", line)
        is_command = (
            bare
            and not bare.startswith("#")
            and bare not in ("\\", ")", "(", "}", "{", "fi", "done", "do", "then", "else", "esac", ";;")
        )
        if (is_option or is_command) and number not in told:
            yield f"{file}:{number}: {bare[:80]}"
