"""A file that is to be written: its text, whether it may exist, and what gangplan would report about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request, Result
from gangplan.records import dataclass
from gangplan.rules.core import WORKSPACE_EMPTY
from gangplan.rules.model import WARNING
from gangplan.source import load
from gangplan.spec.root import SPECS
from gangplan.starter.answers import check_name
from gangplan.starter.catalog import with_image
from gangplan.starter.draft import drafted
from gangplan.starter.fields import fields_of
from gangplan.starter.text import file_text
from gangplan.starter.values import Given, Values, nested
from gangplan.workspace import CATALOG, nearest

# The name of a job that tries out a new image, and the largest number of teams that it is tried for.
_TRY, _TRIED = "gangplan-try", 20


@dataclass(frozen=True, slots=True)
class New:
    """What is to be written: the kind, its name, the team of a job, and the texts of the fields by flag."""

    kind: str
    root: Path
    name: str
    team: str
    given: Mapping[str, Given]

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
    def values(self) -> Values:
        """The values of the fields. Raises UserError for an invalid text."""
        values = nested(fields_of(self.kind), self.given)
        if self.kind == "job" and "parameters" in values:
            from gangplan.starter.parameters import templates_of, typed, types_of  # few jobs have a template

            templates = templates_of(self.root, self.team)
            types = types_of(templates, self.team, str(values.get("template", "")))
            values["parameters"] = typed(values["parameters"], types)
        return values

    def text(self) -> bytes:
        """Return the file as it would be. Raises UserError."""
        if self.kind != "image":
            return file_text(self.kind, self.values, self.root, self.file).encode()
        path = self.root / CATALOG
        if path.is_symlink():
            raise UserError(f"{CATALOG} is a link", "Replace it with a file.")
        if path.exists():
            return with_image(path.read_bytes(), self.name, self.values)
        return file_text("image", {"images": {self.name: self.values}}, self.root, CATALOG).encode()


def check(wanted: New, may_exist: bool = False) -> None:
    """Refuse an invalid name, and one that is taken unless it may exist. Raises UserError."""
    check_name(wanted.kind, wanted.name)
    if wanted.kind == "job":
        teams = sorted(path.parent.name for path in wanted.root.glob(f"{SPECS}/*/team.yaml"))
        if wanted.team not in teams:
            raise UserError(f"there is no team '{wanted.team}'", nearest(wanted.team, teams))
    if wanted.kind != "image" and not may_exist and os.path.lexists(wanted.root / wanted.file):
        raise UserError(f"nothing was written: {wanted.file} exists", "Edit it, or take another name.")


def judged(wanted: New, data: bytes) -> tuple[Result, list[Finding]]:
    """Return the result and findings of a check as if the file existed."""
    with drafted(wanted.root, {wanted.file: data.decode()}) as draft:
        named = (wanted.file,) if wanted.kind == "job" else ()
        result = preview(Request(draft, specs=named, engine="serial"))
    about = [one for one in result.findings if one.rule != WORKSPACE_EMPTY or one.where.file != SPECS]
    if wanted.kind == "image":
        about += [one for one in _unusable(wanted, data) if one not in about]
    if wanted.kind != "job":
        # Other files may have faults of their own; these are reported when those files are checked.
        about = [one for one in about if one.where.file == wanted.file]
    return result, about


def _unusable(wanted: New, data: bytes) -> list[Finding]:
    """Return why no team could run a job with a new image, at its entry; empty if one could.

    What others would have to allow, such as a registry, is a warning, because the entry may be added first.
    """
    from gangplan.resolve.image_checks import ABOUT_IMAGES  # only new images need it

    spec = f"apiVersion: gangplan.dev/v1\nkind: TrainingJob\nimage: {wanted.name}\ncommand: ['true']\n"
    teams = sorted(path.parent.name for path in wanted.root.glob(f"{SPECS}/*/team.yaml"))[:_TRIED]
    tries = [f"{SPECS}/{team}/{_TRY}.yaml" for team in teams]
    document, _ = load(data, CATALOG)
    if document is None or not tries:
        return []
    with drafted(wanted.root, {wanted.file: data.decode(), **dict.fromkeys(tries, spec)}) as draft:
        found = preview(Request(draft, specs=tuple(tries), engine="serial")).findings
    wrong = [one for one in found if one.is_error and one.rule in ABOUT_IMAGES]
    by_team = [[one for one in wrong if one.where.file in (file, CATALOG)] for file in tries]
    entry = document.where(("images", wanted.name), key=True)
    return [
        one if one.where.file == CATALOG else replace(one, where=entry, level=WARNING)
        for one in (by_team[0] if all(by_team) else ())
    ]
