"""Verdicts as text, Markdown and JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gangplan.diagnose.cause import ASIDE, ENDING, SYMPTOM, KnownCause
from gangplan.diagnose.causes import group_diagnosis_causes_by_topic
from gangplan.diagnose.checklist import answer_checklist
from gangplan.diagnose.evidence import Log, Sighting
from gangplan.diagnose.verdict import FoundCause, RunDiagnosis
from gangplan.report.escape import escape_log_line, escape_markdown, escape_own_line

_WIDTH = 110
_PARTS = 4
_LINES = 8
_DEPTHS = {0: "root", SYMPTOM: "symptom", ENDING: "ending", ASIDE: "note"}
_NOT_KNOWN = "not known: nothing that was saved says why"


def build_diagnosis_json(
    verdicts: Sequence[RunDiagnosis], skipped: Sequence[str], broken: Sequence[str] = ()
) -> dict[str, object]:
    """Return the verdicts as JSON, version 1."""
    return {
        "version": 1,
        "runs": [_build_run_diagnosis_json(one) for one in verdicts],
        "skipped": list(skipped),
        "broken": list(broken),
    }


def _build_run_diagnosis_json(verdict: RunDiagnosis) -> dict[str, object]:
    state = verdict.state
    return {
        "run": verdict.name or None,
        "team": verdict.team or None,
        "namespace": verdict.namespace or None,
        "spec": verdict.spec or None,
        "state": state.word if state else None,
        "since": (state.since or None) if state else None,
        "known": verdict.is_known,
        "causes": [
            {
                "id": one.cause.id,
                "title": one.cause.title,
                "topic": _find_topic(one.cause),
                "kind": _DEPTHS[one.cause.depth],
                "follows": one.follows,
                "warning": one.is_minor,
                "count": one.count,
                "seen": [_build_sighting_json(each) for each in one.seen],
                "means": one.cause.means,
                "cures": list(one.cause.cures),
                "rules": list(one.cause.rules),
            }
            for one in verdict.found
        ],
        "checks": [
            {"question": one.question, "answer": one.answer, "causes": list(one.causes)}
            for one in answer_checklist(verdict)
        ],
    }


def _find_topic(cause: KnownCause) -> str:
    """Return the topic of a cause, as on the reference page."""
    return next(topic for topic, found in group_diagnosis_causes_by_topic().items() if cause in found)


def _build_sighting_json(one: Sighting) -> dict[str, object]:
    return {
        "file": one.file,
        "line": one.line or None,
        "object": one.what or None,
        "role": one.who.role or None,
        "worker": one.who.worker,
        "rank": one.who.rank,
        "time": one.at or None,
        "text": one.text,
        "facts": dict(one.facts),
    }


def render_diagnosis_text(
    verdicts: Sequence[RunDiagnosis], skipped: Sequence[str], broken: Sequence[str] = ()
) -> str:
    """Return the verdicts for a terminal."""
    lines: list[str] = []
    well = [one for one in verdicts if one.is_well]
    for verdict in verdicts:
        if not verdict.is_well:
            lines += [*_render_run_diagnosis(verdict), ""]
    if well:
        names = ", ".join(
            f"{one.name or 'what was read'} ({one.state.word if one.state else 'no sign'})" for one in well
        )
        lines += [f"nothing wrong: {names}", ""]
    if skipped:
        lines += [f"not read, because it is not text: {', '.join(skipped)}", ""]
    if broken:
        lines += [*(f"not read: {one}" for one in broken), ""]
    return "\n".join(escape_own_line(line) for line in lines[:-1]) + "\n"


def _render_run_diagnosis(verdict: RunDiagnosis) -> Iterator[str]:
    yield _describe_diagnosed_run(verdict)
    roots = verdict.roots if verdict.is_known else ()
    if not roots:
        yield f"  cause: {_NOT_KNOWN}"
    for number, one in enumerate(roots, 1):
        label = "cause" if len(roots) == 1 else f"cause {number}"
        yield ""
        yield f"  {label}: {one.cause.title}  [{one.cause.id}]"
        yield from _render_cause_sightings(one)
        yield from _wrap_labeled_text("means", one.cause.means)
        for place, cure in enumerate(one.cause.cures, 1):
            yield from _wrap_labeled_text(
                "try" if place == 1 else "", f"{place}. {_name_spec_in_cure(cure, verdict)}"
            )
        if one.cause.rules:
            yield from _wrap_labeled_text("in CI", f"gangplan explain {' '.join(one.cause.rules)}")
    for heading, rest in _group_causes_under_headings(verdict):
        yield ""
        yield f"  {heading}:"
        for one in rest:
            first = one.seen[0]
            more = f" ({one.count} times)" if one.count > 1 else ""
            who = f"{first.who.words}: " if first.who.words else ""
            yield f"    - {one.cause.title}{more}  [{one.cause.id}]"
            yield f"      {first.place}: {who}{first.text}"
    yield ""
    yield from _wrap_labeled_text("checks", _format_checklist(verdict))
    if not verdict.is_known:
        yield from _format_last_log_lines(verdict)


def _format_checklist(verdict: RunDiagnosis) -> str:
    return "; ".join(
        f"{one.question}: {one.answer}" + (f" ({', '.join(one.causes)})" if one.causes else "")
        for one in answer_checklist(verdict)
    )


def _group_causes_under_headings(verdict: RunDiagnosis) -> Iterator[tuple[str, list[FoundCause]]]:
    """Yield the causes below the roots under their headings: what followed from these, and what was minor."""
    roots = verdict.roots if verdict.is_known else ()
    rest = [one for one in verdict.found if one not in roots]
    if followed := [one for one in rest if not one.is_minor]:
        yield ("and as it followed from that" if roots else "what is known"), followed
    if minor := [one for one in rest if one.is_minor]:
        yield "also seen, and mostly harmless", minor


def _describe_diagnosed_run(verdict: RunDiagnosis) -> str:
    name = f"run {verdict.name}" if verdict.name else "what was read"
    team = f" of team {verdict.team}" if verdict.team else ""
    spec = f" ({verdict.spec})" if verdict.spec else ""
    if verdict.state is None:
        return f"{name}{team}{spec}"
    since = f" since {verdict.state.since}" if verdict.state.since else ""
    return f"{name}{team}{spec}: {verdict.state.word}{since}"


def _render_cause_sightings(one: FoundCause) -> Iterator[str]:
    for place, each in enumerate(one.seen[:_PARTS]):
        who = f"{each.who.words}: " if each.who.words else ""
        yield from _wrap_labeled_text("seen" if place == 0 else "", f"{who}{each.text}")
        yield from _wrap_labeled_text("", f"at {each.place}{f', {each.at}' if each.at else ''}")
    if len(one.seen) > _PARTS:
        yield from _wrap_labeled_text("", f"and {len(one.seen) - _PARTS} more parts of the run")


def _name_spec_in_cure(cure: str, verdict: RunDiagnosis) -> str:
    """Return a cure that names the spec, if it is known."""
    return cure.replace(" the spec", f" {verdict.spec}", 1) if verdict.spec else cure


def _wrap_labeled_text(label: str, words: str) -> list[str]:
    first, rest = f"    {label:<6} ", " " * 11
    return textwrap.wrap(
        escape_log_line(words), _WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [first.rstrip()]


def _format_last_log_lines(verdict: RunDiagnosis) -> Iterator[str]:
    """Yield the last lines of the launcher's log, or of the first log, for people."""
    logs = sorted(verdict.logs, key=_build_log_sort_key)
    for log in logs[:1]:
        yield ""
        yield f"  the last lines of {log.file}:"
        for line in log.last[-_LINES:]:
            yield f"    | {line}"
    if not logs:
        yield "  try: save its logs as well: kubectl logs --prefix --all-containers -l jobset.sigs.k8s.io/jobset-name=RUN > run.log"


def _build_log_sort_key(log: Log) -> tuple[bool, str]:
    return log.who.role != "launcher", log.file


def render_diagnosis_markdown(
    verdicts: Sequence[RunDiagnosis], skipped: Sequence[str], broken: Sequence[str] = ()
) -> str:
    """Return the verdicts as Markdown, for an issue or a chat."""
    lines: list[str] = []
    for verdict in verdicts:
        lines += [f"### {escape_markdown(_describe_diagnosed_run(verdict))}", ""]
        if verdict.is_well:
            lines += ["Nothing wrong was found.", ""]
            continue
        roots = verdict.roots if verdict.is_known else ()
        if not roots:
            lines += [f"**Cause {escape_markdown(_NOT_KNOWN)}.**", ""]
        for one in roots:
            lines += [
                f"**Cause: {escape_markdown(one.cause.title)}** (`{one.cause.id}`)",
                "",
                escape_markdown(one.cause.means),
                "",
            ]
            for each in one.seen[:_PARTS]:
                who = f"{each.who.words}: " if each.who.words else ""
                lines.append(f"- {escape_markdown(who + each.text)} — {escape_markdown(each.place)}")
            lines += [
                "",
                *(
                    f"{place}. {escape_markdown(_name_spec_in_cure(cure, verdict))}"
                    for place, cure in enumerate(one.cause.cures, 1)
                ),
                "",
            ]
        for heading, rest in _group_causes_under_headings(verdict):
            lines += [f"{heading[0].upper()}{heading[1:]}:", ""]
            lines += [
                f"- {escape_markdown(one.cause.title)} (`{one.cause.id}`), {escape_markdown(one.seen[0].place)}"
                for one in rest
            ]
            lines.append("")
        lines += [f"Checks: {escape_markdown(_format_checklist(verdict))}", ""]
    if skipped:
        lines += [f"Not read: {escape_markdown(', '.join(skipped))}.", ""]
    if broken:
        lines += [*(f"- Not read: {escape_markdown(one)}" for one in broken), ""]
    return "\n".join(lines)
