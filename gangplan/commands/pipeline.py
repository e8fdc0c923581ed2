"""`gangplan pipeline`: jobs that come after others, as pipelines of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gangplan.commands.common import choose_exit_code, print_findings_to_stderr
from gangplan.commands.gitops_files import write_or_print_files
from gangplan.errors import Exit, UserError
from gangplan.findings import Finding
from gangplan.generators.after import render_wait_script
from gangplan.generators.common import LABEL_PREFIX, escape_kubelet_variable_references, generate_run_labels
from gangplan.gitops.steps import Chain, PipelineStep, sort_pipeline_steps
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.pipeline.worker import PlannedRun
from gangplan.source import MAX_DOCUMENT_BYTES, load_all_documents
from gangplan.workspace import Workspace

# Runs, by file and cluster.
Runs = Mapping[tuple[str, str], Sequence[PlannedRun]]
# Labels of runs, which pods of steps do not get. They get those of the team, and those for the way to the API
# server.
_OF_RUNS = (f"{LABEL_PREFIX}run", f"{LABEL_PREFIX}job", f"{LABEL_PREFIX}sweep")


def run_pipeline_engine_command(
    request: Request, engine: str, write: Callable[[Chain], str], output: str | None, is_check: bool
) -> Exit:
    """Print, write or compare the pipelines of an engine: a file for each team of a cluster. Raises
    UserError."""
    result = preview_render(request)
    if result.has_errors:
        print_findings_to_stderr(result.findings)
        return choose_exit_code(result.findings)
    chains = build_chains_for_pipeline_command(result.workspace, result.runs, engine)
    if not chains:
        message = f"no job comes after another on a cluster whose pipelines.engine is {engine}"
        raise UserError(message, _suggest_pipeline_engine(result, engine))
    line = f"# Made by `gangplan pipeline {engine}`; see docs/pipelines.md.\n"
    files = {f"{one.cluster}-{one.team}.yaml": line + write(one) for one in chains}
    outcome = write_or_print_files(files, output, is_check, bool(request.clusters))
    if not is_check:
        return outcome
    found = _check_double_retries_for_pipeline_command(Path(str(output)), result.runs)
    print_findings_to_stderr(found)
    return max(outcome, choose_exit_code(found))


def _suggest_pipeline_engine(result: Result, engine: str) -> str:
    """Return what is missing: a job that comes after another, the engine in the cluster's file, or both."""
    homes = sorted({run.cluster for run in result.runs if run.unit.job.after is not None})
    has_engine = any(
        one.spec.pipelines is not None and one.spec.pipelines.engine == engine
        for one in result.workspace.clusters.values()
    )
    file = f"overlays/{homes[0] if homes else 'CLUSTER'}/cluster.yaml"
    missing = [] if has_engine and not homes else [f"pipelines: {{engine: {engine}}} into {file}"]
    missing += [] if homes else ["after: [JOB] into a spec"]
    return f"Write {', and '.join(missing)} (docs/pipelines.md)."


def _check_double_retries_for_pipeline_command(folder: Path, runs: Sequence[PlannedRun]) -> list[Finding]:
    """Report tasks of all files in a folder, also of handwritten ones, that are retried although their job
    is, too."""
    from gangplan.gitops.retried import find_doubly_retried_pipeline_tasks

    known: dict[str, tuple[str, int]] = {}
    for run in runs:
        job = run.unit.job
        names = (job.trial.sweep if job.trial else job.name, run.name, f"{run.name}-template")
        known.update(dict.fromkeys(names, (job.source, job.retries)))
    found: list[Finding] = []
    for path in sorted(folder.glob("*.yaml")):
        if path.is_file() and path.stat().st_size <= MAX_DOCUMENT_BYTES:
            documents, _ = load_all_documents(path.read_bytes(), str(path))
            found += [
                one for document in documents for one in find_doubly_retried_pipeline_tasks(document, known)
            ]
    return found


def build_chains_for_pipeline_command(
    workspace: Workspace, planned: Sequence[PlannedRun], engine: str
) -> list[Chain]:
    """Return the pipelines of all teams on the clusters that use an engine."""
    runs: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in planned:
        if run.unit.job.is_active:
            runs.setdefault((run.unit.job.source, run.cluster), []).append(run)
    homes: dict[tuple[str, str], list[PlannedRun]] = {}
    for run in planned:
        if run.unit.job.after is not None and run.unit.job.after.engine == engine:
            homes.setdefault((run.cluster, run.unit.job.team), []).append(run)
    return [
        _build_chain_for_pipeline_command(workspace, runs, *home, held)
        for home, held in sorted(homes.items())
    ]


def _build_chain_for_pipeline_command(
    workspace: Workspace, runs: Runs, cluster: str, team: str, held: Sequence[PlannedRun]
) -> Chain:
    steps: dict[str, PipelineStep] = {}
    for run in held:
        _add_step_for_pipeline_command(workspace, runs, cluster, (run.unit.job.source, run.cluster), steps)
    job, after = held[0].unit.job, held[0].unit.job.after
    assert after is not None
    own = {key: value for key, value in generate_run_labels(held[0].unit) if key not in _OF_RUNS}
    labels = {**own, f"{LABEL_PREFIX}role": "scheduler", "sidecar.istio.io/inject": "false"}
    pods = tuple(sorted((key, value) for key, value in labels.items() if key not in dict(job.labels)))
    user = (after.client, after.uid, after.gid)
    return Chain(
        cluster,
        team,
        job.namespace,
        *user,
        pods,
        escape_kubelet_variable_references(render_wait_script()),
        sort_pipeline_steps(list(steps.values())),
    )


def _add_step_for_pipeline_command(
    workspace: Workspace, runs: Runs, home: str, place: tuple[str, str], steps: dict[str, PipelineStep]
) -> str | None:
    """Add a step and all that it comes after, and return its name; None if nothing is to run there."""
    source, cluster = place
    found = runs.get(place)
    if not found:
        return None
    job = found[0].unit.job
    title = job.trial.sweep if job.trial else job.name
    name = title if cluster == home else f"{title}-{cluster}"
    if name in steps:
        return name
    earlier = job.after.jobs if job.after else ()
    before = [
        _add_step_for_pipeline_command(workspace, runs, home, (one.file, one.cluster), steps)
        for one in earlier
    ]
    context = "" if cluster == home else workspace.clusters[cluster].spec.context or cluster
    names = tuple(run.name for run in found)
    steps[name] = PipelineStep(
        name, source, names, tuple(filter(None, before)), job.after is not None, context
    )
    return name
