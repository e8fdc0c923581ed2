"""`gangplan new sweep`: a sweep from the spec of a job, checked before it is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gangplan.commands.ask import ask, is_watched
from gangplan.commands.common import exit_code, plural, print_findings
from gangplan.contents.files import Files
from gangplan.contents.tables import specs
from gangplan.errors import Exit, UserError
from gangplan.fixes.write import read
from gangplan.pipeline.render import preview
from gangplan.pipeline.request import Request
from gangplan.report.escape import own_line
from gangplan.report.sweeps import apart, sweep_line
from gangplan.spec.root import SPECS, root_of
from gangplan.starter.answers import check_name
from gangplan.starter.draft import drafted
from gangplan.starter.sweeps import parameters_of, sweep_text
from gangplan.starter.text import modeline
from gangplan.starter.write import write_new

_MOST = 10_000  # of maxConcurrent (spec/sweep.py)


def new_sweep(
    name: str,
    job: str,
    given: Sequence[str],
    at_once: int,
    workspace: Path | None,
    is_dry: bool,
    is_quiet: bool,
) -> Exit:
    """Write specs/<team>/<name>.yaml, with the fields of a job as its template. Raises UserError."""
    root = root_of(workspace)
    check_name("job", name)
    source = _source(root, job)
    file = f"{source.rpartition('/')[0]}/{name}.yaml"
    if os.path.lexists(root / file):
        raise UserError(f"nothing was written: {file} exists", "Edit it, or take another name.")
    data = read(root, source)
    if data is None:
        raise UserError(f"{source} is no plain file", "Name the spec of a job.")
    text = sweep_text(data, source, parameters_of(given), at_once, modeline("sweep", root, file))
    with drafted(root, {file: text}) as draft:
        result = preview(Request(draft, specs=(file,), engine="serial"))
    print_findings(result.findings)
    errors = sum(one.is_error for one in result.findings)
    if errors:
        sys.stderr.write(f"nothing was written: {plural(errors, 'error')}\n")
        return exit_code(result.findings)
    if is_dry:
        sys.stdout.write(text)
        return Exit.CLEAN
    write_new(root, {file: text})
    if not is_quiet:
        lines = [f"wrote {file}", *(f"  {sweep_line(one)}" for one in apart(result.runs)[1])]
        lines.append(f"next: gangplan render, then commit {file} and rendered/")
        sys.stdout.write("".join(f"{own_line(line)}\n" for line in lines))
    return Exit.CLEAN


def asked(
    name: str | None, job: str | None, given: Sequence[str], at_once: int | None, workspace: Path | None
) -> tuple[str, str, list[str], int]:
    """Return name, job, parameters and the number of trials at once; on a terminal, ask for what is missing.

    Raises UserError.
    """
    missing = [
        flag
        for flag, value in (
            ("NAME", name),
            ("--from", job),
            ("--parameter", given),
            ("--max-concurrent", at_once),
        )
        if not value
    ]
    if missing and not is_watched():
        verb = "is" if len(missing) == 1 else "are"
        help = "Run gangplan new sweep --help; on a terminal, gangplan asks for what is missing."
        raise UserError(f"nothing was written: {', '.join(missing)} {verb} missing", help)
    root = root_of(workspace)
    if not name:
        name = ask("Name", check=lambda answer: check_name("job", answer))
    if not job:
        known = [str(row["file"]) for row in specs(Files(root)) if row["job"]]
        job = ask(
            "Job that each trial runs",
            "",
            known,
            lambda answer: _source(root, answer),
            hint=", ".join(known[:6]),
        )
    parameters = list(given)
    while not given:
        more = bool(parameters)
        question = "Another parameter" if more else "Parameter and its values"
        answer = ask(
            question,
            "",
            (),
            lambda one: parameters_of([*parameters, one]),
            more,
            "" if more else "such as lr=0.1,0.01",
        )
        if not answer:
            break
        parameters.append(answer)
    if not at_once:
        at_once = int(ask("Trials that run at once", "1", (), _count))
    return name, job, parameters, at_once


def _count(answer: str) -> None:
    if not answer.isdecimal() or len(answer) > len(str(_MOST)) or not 1 <= int(answer) <= _MOST:
        raise UserError(f"'{answer}' is no number of trials", f"Write a whole number from 1 to {_MOST}.")


def _source(root: Path, job: str) -> str:
    """Return the path of the job's spec from the root. Raises UserError."""
    for start in (Path.cwd(), root):
        path = os.path.relpath(os.path.normpath(start / job), root).replace(os.sep, "/")
        top, *rest = path.split("/")
        if top == SPECS and len(rest) > 1 and rest[-1] != "team.yaml" and (root / path).is_file():
            return path
    raise UserError(f"{job} is no spec of a job", "Name a file below specs/<team>/ with --from.")
