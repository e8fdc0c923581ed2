"""The page of a template: parameters, a spec that names it, the job that it makes."""

from __future__ import annotations

from typing import Any

import yaml

from gangplan.findings import FieldPath
from gangplan.source import Document, load_document
from gangplan.spec.base import GANGPLAN_API_VERSION
from gangplan.spec.template_arguments import (
    build_sample_of_template_parameter,
    describe_job_template_parameter,
    find_job_template_parameters,
)
from gangplan.spec.templates import TemplateSet, fill_job_template, find_job_template_chain


def render_template_page(templates: TemplateSet, team: str, label: str) -> str:
    """Return the page; empty if specs of the team cannot use a template of this name."""
    written = (
        f"apiVersion: {GANGPLAN_API_VERSION}\nkind: TrainingJob\ntemplate: {_quote_numeric_label(label)}\n"
    )
    document, _ = load_document(written.encode(), "example.yaml")
    if document is None or not isinstance(document.value["template"], str):
        return ""
    chain, _ = find_job_template_chain(templates, team, label, document, ("template",))
    if not chain or chain[0].template is None:
        return ""
    first, known = chain[0].template, find_job_template_parameters(chain)
    needed = {name: one for name, (one, _) in known.items() if one.default is None}
    if needed:
        written += "parameters:\n"
        written += "".join(
            f"  {name}: {build_sample_of_template_parameter(one, name)}\n" for name, one in needed.items()
        )
    lines = [f"template {chain[0].label}  {chain[0].file}"]
    if first.description:
        lines += ["", first.description.strip()]
    if len(chain) > 1:
        lines += ["", "It adds to " + ", which adds to ".join(one.label for one in chain[1:]) + "."]
    if known:
        width = max(map(len, known))
        lines += ["", "parameters"]
        for name, (one, home) in known.items():
            about = f". {one.description.strip()}" if one.description else ""
            lines.append(f"  {name:{width}}  {describe_job_template_parameter(one, name, home)}{about}")
    if first.expect:
        lines += ["", "scaling efficiency measured elsewhere"]
        for entry in first.expect:
            who = f"{entry.workers} workers" if entry.workers else "other sizes"
            lines.append(f"  {who}: {entry.efficiency}, {entry.source}")
    lines += ["", "a spec", *(f"  {line}" for line in written.splitlines())]
    document, _ = load_document(written.encode(), "example.yaml")
    use = fill_job_template(templates, team, document)[0] if document is not None else None
    if use is not None:
        job = {
            key: _restore_written_numbers(use.document, item, (key,))
            for key, item in use.document.value.items()
            if key not in ("apiVersion", "kind")
        }
        lines += ["", "is the same as", *(f"  {line}" for line in _format_job_yaml(job).splitlines())]
    return "\n".join(lines) + "\n"


def _quote_numeric_label(label: str) -> str:
    return f'"{label}"' if label.isdigit() else label


class _WrittenNumber(str):
    """The text of a number in a file."""


class _PageDumper(yaml.SafeDumper):
    """Prints numbers as they are written: the text of a variable is 1e-4, where a template has 1e-4."""

    def write_number(self, text: str) -> yaml.Node:
        tag = self.resolve(yaml.ScalarNode, str(text), (True, False))  # type: ignore[no-untyped-call]
        return self.represent_scalar(tag, str(text))


_PageDumper.add_representer(_WrittenNumber, _PageDumper.write_number)


def _restore_written_numbers(document: Document, value: Any, path: FieldPath) -> Any:
    """Return the value at a path with the texts of its numbers."""
    if isinstance(value, dict):
        return {key: _restore_written_numbers(document, one, (*path, key)) for key, one in value.items()}
    if isinstance(value, list):
        return [_restore_written_numbers(document, one, (*path, at)) for at, one in enumerate(value)]
    text = document.text(path)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return _WrittenNumber(text) if is_number and text is not None else value


def _format_job_yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_PageDumper, sort_keys=False, default_flow_style=None, width=100)
