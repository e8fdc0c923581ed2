"""`--format`: which reports are requested, where they go, and how they are written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TextIO

from gangplan.commands.common import print_findings_to_stderr, wants_coloured_output
from gangplan.commands.excerpts import build_excerpt_reader
from gangplan.commands.outfile import OutFile, resolve_output_file_flag
from gangplan.errors import ToolError, UserError, find_os_error_help
from gangplan.records import dataclass
from gangplan.report.model import Report, format_check_summary
from gangplan.report.text import format_rule_reasons, format_suggested_first_changes
from gangplan.workspace import suggest_nearest

# The function that writes a report, by format, in a module of that name; a command imports only what it
# needs.
_MAKERS = {
    "text": "whole_text",
    "json": "report_json",
    "sarif": "sarif_report",
    "junit": "junit_report",
    "github": "github_report",
    "gitlab": "gitlab_report",
    "markdown": "markdown_report",
}
FORMATS = tuple(_MAKERS)


@dataclass(frozen=True, slots=True)
class Output:
    """One report: its format, and the file it goes to (None: standard output)."""

    format: str
    file: OutFile | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """All reports of a command."""

    wanted: tuple[Output, ...]
    colour: str = "auto"
    is_quiet: bool = False  # people see only findings and errors
    is_verbose: bool = False  # also why the rules exist

    @property
    def text(self) -> bool:
        """Whether findings are shown to the user who started the command."""
        return Output("text") in self.wanted

    @property
    def machine(self) -> bool:
        """Whether standard output is for a program that reads it."""
        return any(one.file is None and one.format != "text" for one in self.wanted)

    @property
    def is_for_people(self) -> bool:
        """Whether all of them are text."""
        return all(one.format == "text" for one in self.wanted)

    @property
    def words(self) -> TextIO:
        """The stream for what a command says about its work."""
        if self.is_quiet:
            return StringIO()
        return sys.stderr if self.machine else sys.stdout


def parse_format_flags(
    values: Sequence[str] | None, root: Path, colour: str = "auto", is_quiet: bool = False
) -> Outputs:
    """Return the reports that `--format FORMAT` and `--format FORMAT=FILE` request; text by default.

    Raises UserError, before any work, for an unknown format, for two that want standard output, for a file
    that cannot be written or belongs to the workspace, and for a bad address of the pages of rules.
    """
    if colour not in ("auto", "always", "never"):
        raise UserError(f"--color {colour} is not known", "Write --color auto, always or never.")
    wanted = tuple(_parse_format_flag(value, root) for value in values or ["text"])
    if any(one.format == "sarif" for one in wanted):
        from gangplan.report.sarif import read_rule_pages_url

        read_rule_pages_url()
    on_stdout = [one.format for one in wanted if one.file is None and one.format != "text"]
    if len(on_stdout) > 1:
        message = f"{' and '.join(on_stdout)} cannot both go to standard output"
        raise UserError(message, f"Write one of them to a file: --format {on_stdout[0]}=FILE.")
    files: dict[Path, OutFile] = {}
    for one in wanted:
        # A device such as /dev/null takes any number.
        if one.file and one.file.is_plain and files.setdefault(one.file.target, one.file) is not one.file:
            help = "Give each of them its own file."
            raise UserError(f"two reports would go to {files[one.file.target].name}", help)
    return Outputs(wanted, colour, is_quiet)


def publish_reports(report: Report, wanted: Outputs, root: Path, with_summary: bool = True) -> None:
    """Write every report. Raises ToolError if the system refuses; files are complete or unchanged.

    Without `with_summary`, the command itself says what it did.
    """
    for output in wanted.wanted:
        if output.file is not None:
            output.file.write(_render_report_text(output.format, report))
        elif output.format != "text":
            sys.stdout.write(_render_report_text(output.format, report))
    if wanted.text:
        colour = wants_coloured_output(sys.stderr, wanted.colour)
        is_watched = colour or sys.stderr.isatty()
        print_findings_to_stderr(
            report.findings, colour, build_excerpt_reader(root, report.findings) if is_watched else None
        )
        if not wanted.is_quiet:
            sys.stderr.write(format_suggested_first_changes(report.findings))
        if wanted.is_verbose:
            sys.stderr.write(format_rule_reasons(report.findings))
    if with_summary and not wanted.is_quiet and (wanted.text or not wanted.machine):
        # If all reports went to files, one line still shows the outcome.
        stream = wanted.words if wanted.text else sys.stderr
        stream.write(f"{format_check_summary(report)}\n")
    if any(output.format == "github" for output in wanted.wanted):
        _append_report_to_github_step_summary(report)


def _render_report_text(format: str, report: Report) -> str:
    """Return a report as text."""
    make: Callable[[Report], str] = getattr(import_module(f"gangplan.report.{format}"), _MAKERS[format])
    return make(report)


def find_report_folder(root: Path) -> str:
    """Return the path of a workspace in its Git repository, as `Report.folder`; empty outside one."""
    for top in (root, *root.parents):
        if (top / ".git").exists():
            path = root.relative_to(top).as_posix()
            return "" if path == "." else path
    return ""


def _parse_format_flag(value: str, root: Path) -> Output:
    format, equals, name = value.partition("=")
    if format not in FORMATS:
        help = f"{suggest_nearest(format, FORMATS)} Write --format FORMAT, or --format FORMAT=FILE."
        raise UserError(f"there is no format '{format}'", help)
    if not equals or name == "-":
        return Output(format)
    if not name:
        raise UserError(f"--format {value} names no file", f"Write --format {format}={format}.out.")
    return Output(format, resolve_output_file_flag(name, root, "the report"))


def _append_report_to_github_step_summary(report: Report) -> None:
    """Append to the step's summary on GitHub, a file that tools of earlier steps may have begun.

    Raises ToolError if it cannot be written.
    """
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return
    from gangplan.report.github import MOST_SUMMARY_BYTES, render_step_summary

    try:
        with Path(name).open("ab") as file:
            room = MOST_SUMMARY_BYTES - file.tell()
            file.write(render_step_summary(report, room).encode("utf-8", "backslashreplace"))
    except OSError as bad:
        help = f"{find_os_error_help(bad)} Or unset GITHUB_STEP_SUMMARY."
        raise ToolError(f"the step's summary {name} was not written: {bad.strerror}", help) from None
