"""The table of templates, read without models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.contents.files import (
    WorkspaceFiles,
    get_block,
    get_named_blocks,
    list_workspace_yaml_files,
    read_contents,
)
from gangplan.source import Document, load_document
from gangplan.spec.listing import is_template
from gangplan.spec.root import JOB_TEMPLATES, SPECS


def list_workspace_job_template_rows(files: WorkspaceFiles) -> Iterator[dict[str, Any]]:
    """Yield every template that specs may name: the platform's, then those of the requested teams."""
    found = [("", file) for file in list_workspace_yaml_files(f"{files.root}/{JOB_TEMPLATES}", JOB_TEMPLATES)]
    for team in files.wanted_teams or files.team_names:
        folder = f"{SPECS}/{team}/templates"
        for file in list_workspace_yaml_files(f"{files.root}/{folder}", folder):
            if is_template(file, read_contents(f"{files.root}/{file}")):
                found.append((team, file))
    for team, file in found:
        body = files.load(file)
        if body.get("kind") != "JobTemplate":
            continue
        own = get_named_blocks(body, "parameters")
        document, _ = load_document(read_contents(f"{files.root}/{file}"), file)
        yield {
            "template": str(
                body.get("name") or file.rpartition("/")[2].removesuffix(".yaml").partition("@")[0]
            ),
            "version": body.get("version", 1),
            "team": team or None,
            "parameters": [_format_template_parameter(name, one, document) for name, one in own.items()],
            "extends": body.get("extends"),
            "image": get_block(body, "job").get("image"),
            "description": body.get("description"),
            "file": file,
        }


def _format_template_parameter(name: str, one: dict[str, Any], document: Document | None) -> str:
    """Return the name with its default as the file has it: 1e-4 stays 1e-4."""
    if "default" not in one:
        return name
    text = document.text(("parameters", name, "default")) if document is not None else None
    return f"{name}={one['default'] if text is None else text}"
