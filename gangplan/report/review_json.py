"""A review as data: amounts are exact decimal texts, quantities canonical texts, lists in a stable order."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from gangplan.findings import Finding
from gangplan.model.run_facts import RunFacts
from gangplan.report.escape import replace_surrogates
from gangplan.report.json import build_findings_json
from gangplan.report.review_budgets import build_review_budgets_json
from gangplan.review.edits import RunEdit
from gangplan.review.grouped import group_object_changes_by_kind, group_object_changes_by_meaning
from gangplan.review.novel import WaiverChange
from gangplan.review.objects import ABSENT_VALUE, ObjectChange
from gangplan.review.reach import Reach
from gangplan.review.review import Review
from gangplan.review.totals import Headroom, Total

# Raised when a field changes its meaning or is removed; new fields may come without notice.
REVIEW_FORMAT_VERSION = 1


def build_review_json(review: Review, folder: str) -> dict[str, Any]:
    """Return the whole review. `folder` is the place of the workspace in its repository."""
    new, changed, removed = review.specs
    news = review.findings
    document: dict[str, Any] = _replace_surrogates_in_json(
        {
            "version": REVIEW_FORMAT_VERSION,
            "command": "plan",
            "base": _build_review_base_json(review),
            "notes": list(review.notes),
            "specs": {
                "new": list(new),
                "changed": list(changed),
                "removed": list(removed),
                "renamed": [{"from": old, "to": now} for old, now in review.renamed],
                **({"descriptions": dict(review.descriptions)} if review.descriptions else {}),
            },
            "runs": [_build_run_edit_json(one) for one in review.edits],
            "totals": _build_review_totals_json(review),
            "quotas": [_build_headroom_json(one) for one in review.headroom],
            **({"budgets": build_review_budgets_json(review.budgets)} if review.budgets else {}),
            "newFindings": build_findings_json(news.new, folder),
            "goneFindings": build_findings_json(news.gone, folder),
            "sameFindings": build_findings_json(news.same, folder)["counts"],
            "policies": sorted({str(one.rule) for one in news.policies}),
            "waivers": [_build_waiver_change_json(one) for one in review.waivers],
            "reach": [_build_reach_json(one) for one in review.reaches],
            **build_object_changes_json(review),
        }
    )
    return document


def build_diff_json(review: Review, findings: Sequence[Finding], folder: str) -> dict[str, Any]:
    """Return only the objects, and findings about the trees."""
    facts = {"version": REVIEW_FORMAT_VERSION, "command": "diff", "base": _build_review_base_json(review)}
    document: dict[str, Any] = _replace_surrogates_in_json(
        {**facts, **build_object_changes_json(review), **build_findings_json(findings, folder)}
    )
    return document


def _build_review_base_json(review: Review) -> dict[str, Any]:
    return {
        "asked": review.revision.asked,
        "commit": review.revision.commit,
        "isMergeBase": review.revision.is_merge_base,
    }


def build_object_changes_json(review: Review) -> dict[str, Any]:
    """Return the objects that differ, each by itself and grouped by meaning."""
    return {
        "objects": [_build_object_change_json(one) for one in review.objects],
        "meanings": [
            {
                "meaning": row.meaning,
                "kinds": list(row.kinds),
                "field": row.field,
                "before": row.before,
                "after": row.after,
                "objects": len(row.objects),
                "runs": row.runs,
                "teams": list(row.teams),
                "clusters": list(row.clusters),
            }
            for row in group_object_changes_by_meaning(review.objects)
        ],
        "kinds": [
            {"change": row.what, "kind": row.kind, "objects": list(row.objects)}
            for row in group_object_changes_by_kind(review.objects)
        ],
    }


def _build_review_totals_json(review: Review) -> dict[str, Any]:
    before, after = map(_build_total_json, review.sums)
    teams = [
        {
            "team": one.team,
            "cluster": one.cluster,
            "before": _build_total_json(one.before),
            "after": _build_total_json(one.after),
        }
        for one in review.totals
    ]
    return {"all": {"before": before, "after": after}, "teams": teams}


def _build_waiver_change_json(one: WaiverChange) -> dict[str, Any]:
    return {
        "change": one.what,
        "name": one.name,
        "rule": one.rule,
        "until": one.until,
        "approver": one.approver,
        "reason": one.reason,
    }


def _build_run_edit_json(one: RunEdit) -> dict[str, Any]:
    facts = one.facts
    return {
        "edit": one.edit.value,
        "spec": facts.source,
        "cluster": facts.cluster,
        "team": facts.team,
        "job": facts.job,
        "run": one.run or (one.after.name if one.after else ""),
        "goesOn": one.goes_on,
        "waitsFor": list(one.waits),
        "causes": [
            {"file": at.file, "line": at.line, "column": at.column, "field": name} for name, at in one.causes
        ],
        "why": one.why,
        "keep": ", then ".join(one.keeping),
        "before": _build_run_facts_json(one.before),
        "after": _build_run_facts_json(one.after),
    }


def _build_run_facts_json(facts: RunFacts | None) -> dict[str, Any] | None:
    if facts is None:
        return None
    return {
        "name": facts.name,
        "state": facts.state,
        "workers": facts.workers,
        "ranks": facts.ranks,
        "gpus": facts.gpus,
        "gpuHours": _format_decimal_hours(facts.gpu_hours),
        "cpuHours": _format_decimal_hours(facts.cpu_hours),
        "seconds": facts.seconds,
        "cost": {"most": facts.cost, "currency": facts.currency} if facts.cost else None,
        "pool": facts.pool,
        "queue": facts.queue,
        "priority": facts.priority,
        "image": facts.image,
        "admission": {"outcome": facts.outcome, "words": facts.verdict},
    }


def _build_total_json(total: Total) -> dict[str, Any]:
    return {
        "runs": total.runs,
        "gpus": total.gpus,
        "gpuHours": _format_decimal_hours(total.gpu_hours),
        "cpuHours": _format_decimal_hours(total.cpu_hours),
        "cost": {currency: str(amount) for currency, amount in total.cost.items()},
    }


def _build_headroom_json(one: Headroom) -> dict[str, Any]:
    sides = {
        side: {
            "quota": one.quota[number].canonical(),
            "most": one.most[number].canonical(),
            "wanted": one.wanted[number].canonical(),
        }
        for number, side in enumerate(("before", "after"))
    }
    return {"team": one.team, "cluster": one.cluster, "pool": one.pool, "resource": one.resource, **sides}


def _build_reach_json(one: Reach) -> dict[str, Any]:
    return {
        "file": one.file,
        "changed": [{"field": name, "line": at.line, "column": at.column} for name, at in one.fields],
        "clusters": list(one.clusters),
        "teams": list(one.teams),
        "retrained": _build_total_json(one.retrained),
        "updatedRuns": one.updated,
        "standingObjects": one.standing,
        "newFindings": one.findings,
    }


def _build_object_change_json(one: ObjectChange) -> dict[str, Any]:
    return {
        "change": one.what,
        "cluster": one.cluster,
        "kind": one.kind,
        "namespace": one.namespace,
        "name": one.name,
        "team": one.team,
        "job": one.run,
        "file": f"rendered/{one.file}",
        "source": one.source,
        "fields": [
            {
                "path": [str(step) for step in field.path],
                "meaning": field.meaning,
                **({} if field.before is ABSENT_VALUE else {"before": field.before}),
                **({} if field.after is ABSENT_VALUE else {"after": field.after}),
            }
            for field in one.fields
        ],
    }


def _format_decimal_hours(amount: Decimal) -> str:
    """Return hours to a thousandth, without zeros at the end."""
    text = f"{amount.quantize(Decimal('0.001')):f}"
    return text.rstrip("0").rstrip(".")


def _replace_surrogates_in_json(value: Any) -> Any:
    """Return the value with texts that UTF-8 can hold."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {
            _replace_surrogates_in_json(key): _replace_surrogates_in_json(inner)
            for key, inner in value.items()
        }
    return [_replace_surrogates_in_json(inner) for inner in value] if isinstance(value, list) else value
