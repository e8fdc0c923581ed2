"""A file that is to be written: its text, whether it may exist, and what gangplan would report about it."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.records import dataclass
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.rules.model import WARNING
from gangplan.rules.waivers import WAIVER_EXPIRED, WAIVER_TOO_LONG
from gangplan.source import load_document
from gangplan.spec.root import SPECS
from gangplan.starter.answers import check_name
from gangplan.starter.catalog import add_new_image_to_catalog
from gangplan.starter.draft import create_draft_copy_of_workspace
from gangplan.starter.fields import fields_of
from gangplan.starter.text import render_file_text
from gangplan.starter.values import FlagText, NewFileValues, build_new_file_values
from gangplan.workspace import CATALOG, suggest_nearest

# The name of a job that tries out a new image, and the largest number of teams that it is tried for.
_TRY, _TRIED = "gangplan-try", 20


@dataclass(frozen=True, slots=True)
class NewFile:
    """What is to be written: the kind, its name, the team of a job, and the texts of the fields by flag."""

    kind: str
    root: Path
    name: str
    team: str
    given: Mapping[str, FlagText]

    @property
    def file(self) -> str:
        """The path of the file."""
        return {
            "job": f"specs/{self.team}/{self.name}.yaml",
            "team": f"specs/{self.name}/team.yaml",
            "cluster": f"overlays/{self.name}/cluster.yaml",
            "image": CATALOG,
            "waiver": f"policies/waivers/{self.name}.yaml",
        }[self.kind]

    @property
    def values(self) -> NewFileValues:
        """The values of the fields. Raises UserError for an invalid text."""
        values = build_new_file_values(fields_of(self.kind), self.given)
        if self.kind == "job" and "parameters" in values:
            from gangplan.starter.parameters import (
                convert_new_job_parameters,
                find_new_job_parameter_types,
                read_team_templates_for_new_job,
            )  # few jobs have a template

            templates = read_team_templates_for_new_job(self.root, self.team)
            types = find_new_job_parameter_types(templates, self.team, str(values.get("template", "")))
            values["parameters"] = convert_new_job_parameters(values["parameters"], types)
        return values

    def text(self) -> bytes:
        """Return the file as it would be. Raises UserError."""
        if self.kind != "image":
            return render_file_text(self.kind, self.values, self.root, self.file).encode()
        path = self.root / CATALOG
        if path.is_symlink():
            raise UserError(f"{CATALOG} is a link", "Replace it with a file.")
        if path.exists():
            return add_new_image_to_catalog(path.read_bytes(), self.name, self.values)
        return render_file_text("image", {"images": {self.name: self.values}}, self.root, CATALOG).encode()


def check_new_file(wanted: NewFile, may_exist: bool = False) -> None:
    """Refuse an invalid name, and one that is taken unless it may exist. Raises UserError."""
    check_name(wanted.kind, wanted.name)
    if wanted.kind == "job":
        teams = sorted(path.parent.name for path in wanted.root.glob(f"{SPECS}/*/team.yaml"))
        if wanted.team not in teams:
            raise UserError(f"there is no team '{wanted.team}'", suggest_nearest(wanted.team, teams))
    if wanted.kind != "image" and not may_exist and os.path.lexists(wanted.root / wanted.file):
        raise UserError(f"nothing was written: {wanted.file} exists", "Edit it, or take another name.")


def judge_new_file(
    wanted: NewFile, data: bytes, today: datetime.date | None = None
) -> tuple[Result, list[Finding]]:
    """Return the result and findings of a check as if the file existed, on a day if it depends on one."""
    with create_draft_copy_of_workspace(wanted.root, {wanted.file: data.decode()}) as draft:
        named = (wanted.file,) if wanted.kind == "job" else ()
        result = preview_render(Request(draft, specs=named, engine="serial"))
    about = [one for one in result.findings if one.rule != WORKSPACE_EMPTY or one.where.file != SPECS]
    if wanted.kind == "image":
        about += [one for one in _check_new_image_usable_by_teams(wanted, data) if one not in about]
    if today is not None and wanted.kind == "waiver":
        about += _check_new_waiver_may_end_then(result, today)
    if wanted.kind != "job":
        # Other files may have faults of their own; these are reported when those files are checked.
        about = [one for one in about if one.where.file == wanted.file]
    return result, about


def _check_new_waiver_may_end_then(result: Result, today: datetime.date) -> list[Finding]:
    """Return that waivers ended before today, or last too long: nothing that is approved now may."""
    from gangplan.resolve.waiver_checks import LONGEST_WAIVER, judge_waivers

    help = f"Give a day from {today} to {today + LONGEST_WAIVER}."
    found = judge_waivers(result.workspace, (), today, is_whole=False)
    return [replace(one, help=help) for one in found if one.rule in (WAIVER_EXPIRED, WAIVER_TOO_LONG)]


def _check_new_image_usable_by_teams(wanted: NewFile, data: bytes) -> list[Finding]:
    """Return why no team could run a job with a new image, at its entry; empty if one could.

    What others would have to allow, such as a registry, is a warning, because the entry may be added first.
    """
    from gangplan.resolve.image_checks import IMAGE_RULES  # only new images need it

    spec = f"apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: {wanted.name}\ncommand: ['true']\n"
    teams = sorted(path.parent.name for path in wanted.root.glob(f"{SPECS}/*/team.yaml"))[:_TRIED]
    tries = [f"{SPECS}/{team}/{_TRY}.yaml" for team in teams]
    document, _ = load_document(data, CATALOG)
    if document is None or not tries:
        return []
    with create_draft_copy_of_workspace(
        wanted.root, {wanted.file: data.decode(), **dict.fromkeys(tries, spec)}
    ) as draft:
        found = preview_render(Request(draft, specs=tuple(tries), engine="serial")).findings
    wrong = [one for one in found if one.is_error and one.rule in IMAGE_RULES]
    by_team = [[one for one in wrong if one.where.file in (file, CATALOG)] for file in tries]
    entry = document.where(("images", wanted.name), key=True)
    return [
        one if one.where.file == CATALOG else replace(one, where=entry, level=WARNING)
        for one in (by_team[0] if all(by_team) else ())
    ]
