"""gangplan.yaml at the top of a workspace: which engines deliver it, and what they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, create_model

from gangplan.delivery.engine import EngineOption, GitopsEngine, list_engines
from gangplan.delivery.options import SHARED_OPTIONS
from gangplan.findings import Finding
from gangplan.gitops.source import EXAMPLE_REPOSITORY
from gangplan.records import dataclass
from gangplan.source import Document, load_file
from gangplan.spec.base import ApiVersion, Strict
from gangplan.spec.load import parse_spec_document

SETTINGS_FILE = "gangplan.yaml"


@dataclass(frozen=True, slots=True)
class GitopsSettings:
    """The content of the file: settings by engine, and those shared by all of them; `document` is None
    without a file."""

    document: Document | None = None
    shared: Mapping[str, Any] = field(default_factory=dict)
    engines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_delivery_settings(root: Path) -> tuple[GitopsSettings, list[Finding]]:
    """Read the file of a workspace, and return its settings and findings."""
    if not os.path.lexists(root / SETTINGS_FILE):
        return GitopsSettings(), []
    document, findings = load_file(root / SETTINGS_FILE, SETTINGS_FILE)
    if document is None:
        return GitopsSettings(), findings
    value, more = parse_spec_document(build_delivery_settings_model(), document)
    if value is None:
        return GitopsSettings(), [*findings, *more]
    said = value.model_dump(by_alias=True, exclude_unset=True)["gitops"]
    listed = {name: one or {} for name, one in said.pop("engines", {}).items()}
    return GitopsSettings(document, said, listed), [*findings, *more]


@cache
def build_delivery_settings_model() -> type[Strict]:
    """Build the format of the file from the rows of engines."""
    listed = {
        one.name: (
            _build_delivery_engine_settings_model(one) | None,
            Field(None, description=one.help, examples=[{}]),
        )
        for one in list_engines()
    }
    says = "What `gangplan gitops write` makes, each with its settings."
    gitops = {
        **{one.name: _build_delivery_setting_field(one) for one in SHARED_OPTIONS},
        "engines": (
            _create_settings_model("Engines", "Engines of sync, recipes of CI, and owners.", listed),
            Field(description=says, examples=[{"github": {}}]),
        ),
    }
    says = "What delivers the workspace, and what that needs."
    example = {"repo": EXAMPLE_REPOSITORY, "engines": {"argocd": {}, "github": {}, "codeowners": {}}}
    fields = {
        "api_version": (
            ApiVersion,
            Field(description="Version of this file format.", examples=["gangplan.dev/v1"]),
        ),
        "kind": (Literal["Workspace"], Field(description="Kind of this file.", examples=["Workspace"])),
        "gitops": (
            _create_settings_model("GitOps", says, gitops),
            Field(description=says, examples=[example]),
        ),
    }
    return _create_settings_model("Workspace", "What delivers a workspace: gangplan.yaml at its top.", fields)


def _create_settings_model(name: str, says: str, fields: Mapping[str, tuple[Any, Any]]) -> type[Strict]:
    make: Any = create_model
    model: type[Strict] = make(name, __base__=Strict, __doc__=says, **fields)
    return model


def _build_delivery_engine_settings_model(engine: GitopsEngine) -> Any:
    fields = {one.name: _build_delivery_setting_field(one) for one in engine.options}
    if engine.home:
        says = f"Folder of its files in the workspace; omitted: {engine.home}."
        fields["output"] = (str | None, Field(None, description=says, examples=[engine.home]))
    return _create_settings_model(engine.name.capitalize(), engine.help, fields)


def _build_delivery_setting_field(option: EngineOption) -> tuple[Any, Any]:
    """Return the type of a setting, and its documentation."""
    kinds: dict[type, Any] = {str: str, int: int, tuple: tuple[str, ...], dict: dict[str, str]}
    return kinds[type(option.default)] | None, Field(
        None, description=option.help, examples=[example_of(option)]
    )


def example_of(option: EngineOption) -> Any:
    """Return the example of an option in the form of its setting."""
    if isinstance(option.default, dict):
        return dict([option.example.split("=", 1)])
    return int(option.example) if isinstance(option.default, int) else option.example
