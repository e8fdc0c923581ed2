"""Parameters of a template: from texts to values of the types that the template declares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.source.scalars import NotFiniteError, parse_plain_yaml_scalar
from gangplan.spec.listing import is_template
from gangplan.spec.root import SPECS
from gangplan.spec.template_arguments import find_job_template_parameters
from gangplan.spec.template_file import TemplateFile
from gangplan.spec.template_files import load_job_templates
from gangplan.spec.templates import MAX_TEMPLATE_LAYERS, TemplateSet
from gangplan.starter.values import WrittenScalar


def convert_new_job_parameters(texts: Mapping[str, str], types: Mapping[str, str]) -> dict[str, Any]:
    """Return the values as the file has them: a number as it was typed; text in quotes if it reads as
    anything else.

    A text that is not a value of its type stays a text, and the rules report what is wrong with it.
    """
    return {name: _convert_new_job_parameter(text, types.get(name)) for name, text in texts.items()}


def _convert_new_job_parameter(text: str, type: str | None) -> Any:
    try:
        value = parse_plain_yaml_scalar(text)
    except NotFiniteError:
        return text
    return text if type == "string" or value is None or isinstance(value, str) else WrittenScalar(text)


def read_team_templates_for_new_job(root: Path, team: str) -> TemplateSet:
    """Read the templates that specs of a team may name."""
    folder = root / SPECS / team / "templates"
    files = ((path.relative_to(root).as_posix(), path) for path in sorted(folder.rglob("*.yaml")))
    own = [(file, team) for file, path in files if path.is_file() and is_template(file, path.read_bytes())]
    return load_job_templates(root, own, ())


def find_new_job_parameter_types(templates: TemplateSet, team: str, label: str) -> dict[str, str]:
    """Return the types of the parameters of a template and of what it extends; empty if the template does not
    exist."""
    chain: list[TemplateFile] = []
    while label and len(chain) <= MAX_TEMPLATE_LAYERS:
        version = label.partition("@")[2]
        one = templates.find(team, label) if not version or version.isdigit() else None
        if one is None or one.template is None:
            break
        chain.append(one)
        label, team = one.template.extends or "", one.team
    return {name: parameter.type for name, (parameter, _) in find_job_template_parameters(chain).items()}
