"""`gangplan run`."""

from __future__ import annotations

import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr, wants_coloured_output
from gangplan.errors import Exit, ToolError, UserError
from gangplan.findings import Finding
from gangplan.local.keep import KEPT_FILE
from gangplan.local.output import OutputLine
from gangplan.local.places import parse_local_folder_flags, remove_marked_folder
from gangplan.local.play import run_local_pods
from gangplan.local.prepare import LocalRunOptions, PreparedRun, prepare_local_run
from gangplan.local.stage import MARK_FILE
from gangplan.model.duration import DurationError, parse_duration_to_seconds
from gangplan.model.job import Job
from gangplan.records import dataclass
from gangplan.report.local import (
    describe_local_run_end,
    format_output_line_for_terminal,
    format_start_of_local_run,
)
from gangplan.resolve.job import resolve_job, resolve_target_clusters
from gangplan.spec.near import find_nearest_file
from gangplan.workspace import (
    Spec,
    SpecFile,
    Workspace,
    find_workspace_root_above,
    load_spec,
    load_workspace,
    suggest_nearest,
)

_PLAIN_PATH = re.compile(r"[A-Za-z0-9_./+@%=-]+")


@dataclass(frozen=True, slots=True)
class LocalRunFlags:
    """The flags of the command."""

    spec: str
    cluster: str
    workers: int | None
    ranks: int | None
    paths: tuple[str, ...]
    mounts: tuple[str, ...]
    python: str | None
    limit: str | None
    keep: bool
    color: str


def run_small_copy_from_flags(asked: LocalRunFlags, folder: Path | None) -> int:
    """Run a small copy of a job here, and return its exit code, 124 if its time ran out.

    Returns INPUT if the spec or a flag is wrong. Raises UserError, and ToolError for what this machine lacks.
    """
    workspace = load_workspace(_find_workspace_for_run_command(asked.spec, folder))
    job, spec, findings = _resolve_job_for_run_command(workspace, asked)
    if job is None or spec is None:
        print_findings_to_stderr(findings)
        return choose_exit_code(findings)
    wish = LocalRunOptions(
        asked.workers,
        asked.ranks,
        parse_local_folder_flags(asked.paths, "--path"),
        parse_local_folder_flags(asked.mounts, "--mount"),
        asked.python,
        Path.cwd(),
        workspace.root,
    )
    limit_s = job.timeout_s if asked.limit is None else _parse_timeout_seconds(asked.limit)
    with _create_scratch_folder_for_run_command(asked.keep) as root:
        prepared, findings = prepare_local_run(job, spec, wish, root, workspace.waivers)
        if prepared is None:
            print_findings_to_stderr(findings)
            sys.stderr.write(
                "The command does not fit the MPI or the numbers of this machine; --workers and --ranks change them.\n"
            )
            return Exit.INPUT
        return _run_pods_and_print_their_output(prepared, limit_s, asked)


def _run_pods_and_print_their_output(prepared: PreparedRun, limit_s: int, asked: LocalRunFlags) -> int:
    colour = wants_coloured_output(sys.stdout, asked.color)

    def show(line: OutputLine) -> None:
        stream = sys.stderr if line.is_error else sys.stdout
        stream.write(format_output_line_for_terminal(line, prepared.cast, colour))
        stream.flush()

    sys.stderr.write(format_start_of_local_run(prepared))
    sys.stderr.flush()
    ended = run_local_pods(prepared.cast, prepared.stage, limit_s, prepared.secrets, show)
    sys.stderr.write(describe_local_run_end(ended, prepared, limit_s))
    return ended.code


def _find_workspace_for_run_command(spec: str, folder: Path | None) -> Path:
    """Return the named workspace, else the one around the current folder or the spec. Raises UserError."""
    if folder is not None:
        return find_workspace_root_above(folder.resolve())
    try:
        return find_workspace_root_above(Path.cwd())
    except UserError:
        return find_workspace_root_above(Path(spec).resolve().parent)


def _resolve_job_for_run_command(
    workspace: Workspace, asked: LocalRunFlags
) -> tuple[Job | None, Spec | None, list[Finding]]:
    """Return the job of the spec on the selected cluster, and the findings that prevent it. Raises
    UserError."""
    file = _find_spec_file_of_argument(workspace, asked.spec)
    is_sweep = file.file in workspace.sweeps
    spec, findings = (
        _load_first_trial_for_run_command(workspace, file)
        if is_sweep
        else load_spec(workspace.root, file, workspace.templates)
    )
    if spec is None:
        return None, None, [*workspace.findings, *findings]
    clusters, findings = resolve_target_clusters(workspace, spec)
    if asked.cluster and asked.cluster not in clusters:
        if asked.cluster in workspace.unread:
            return None, None, [*workspace.findings, *findings]
        raise UserError(
            f"{asked.spec} is not for cluster '{asked.cluster}'",
            suggest_nearest(asked.cluster, clusters) or None,
        )
    if not clusters:
        return None, None, [*workspace.findings, *findings]
    job, findings = resolve_job(workspace, spec, asked.cluster or clusters[0])
    return job, spec, [*(workspace.findings if job is None else ()), *findings]


def _load_first_trial_for_run_command(
    workspace: Workspace, file: SpecFile
) -> tuple[Spec | None, list[Finding]]:
    """Return the first trial of a sweep as a spec, and say on stderr which it is; None with findings.

    Raises UserError if there is none.
    """
    from gangplan.spec.files import read_files_mounted_by_spec
    from gangplan.spec.sweep_files import build_sweep_trial_jobs  # few runs are trials

    sweep = workspace.sweeps[file.file]
    first = next(build_sweep_trial_jobs(sweep, workspace.templates), None)
    if first is None and not sweep.findings:
        raise UserError(f"{file.file} is a sweep without trials", "Remove some names from removed.")
    if first is None or first.spec is None or first.findings:
        return None, [*sweep.findings, *(first.findings if first else ())]
    files, findings = read_files_mounted_by_spec(workspace.root, file.file, first.spec.files, first.document)
    if findings:
        return None, findings
    values = " ".join(f"{name}={value}" for name, value in first.trial.values)
    sys.stderr.write(f"{file.file} is a sweep; this is its first trial: {values}\n")
    return Spec(file, first.spec, first.document, "", files, first.trial, first.template), []


def _find_spec_file_of_argument(workspace: Workspace, name: str) -> SpecFile:
    """Return the spec with this path. Raises UserError."""
    known = {one.file: one for one in workspace.spec_files}
    for start in (Path.cwd(), workspace.root):
        path = (start / name).resolve()
        if (
            path.is_relative_to(workspace.root)
            and (shown := path.relative_to(workspace.root).as_posix()) in known
        ):
            return known[shown]
    near = find_nearest_file(name, known)
    help = f"Did you mean '{near}'?" if near else "gangplan list specs names all specs."
    raise UserError(f"{name} is not a spec of the workspace", help)


def _parse_timeout_seconds(text: str) -> int:
    try:
        return parse_duration_to_seconds(text)
    except DurationError as error:
        raise UserError(f"--timeout: {error.message}", error.help) from error


def _make_scratch_folder_for_run_command() -> Path:
    """Return a new folder, in the system's folder for temporary files if its path is plain.

    Launch scripts and commands for shells on workers contain the path, and no quoting suits all of them.
    Raises ToolError if there is no place for it.
    """
    asked = Path(tempfile.gettempdir()).resolve()
    for folder in (asked, Path("/tmp").resolve(), Path("/var/tmp").resolve()):
        if _PLAIN_PATH.fullmatch(str(folder)):
            with suppress(OSError):
                root = Path(tempfile.mkdtemp(prefix="gangplan-run-", dir=folder))
                if folder != asked:
                    sys.stderr.write(f"note: the run's folder is in {folder}: shells would split {asked}\n")
                return root
    raise ToolError(
        f"no folder for temporary files can be used, not even {asked}",
        "Set TMPDIR to a folder whose path has only letters, digits, and / . _ -",
    )


@contextmanager
def _create_scratch_folder_for_run_command(keep: bool) -> Iterator[Path]:
    """Yield a folder for the run, which is removed at its end unless it is kept.

    A terminal that closes and each SIGTERM interrupt the run as Ctrl-C does, also for the second time.
    """

    def interrupt(number: int, _: object) -> None:
        raise KeyboardInterrupt

    root = _make_scratch_folder_for_run_command()
    (root / MARK_FILE).touch()
    if keep:
        (root / KEPT_FILE).touch()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    heeded = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in heeded:
        signal.signal(number, interrupt)
    try:
        yield root
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_IGN)  # all processes have ended; only the folder is left
        if keep:
            sys.stderr.write(f"The run's folder is {root}.\n")
        else:
            remove_marked_folder(root, MARK_FILE)
        for number in heeded:
            signal.signal(number, before[number])
