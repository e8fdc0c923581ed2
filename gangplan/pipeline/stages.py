"""The stages of a command, from the workspace to findings and texts. Only this module knows their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from gangplan.component import build_no_match_finding
from gangplan.emit import FileOutcome, StagingFolder
from gangplan.engines import pick_execution_engine, split_into_worker_tasks
from gangplan.findings import Finding, assign_cluster, sort_findings
from gangplan.pipeline.blame import drop_findings_with_repeated_cause
from gangplan.pipeline.checks import check_runs_together
from gangplan.pipeline.clusters import expand_cluster_platform_and_tenants
from gangplan.pipeline.counts import check_namespace_object_counts
from gangplan.pipeline.course import PipelineState
from gangplan.pipeline.known import KnownResults
from gangplan.pipeline.platform import check_platform_files, find_clusters_closed_by_errors
from gangplan.pipeline.request import Request, Result, ShardResult
from gangplan.pipeline.runs import expand_spec_files
from gangplan.pipeline.scan import drop_secret_repeats, hide_found_secrets, scan_workspace_for_secrets
from gangplan.pipeline.scope import filter_findings_by_scope, select_work_scope
from gangplan.pipeline.shard import parse_spec_team, select_shard_teams
from gangplan.pipeline.told import ShardRecorder
from gangplan.pipeline.worker import (
    TaskResult,
    WorkerOptions,
    create_pipeline_worker,
    create_similar_pipeline_worker,
)
from gangplan.resolve.upgrade import replace_versions_of_clusters
from gangplan.waivers import Subject, apply_waivers_to_findings
from gangplan.workspace import OVERLAYS, RENDERED, SpecFile, Workspace, load_spec


def run_pipeline_stages(
    request: Request, workspace: Workspace, stage: StagingFolder | None, known: KnownResults | None = None
) -> Result:
    """Run all stages up to the texts, which are kept if there is no stage to put them on.

    Results that are `known` are not made again; their texts are in `rendered/` and not on the stage.
    """
    result = Result(workspace, list(workspace.findings), known=known)
    if request.shard is not None:
        result.shard = ShardResult(ShardRecorder(workspace.rulebook.policy))
    if workspace.is_refused:
        return _drop_later_shard_findings(request, result)
    at_versions = replace_versions_of_clusters(workspace, request.versions, request.clusters)
    course = PipelineState(request, at_versions, stage, result, known=result.known)
    is_resolved = workspace.catalog is not None and workspace.clusters
    for step in (SHARD_STAGES if request.shard else STAGES) if is_resolved else UNRESOLVED:
        step(course)
    return result if is_resolved else _drop_later_shard_findings(request, result)


def _drop_later_shard_findings(request: Request, result: Result) -> Result:
    """Return a result where no run can be worked on; of several shards, only the first one reports why."""
    if request.shard is not None and not request.shard.is_first:
        result.findings.clear()
    return result


def _check_platform(course: PipelineState) -> None:
    """Check clusters, teams, policies and waivers, before any spec is read."""
    find = partial(check_platform_files, course.workspace)
    course.result.findings += course.known.platform_findings(find) if course.known else find()
    if course.result.shard is not None:
        course.result.shard.elsewhere = frozenset(course.result.findings)


def _report_unreadable_specs(course: PipelineState) -> None:
    """Report specs that cannot be read, where nothing can be resolved."""
    files = [one for one in course.workspace.spec_files if one.file not in course.workspace.sweeps]
    course.result.findings += [
        one for file in files for one in load_spec(course.workspace.root, file, course.workspace.templates)[1]
    ]
    course.result.specs = len(course.workspace.spec_files)


def _choose_work_scope(course: PipelineState) -> None:
    """Choose the clusters, teams and specs that flags and named files mean. Raises UserError."""
    request, result = course.request, course.result
    result.scope, course.files = select_work_scope(
        course.workspace, request.clusters, request.teams, request.specs, Path.cwd()
    )
    if request.shard is not None and result.shard is not None:
        teams = [file.team for file in course.files]
        result.shard.teams, result.shard.others = select_shard_teams(request.shard, teams), frozenset(teams)
        course.files = [file for file in course.files if file.team in result.shard.teams]
    result.specs, result.files = len(course.files), tuple(file.file for file in course.files)


def _start_pipeline_worker(course: PipelineState) -> None:
    """Create the worker that all tasks use."""
    request, result = course.request, course.result
    closed = find_clusters_closed_by_errors(course.workspace, result.findings)
    if closed or result.scope.named_clusters:  # the conditions do not say which runs are worked on
        course.known = result.known = None
    elif course.known is not None and request.in_sums and _is_about_all_runs(course):
        course.known.takes_whole = True
    options = WorkerOptions(
        request.clusters,
        course.stage,
        course.stage is None,
        request.keep_runs,
        request.versions,
        request.with_flows,
        request.with_facts,
        closed,
        result.scope,
        conditions=course.known.conditions if course.known else "",
        is_brief=request.is_brief,
    )
    if request.like is not None:
        course.worker = create_similar_pipeline_worker(request.like, course.workspace, options)
    else:
        course.worker = create_pipeline_worker(course.workspace, options)
    result.worker = course.worker


def _is_about_all_runs(course: PipelineState) -> bool:
    """Return whether a command is about all runs, takes none from elsewhere, and nothing needs the facts of
    all.

    Then teams share no job: clusters on which two teams share a namespace are closed.
    """
    request, sites = course.request, course.workspace.clusters.values()
    is_elsewhere = request.shard or request.told or request.taken or request.noted is not None
    is_everything = course.result.scope.is_everything and not is_elsewhere
    return is_everything and not any(one.monthly_budget for file in sites for one in file.spec.teams.values())


def _expand_specs_with_workers(course: PipelineState) -> None:
    """Resolve, plan, generate, build, check and stage all runs, with the requested number of workers."""
    known, told, taken = course.known, course.request.told, course.request.taken
    files = known.unknown(course.files) if known else course.files
    files = [file for file in files if file.file not in (told.specs if told else taken)]
    engine = pick_execution_engine(course.request.engine, course.request.jobs, len(files))
    tasks = split_into_worker_tasks(files, engine.workers)
    # A pool that ends when Python collects its generator loses interrupts.
    with closing(engine.map(expand_spec_files, tasks, course.started, _format_task_name)) as results:
        _take_outcomes_in_order(course, (one for outcomes in results for one in outcomes))


def _take_outcomes_in_order(course: PipelineState, made: Iterator[TaskResult]) -> None:
    """Take the outcome of each spec in the order of the files; `made` yields the new ones."""
    known, told, shard = course.known, course.request.told, course.result.shard
    taken, noted = course.request.taken, course.request.noted
    tell = course.request.progress or (lambda *_: None)
    for done, file in enumerate(course.files, 1):
        if known is not None and file.team in known.wholes:
            course.take_whole(file.team)
            tell(done, len(course.files))
            continue
        outcome = known.result(file) if known else told.result(file.file) if told else taken.get(file.file)
        if outcome is None:
            outcome = next(made)
            if known is not None:
                known.note(outcome)
        if shard is not None:
            shard.telling.note(outcome)
        if noted is not None:
            noted[file.file] = outcome
        course.take(outcome)
        tell(done, len(course.files))


def _format_task_name(files: Sequence[SpecFile]) -> str:
    """Return the name of a task: its files."""
    others = f" or one of the {len(files) - 1} after it" if len(files) > 1 else ""
    return f"{files[0].file}{others}"


def _expand_clusters_before_runs(course: PipelineState) -> None:
    """Render and check each cluster's platform and tenants, before any run."""
    scope, worker, request, shard = course.result.scope, course.started, course.request, course.result.shard
    told = request.told
    standing = {name for name in course.workspace.clusters if scope.tenants(name) is not None}
    for cluster in sorted(standing - worker.options.closed):
        make = partial(
            expand_cluster_platform_and_tenants, worker, cluster, teams := scope.tenants(cluster) or ()
        )
        folder = f"{OVERLAYS}/{cluster}"
        outcome = told.clusters.get(cluster) if told else request.taken.get(folder)
        if outcome is None:
            outcome = course.known.cluster(cluster, teams, make) if course.known else make()
        if request.noted is not None:
            request.noted[folder] = outcome
        if shard is not None:
            shard.telling.clusters[cluster] = outcome
        course.take(outcome)
        worker.forget(cluster)


def _check_cluster_runs_together(course: PipelineState) -> None:
    """Check for runs that conflict, cluster by cluster, and for namespaces without room for all runs."""
    if course.could_clash or sum(bool(one.schedule) for one in course.result.facts) > 1:
        course.complete()
    for cluster, demands in sorted(course.demands.items()):
        found = check_runs_together(cluster, course.workspace.clusters[cluster].spec.node_pools, demands)
        named = {place: name for name, (place, _) in demands.items()} if found else {}
        for finding in found:
            team, _, job = named[finding.where].partition("/")
            excused = apply_waivers_to_findings(
                [finding], course.workspace.waivers, Subject(cluster, team, job)
            )
            course.result.findings += assign_cluster(cluster, excused)
    result = course.result
    if sum(bool(one.schedule) for one in result.facts) > 1:
        from gangplan.pipeline.schedules import check_crowded_hours  # few clusters have schedules

        result.findings += check_crowded_hours(result.facts, course.demands)
    result.findings += check_namespace_object_counts(
        course.started, result.changes, result.texts, result.facts, _count_whole_team_runs(result)
    )
    if any(
        one.monthly_budget for file in course.workspace.clusters.values() for one in file.spec.teams.values()
    ):
        from gangplan.pipeline.budgets import check_team_budgets  # few clusters have budgets

        result.findings += check_team_budgets(course.workspace, result.scope, result.facts, course.places)


def _count_whole_team_runs(result: Result) -> dict[tuple[str, str], int]:
    """Return the number of runs of teams that were taken as a whole, by cluster and team."""
    return {(cluster, one.team): count for one in result.wholes for cluster, count in one.counts.items()}


def _drop_echoes(course: PipelineState) -> None:
    """Report each cause once, even if many runs are affected."""
    course.result.findings = drop_findings_with_repeated_cause(course.result.findings)


def _check_unmatched_patches(course: PipelineState) -> None:
    """Report patches that match nothing, which kustomize would ignore silently."""
    result = course.result
    if result.has_errors:
        return
    for cluster in filter(result.scope.has_whole, course.workspace.clusters):
        for index, patch in enumerate(course.workspace.components[cluster].patches):
            if index not in course.matched.get(cluster, set()):
                course.complete()
                every = {(name, job) for name, _, job in course.places} | course.others
                jobs = {job for name, job in every if name == cluster}
                result.findings.append(build_no_match_finding(cluster, patch, jobs))


def _filter_findings_by_scope(course: PipelineState) -> None:
    """Keep every error, and the rest if it is about the part that is worked on."""
    result = course.result
    result.findings = filter_findings_by_scope(result.findings, result.scope, course.places)


def _add_secret_findings(course: PipelineState) -> None:
    """Add findings about secrets, in order; no other finding repeats a secret."""
    result, known = course.result, course.known
    clean = known.without_secrets() if known else ()
    ours = {f"{RENDERED}/{one.path}" for one in result.changes if one.outcome is FileOutcome.SAME}
    folders = list(known.seen.contents) if known else None
    found, values = scan_workspace_for_secrets(
        course.workspace.root, result.scope.reads, clean, ours, folders
    )
    if known is not None:
        known.scanned(found, result.scope.is_everything)
    if result.shard is not None:
        result.shard.secrets, result.shard.has_secrets = values, any(one.is_error for one in found)
        found = [one for one in found if _is_finding_reported_by_shard(course, one)]
    result.findings = sort_findings(
        [*drop_secret_repeats(hide_found_secrets(result.findings, values), found), *found]
    )


def _is_finding_reported_by_shard(course: PipelineState, finding: Finding) -> bool:
    """Return whether a shard reports a finding in a file: in its own specs; the first one also outside of
    specs."""
    shard, team = course.result.shard, parse_spec_team(finding.where.file)
    if course.request.shard is None or shard is None:
        return True
    return team in shard.teams or (course.request.shard.is_first and team not in shard.others)


def _leave_platform_to_first_shard(course: PipelineState) -> None:
    """Leave findings about the platform, which every shard makes, to the first one."""
    shard, result = course.result.shard, course.result
    if shard is not None and course.request.shard is not None and not course.request.shard.is_first:
        result.findings = [one for one in result.findings if one not in shard.elsewhere]


def _expand_clusters_once(course: PipelineState) -> None:
    """Render and check platforms and tenants in the first shard."""
    if course.request.shard is not None and course.request.shard.is_first:
        _expand_clusters_before_runs(course)


# The order, for all commands that render; CHECK_STAGES of api/checks.py follow. Each adds what it finds.
STAGES: tuple[Callable[[PipelineState], None], ...] = (
    _check_platform,
    _choose_work_scope,
    _start_pipeline_worker,
    _expand_specs_with_workers,
    _check_cluster_runs_together,
    _expand_clusters_before_runs,
    _drop_echoes,
    _check_unmatched_patches,
    _filter_findings_by_scope,
    _add_secret_findings,
)
# The same for a part of the specs. What only all runs together show is found when the shards are merged.
SHARD_STAGES: tuple[Callable[[PipelineState], None], ...] = (
    _check_platform,
    _choose_work_scope,
    _start_pipeline_worker,
    _expand_specs_with_workers,
    _expand_clusters_once,
    _drop_echoes,
    _leave_platform_to_first_shard,
    _filter_findings_by_scope,
    _add_secret_findings,
)
# The stages without a catalog or a cluster: a spec that cannot be read is still reported.
UNRESOLVED = (_check_platform, _report_unreadable_specs, _add_secret_findings)
