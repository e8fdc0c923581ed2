"""Reading the files of templates, and a mark for each spec file that changes with the templates that it may
use."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from pathlib import PurePosixPath

from gangplan.findings import Finding, Location
from gangplan.rules.core import SPEC_FILE_NAME
from gangplan.source import load_file
from gangplan.spec.job_template import JobTemplate
from gangplan.spec.load import parse_spec_document
from gangplan.spec.root import JOB_TEMPLATES
from gangplan.spec.template_checks import (
    check_job_template_file,
    check_job_template_files_together,
    check_versions_of_job_template_files,
)
from gangplan.spec.template_file import TemplateFile
from gangplan.spec.templates import PLATFORM_TEAM, TemplateSet

_SWEEP = re.compile(rb"^kind:[ \t]*[\"']?Sweep\b", re.MULTILINE)
_NESTED = re.compile(
    rb"^[ \t]+template:[ \t]*[\"']?([a-z0-9-]+(?:@[0-9]+)?)[\"']?[ \t\r]*(?:#.*)?$", re.MULTILINE
)
_NAMED = re.compile(rb"^template:[ \t]*[\"']?([a-z0-9-]+(?:@[0-9]+)?)[\"']?[ \t\r]*(?:#.*)?$", re.MULTILINE)


def load_job_templates(
    root: FilePath, own: Sequence[tuple[str, str]], uses: Sequence[tuple[str, str]]
) -> TemplateSet:
    """Return the templates of the platform and those of teams (path, team); `uses` are specs that may name
    one."""
    findings: list[Finding] = []
    platform = [(file, PLATFORM_TEAM) for file in _list_job_template_files_of_platform(root, findings)]
    files, found = read_job_template_files(root, [*platform, *own])
    templates = TemplateSet(tuple(files), {}, (*findings, *found))
    together = list(check_job_template_files_together(templates))
    broken = {one.where.file for one in together if one.is_error}
    usable = (replace(one, template=None) if one.file in broken else one for one in templates.files)
    templates = replace(templates, files=tuple(usable), findings=(*templates.findings, *together))
    marks = {
        file: _compute_job_template_digest(root, templates, file, team)
        for file, team in uses
        if (file, team) not in own
    }
    return replace(templates, marks=marks)


def _list_job_template_files_of_platform(root: FilePath, findings: list[Finding]) -> Iterator[str]:
    folder = root / JOB_TEMPLATES
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        file = path.relative_to(root).as_posix()
        if path.is_dir() or path.name.startswith(".") or path.suffix not in (".yaml", ".yml"):
            continue
        if path.suffix == ".yml":
            message = "the file ends in .yml and would be ignored"
            findings.append(
                Finding(SPEC_FILE_NAME, Location(file), message, f"Rename it to {path.stem}.yaml.")
            )
            continue
        yield file


def read_job_template_files(
    root: FilePath, files: Sequence[tuple[str, str]]
) -> tuple[list[TemplateFile], list[Finding]]:
    """Return the templates in files (path, team), and the findings about each by itself."""
    found, findings = [], list[Finding]()
    for file, team in files:
        document, wrong = load_file(root / file, file)
        template = None
        if document is not None:
            template, more = parse_spec_document(JobTemplate, document)
            wrong = [*wrong, *more]
        stem, at, number = PurePosixPath(file).stem.partition("@")
        if template is not None and document is not None:
            wrong += check_job_template_file(template, document, stem, number if at else None)
        if any(one.is_error for one in wrong):
            template = None
        findings += wrong
        version = (
            template.version if template else int(number) if number.isdecimal() and len(number) < 10 else 1
        )
        name = (template.name if template else None) or stem
        data = (root / file).read_bytes() if document is not None else b""
        digest = hashlib.sha256(data).hexdigest()[:16]
        found.append(TemplateFile(file, team, name, version, template, document, digest))
    return found, [*findings, *check_versions_of_job_template_files(found)]


def _compute_job_template_digest(root: FilePath, templates: TemplateSet, file: str, team: str) -> str:
    """Return a digest of the templates that a spec, or the job of a sweep, is made from.

    If a quick search of the file does not show which, it covers all templates; for a sweep that names none,
    it is empty.
    """
    try:
        data = (root / file).read_bytes()
    except OSError:
        data = b""
    named = _NAMED.findall(data)
    if not named and _SWEEP.search(data):
        named = _NESTED.findall(data)
        if data.count(b"template") == 1:  # its own field, which is the job
            return ""
    chain: list[TemplateFile] = []
    label = named[0].decode() if len(named) == 1 else ""
    owner = team
    while label and len(chain) < len(templates.files):
        one = templates.find(owner, label)
        if one is None or one.template is None:
            chain = []
            break
        chain.append(one)
        label, owner = one.template.extends or "", one.team
    every = chain or templates.files
    return "+" + hashlib.sha256(repr([(one.file, one.digest) for one in every]).encode()).hexdigest()[:16]
