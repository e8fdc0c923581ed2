"""Write docs/causes.md, and the page of one cause for a terminal."""

from __future__ import annotations

from gangplan.diagnose.cause import ASIDE, ENDING, SYMPTOM, KnownCause
from gangplan.diagnose.causes import group_diagnosis_causes_by_topic, list_diagnosis_causes
from gangplan.reference.words import wrap_paragraph

_DEPTHS = {
    SYMPTOM: "A symptom: where its root was seen, it is listed as what followed.",
    ENDING: "An ending: it says that something failed, and not what.",
    ASIDE: "A note: it ends no run, and is the cause only where nothing else was seen.",
}


def render_cause_reference(name: str) -> str:
    """Return the page of a cause for a terminal; empty for an unknown cause."""
    cause = list_diagnosis_causes().get(name)
    if cause is None:
        return ""
    lines = [
        f"{cause.id} (a cause that gangplan diagnose names)",
        "",
        wrap_paragraph(f"The run: {cause.title}."),
        "",
    ]
    lines += [wrap_paragraph(cause.means), ""]
    lines += [wrap_paragraph(f"{place}. {cure}") for place, cure in enumerate(cause.cures, 1)]
    if cause.rules:
        lines += ["", wrap_paragraph(f"In CI: {', '.join(cause.rules)}.")]
    if why := _explain_missing_rule(cause):
        lines += ["", wrap_paragraph(f"No rule can tell: {why}")]
    return "\n".join(lines) + "\n"


def render_causes_docs_page() -> str:
    """Return docs/causes.md: every cause by topic."""
    lines = [
        "# Causes",
        "",
        "Generated from `gangplan/diagnose/` by `make docs`: what `gangplan diagnose` ([how to use it](diagnose.md)) can name;",
        "`gangplan explain CAUSE` prints one page. Cures are in the order in which to try them. The rules are those that would",
        "have told in CI.",
        "",
    ]
    for topic, found in group_diagnosis_causes_by_topic().items():
        lines += [f"## {topic}", ""]
        for cause in found:
            lines += _render_cause_docs_section(cause)
    return "\n".join(lines)


def _render_cause_docs_section(cause: KnownCause) -> list[str]:
    lines = [f"### {cause.id}", "", f"{cause.title[0].upper()}{cause.title[1:]}. {cause.means}", ""]
    if cause.depth in _DEPTHS:
        lines += [_DEPTHS[cause.depth], ""]
    lines += [*(f"{place}. {cure}" for place, cure in enumerate(cause.cures, 1)), ""]
    if cause.rules:
        links = ", ".join(f"[{rule}](rules.md#{rule})" for rule in cause.rules)
        lines += [f"Rules: {links}", ""]
    if why := _explain_missing_rule(cause):
        lines += [f"No rule can tell: {why}", ""]
    return lines


def _explain_missing_rule(cause: KnownCause) -> str:
    """Return why no rule prevents a cause; empty if one does."""
    if cause.rules or cause.unforeseen:
        return cause.unforeseen
    return "It follows from another cause, and the rules of that one count."
