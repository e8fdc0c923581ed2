"""The sections of a review: titles, columns and rows of plain words, for text and Markdown alike.

Sections are in the order in which a reviewer needs them; if a forge takes no more, the last ones are left out
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from gangplan.findings import Finding
from gangplan.model.amounts import format_amount
from gangplan.model.cost import format_hours
from gangplan.model.quantity import Quantity
from gangplan.report.escape import MAX_DESCRIPTION_LENGTH, shorten_text
from gangplan.report.model import format_title, is_waived
from gangplan.report.review_budgets import build_review_budgets_section
from gangplan.report.review_objects import format_object_changes_section
from gangplan.report.review_runs import build_keep_runs_section, build_run_edits_section, format_total_cost
from gangplan.report.section import ARROW, Section, SectionRow, format_count, shorten_name_list
from gangplan.review.edits import STARTING_EDITS, EditKind, RunEdit
from gangplan.review.review import Review
from gangplan.review.totals import Headroom, Total, TotalChange, sum_active_runs_of_side
from gangplan.rules.merges import MERGE_CONFLICT, RENDERED_STALE
from gangplan.rules.model import Severity


def format_review_headline(review: Review) -> str:
    """Return `2 runs start (at most 96 GPU-hours), 1 stopped; 1 new finding (1 error)`."""
    started = [one for one in review.edits if one.edit in STARTING_EDITS]
    parts = []
    if started:
        total = sum_active_runs_of_side(one.after for one in started if one.after is not None)
        parts.append(
            f"{format_count(len(started), 'run')} {'starts' if len(started) == 1 else 'start'} ({_describe_max_usage(total)}"
            f"{_describe_waiting_runs(started)}{_describe_retrained_runs(started)})"
        )
    for edit in (
        EditKind.SCHEDULED,
        EditKind.WAITS,
        EditKind.RELEASED,
        EditKind.STOPPED,
        EditKind.RETIRED,
        EditKind.REMOVED,
        EditKind.ARCHIVED,
        EditKind.BROKEN,
    ):
        if count := sum(one.edit is edit for one in review.edits):
            parts.append(f"{count} {'waiting' if edit is EditKind.WAITS else edit.value}")
    if not parts:
        parts = ["no run starts or ends"]
        if review.objects:
            count = len(review.objects)
            parts.append(f"{format_count(count, 'object')} {'changes' if count == 1 else 'change'}")
    new = [one for one in review.findings.new if not is_waived(one)]
    waived = len(review.findings.new) - len(new)
    errors = sum(one.severity is Severity.ERROR for one in new)
    found = format_count(len(new), "new finding") if new else "no new findings"
    found += f" ({format_count(errors, 'error')})" if errors else ""
    return f"{', '.join(parts)}; {found}" + (f", {waived} waived" if waived else "")


def _describe_waiting_runs(started: Sequence[RunEdit]) -> str:
    """Return the text about runs that start, but not with the sync."""
    count = sum(bool(one.waits) for one in started)
    return (
        "" if not count else f", {'when' if count == len(started) else f'{count} when'} others are complete"
    )


def _describe_retrained_runs(started: Sequence[RunEdit]) -> str:
    """Return the text about runs that start although their specs did not change."""
    count = sum(one.edit is EditKind.RETRAINED for one in started)
    which = "all" if count == len(started) else str(count)
    return f", {which} only because the platform changed" if count else ""


def _describe_max_usage(total: Total) -> str:
    hours = [f"{format_hours(total.gpu_hours)} GPU-hours"] if total.gpu_hours else []
    hours += [f"{format_hours(total.cpu_hours)} CPU-hours"] if total.cpu_hours else []
    words = f"at most {' and '.join(hours)}" if hours else "without GPUs"
    cost = format_total_cost(total)
    return f"{words}, {cost}" if cost else words


def build_review_sections(review: Review, objects_alone: bool = False) -> list[Section]:
    """Return all sections with contents, or only the objects."""
    if objects_alone:
        found = [one for one in review.all_findings if is_about_trees(one)]
        return [
            section
            for section in (
                _build_findings_section(found, ""),
                format_object_changes_section(review, is_detail=False),
            )
            if section.rows
        ]
    every = (
        build_run_edits_section(review.edits),
        build_keep_runs_section(review.edits),
        _build_totals_section(review),
        build_review_budgets_section(review.budgets),
        _build_new_findings_section(review),
        _build_policies_section(review),
        _build_headroom_section(review.headroom),
        _build_waivers_section(review),
        _build_reach_section(review),
        format_object_changes_section(review),
        _build_specs_section(review),
    )
    return [one for one in every if one is not None and (one.rows or one.below)]


def format_finding_change_counts(review: Review) -> str:
    """Return `2 new, 14 as before (3 warnings, 11 notes), 1 gone`."""
    news = review.findings
    same = [one for one in news.same if not is_waived(one)]
    waived = sum(map(is_waived, news.new))
    new = f"{len(news.new) - waived} new" + (f", {waived} new and waived" if waived else "")
    words = [new, f"{len(same)} as before{_format_severity_counts(same)}"]
    if news.gone:
        words.append(f"{len(news.gone)} gone")
    return ", ".join(words)


def _format_severity_counts(found: Iterable[Finding]) -> str:
    counts = dict.fromkeys(reversed(Severity), 0)
    for one in found:
        counts[one.severity] += 1
    parts = [format_count(count, severity.word) for severity, count in counts.items() if count]
    return f" ({', '.join(parts)})" if parts else ""


def _build_totals_section(review: Review) -> Section | None:
    changed = [one for one in review.totals if one.before != one.after]
    if not changed:
        return None
    rest = len(review.totals) - len(changed)
    below = f"{format_count(rest, 'other total')} of a team on a cluster: unchanged." if rest else ""
    every = TotalChange("all", "", *review.sums)
    rows = [_build_total_row(one) for one in (*changed, every)]
    columns = (
        "team",
        "cluster",
        "active runs",
        "GPUs",
        "GPU-hours at most",
        "CPU-hours at most",
        "cost at most",
    )
    return Section("GPUs, GPU-hours and cost", columns, rows, "row", below)


def _build_total_row(one: TotalChange) -> SectionRow:
    old, new = one.before, one.after
    return (
        one.team,
        one.cluster,
        _format_value_change(str(old.runs), str(new.runs)),
        _format_value_change(str(old.gpus or ""), str(new.gpus or "")),
        _format_value_change(_format_nonzero_hours(old.gpu_hours), _format_nonzero_hours(new.gpu_hours)),
        _format_value_change(_format_nonzero_hours(old.cpu_hours), _format_nonzero_hours(new.cpu_hours)),
        _format_value_change(format_total_cost(old), format_total_cost(new)),
    )


def _format_nonzero_hours(hours: Decimal) -> str:
    return format_hours(hours) if hours else ""


def _format_value_change(old: str, new: str) -> str:
    return new if old == new else f"{old or '0'} {ARROW} {new or '0'}"


def _build_headroom_section(headroom: Sequence[Headroom]) -> Section | None:
    rows = []
    for one in headroom:
        if one.wanted[0] == one.wanted[1] and one.quota[0] == one.quota[1] and one.most[0] == one.most[1]:
            continue
        quota = _format_value_change(*(format_amount(one.resource, amount) for amount in one.quota))
        most = _format_value_change(*(format_amount(one.resource, amount) for amount in one.most))
        wanted = _format_value_change(*(format_amount(one.resource, amount) for amount in one.wanted))
        rows.append(
            (
                one.team,
                one.cluster,
                one.pool,
                one.resource,
                quota,
                most,
                wanted,
                _describe_quota_headroom(one),
            )
        )
    columns = (
        "team",
        "cluster",
        "pool",
        "resource",
        "quota",
        "with borrowing",
        "all active runs",
        "headroom",
    )
    below = "If all active runs ran at once; those that are over in the cluster take nothing." if rows else ""
    return Section("Quota headroom", columns, rows, "quota", below)


def _describe_quota_headroom(one: Headroom) -> str:
    quota, most, wanted = one.quota[1], one.most[1], one.wanted[1]
    if wanted <= quota:
        return f"{format_amount(one.resource, quota - wanted)} left"
    over = format_amount(one.resource, Quantity(wanted.nano - quota.nano))
    return f"{over} over the quota: borrowed" if wanted <= most else f"{over} over the quota: some wait"


def is_about_trees(finding: Finding) -> bool:
    """Return whether a finding says that the trees are not what they seem: an error keeps runs out of
    them."""
    return finding.is_error or finding.rule in (MERGE_CONFLICT, RENDERED_STALE)


def _build_new_findings_section(review: Review) -> Section:
    return _build_findings_section(review.findings.new, f"{format_finding_change_counts(review)}.")


def _build_findings_section(findings: Sequence[Finding], below: str) -> Section:
    order = sorted(findings, key=lambda one: (is_waived(one), -one.severity, one.sort_key))
    rows = [
        (
            "waived" if is_waived(one) else one.severity.word,
            str(one.where),
            str(one.rule),
            format_title(one) + (f". {one.help}" if one.help else ""),
        )
        for one in order
    ]
    return Section("New findings", ("severity", "place", "rule", "what"), rows, "finding", below)


def _build_policies_section(review: Review) -> Section | None:
    counts: dict[tuple[str, str], set[str]] = {}
    for one in review.findings.policies:
        counts.setdefault((str(one.rule), one.severity.word), set()).add(one.object_ref or str(one.where))
    rows = [
        (rule, word, str(len(of)), ", ".join(sorted(of)[:3])) for (rule, word), of in sorted(counts.items())
    ]
    return Section("Policies newly violated", ("policy", "severity", "objects", "such as"), rows, "policy")


def _build_waivers_section(review: Review) -> Section:
    rows = [(one.what, one.name, one.rule, one.until, one.approver, one.reason) for one in review.waivers]
    return Section("Waivers", ("what", "waiver", "rule", "until", "approver", "reason"), rows, "waiver")


def _build_reach_section(review: Review) -> Section:
    rows = []
    for one in review.reaches:
        parts = [
            f"{format_count(one.retrained.runs, 'run')} retrained ({_describe_max_usage(one.retrained)})"
            if one.retrained.runs
            else "",
            f"{format_count(one.updated, 'run')} updated in place" if one.updated else "",
            f"{format_count(one.standing, 'object')} of platform and teams changed" if one.standing else "",
            format_count(one.findings, "new finding") if one.findings else "",
        ]
        words = ", ".join(part for part in parts if part) or "nothing that is applied"
        fields = shorten_name_list([f"{at.line}:{at.column} {name}" for name, at in one.fields])
        rows.append((one.file, fields, words, shorten_name_list(one.teams), shorten_name_list(one.clusters)))
    columns = ("file", "changed at", "touches", "teams", "clusters")
    return Section("Reach of shared files", columns, rows, "file")


def _build_specs_section(review: Review) -> Section:
    new, changed, removed = review.specs
    rows: list[SectionRow] = [("new", one) for one in new]
    rows += [("changed", one) for one in changed]
    rows += [("removed", one) for one in removed]
    rows += [("renamed", f"{old} {ARROW} {now}") for old, now in review.renamed]
    if not (about := review.descriptions):
        return Section("Specs", ("what", "file"), rows, "spec", is_detail=True)
    rows = [(what, file, shorten_text(about.get(file, ""), MAX_DESCRIPTION_LENGTH)) for what, file in rows]
    return Section("Specs", ("what", "file", "about"), rows, "spec", is_detail=True)
