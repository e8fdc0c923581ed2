"""The table of templates, read without models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangplan.contents.files import Files, block, blocks, contents, yaml_files
from gangplan.spec.listing import is_template
from gangplan.spec.root import SPECS, TEMPLATES


def templates(files: Files) -> Iterator[dict[str, Any]]:
    """Yield every template that specs may name: the platform's, then those of the requested teams."""
    found = [("", file) for file in yaml_files(f"{files.root}/{TEMPLATES}", TEMPLATES)]
    for team in files.wanted_teams or files.team_names:
        folder = f"{SPECS}/{team}/templates"
        for file in yaml_files(f"{files.root}/{folder}", folder):
            if is_template(file, contents(f"{files.root}/{file}")):
                found.append((team, file))
    for team, file in found:
        body = files.load(file)
        if body.get("kind") != "JobTemplate":
            continue
        own = blocks(body, "parameters")
        yield {
            "template": str(
                body.get("name") or file.rpartition("/")[2].removesuffix(".yaml").partition("@")[0]
            ),
            "version": body.get("version", 1),
            "team": team or None,
            "parameters": [_parameter(name, one) for name, one in own.items()],
            "extends": body.get("extends"),
            "image": block(body, "job").get("image"),
            "description": body.get("description"),
            "file": file,
        }


def _parameter(name: str, one: dict[str, Any]) -> str:
    return f"{name}={one['default']}" if "default" in one else name
