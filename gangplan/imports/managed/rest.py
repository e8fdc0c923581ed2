"""What managed services have in common: tags, and marks for fields that nothing else has read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangplan.imports.account import SourceNode
from gangplan.imports.command import UnreadableError, convert_command
from gangplan.imports.workload import SourceJob

EXPRESSION_PATTERN = re.compile(r"\$\{\{\s*([^{}]*?)\s*\}\}")


def mark_managed_job_fields_at_path(node: SourceNode, path: Sequence[str], how: str, why: str) -> None:
    """Mark what is at a path as `dropped` or `asked`.

    It also walks through lists, and through mappings whose keys are the user's own names (inputs, outputs).
    """
    if isinstance(node.value, list):
        for one in node.items():
            mark_managed_job_fields_at_path(one, path, how, why)
    elif path:
        if node.path and node.path[-1] in ("inputs", "outputs"):
            for _, one in node.fields():
                mark_managed_job_fields_at_path(one[path[0]], path[1:], how, why)
        else:
            mark_managed_job_fields_at_path(node[path[0]], path[1:], how, why)
    elif node:
        getattr(node, how)(why)


def map_managed_job_tag(key: str, node: SourceNode, work: SourceJob) -> None:
    """Map a tag of a service to a label if it is a valid one."""
    name = re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")
    if (
        name
        and len(name) < 64
        and re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", node.text())
    ):
        work.values.setdefault(f"labels/{name}", node.text())
        node.mapped(f"labels.{name}")
    else:
        node.dropped("it is none that a label can have; labels: says what a run belongs to")


def count_managed_job_processes(root: SourceNode, machines: int) -> int:
    """Return how many processes the command of a job starts on each machine; 0 if it does not state that."""
    stated = {f"inputs.{name}": node.text() for name, node in root["inputs"].fields()}
    text = EXPRESSION_PATTERN.sub(lambda found: stated.get(found[1], found[0]), root["command"].text())
    try:
        found = convert_command(("bash", "-c", text), None, {})
    except UnreadableError:
        return 0
    return found.per_worker or (found.ranks or 0) // machines


def find_managed_job_data_store(path: str) -> str:
    """Return what keeps the data at a path: a datastore, a data asset, an account."""
    for rule in (
        r"azureml://(?:.*/)?datastores/([\w-]+)",
        r"azureml:([\w.-]+?)(?:[:@].*)?$",
        r"\w+://([\w.-]+)@([\w-]+)",
        r"https?://([\w-]+)",
    ):
        if found := re.match(rule, path):
            return "-".join(reversed(found.groups()))[:40]
    return ""
