"""Sorting the spec files into specs, sweeps and templates. The code for the last two is only imported if
needed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gangplan.findings import Finding
from gangplan.spec.listing import find_possible_sweeps, is_template, read_spec_bytes
from gangplan.spec.root import JOB_TEMPLATES

if TYPE_CHECKING:
    from gangplan.spec.sweep_files import SweepFile
    from gangplan.spec.templates import TemplateSet


def sort_specs_sweeps_and_templates(
    root: Path, files: list[tuple[str, str]], without: Collection[str], findings: list[Finding]
) -> tuple[list[tuple[str, str]], dict[str, SweepFile], TemplateSet | None]:
    """Return the spec files (path, team) without templates; the sweeps among them; all templates.

    Folders in `without` are known to have no sweeps. Findings about templates are added to `findings`.
    """
    sweeps: dict[str, SweepFile] = {}
    if found := find_possible_sweeps(root, files, without):
        from gangplan.spec.sweep_files import find_sweeps_among_spec_files  # few workspaces have sweeps

        sweeps = find_sweeps_among_spec_files(root, found)
    inside = [one for one in files if "/templates/" in one[0]]
    own = {one for one, data in read_spec_bytes(root, inside) if is_template(one[0], data)}
    if not (own or (root / JOB_TEMPLATES).is_dir()):
        return files, sweeps, None
    from gangplan.spec.template_files import load_job_templates  # few workspaces have templates

    uses = [one for one, data in read_spec_bytes(root, files) if b"template" in data and one not in own]
    templates = load_job_templates(root, sorted(own), uses)
    findings += templates.findings
    for file, sweep in sweeps.items():  # a sweep's template also decides its queue
        if sweep.mark and templates.marks.get(file):
            sweeps[file] = replace(sweep, mark=sweep.mark + templates.marks[file])
    return [one for one in files if one not in own], sweeps, templates
