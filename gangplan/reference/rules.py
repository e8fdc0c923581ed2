"""Write docs/rules.md, and the page of one rule for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gangplan.reference.words import wrap_paragraph
from gangplan.rulebook import find_rule_example, group_built_in_rules_by_topic
from gangplan.rules.model import Example, Rule


def render_rule_reference(rule: Rule) -> str:
    """Return the page of a rule for a terminal."""
    lines = [
        f"{rule} ({rule.severity.word})",
        "",
        wrap_paragraph(rule.summary),
        "",
        wrap_paragraph(f"Why: {rule.why}"),
        "",
    ]
    lines += [wrap_paragraph(f"Fix: {rule.fix}"), ""]
    lines += [f"Waiver: {'a' if rule.may_be_waived else 'no'} waiver may excuse it.", ""]
    lines += [f"Formerly: {', '.join(rule.formerly)}.", ""] if rule.formerly else []
    if example := find_rule_example(rule):
        for title, text in _list_example_sides(example):
            lines += [title, "", textwrap.indent(text, "    "), ""]
    return "\n".join(lines).rstrip() + "\n"


def render_rules_docs_page() -> str:
    """Return docs/rules.md: every built-in rule, by topic; policies have a page of their own
    (policies.py)."""
    lines = [
        "# Rules",
        "",
        "Generated from `gangplan/rules/` by `make docs`; `gangplan explain RULE` prints one page. Every example",
        "is run by the tests: the first form breaks exactly this rule, the second does not. A rule may be",
        "[waived](waivers.md) where its page says so. Policies are in [policies.md](policies.md).",
        "",
    ]
    for topic, pages in group_built_in_rules_by_topic().items():
        lines += [f"## {topic.replace('-', ' ').capitalize()}", ""]
        for rule in pages.values():
            lines += _render_rule_docs_section(rule)
    return "\n".join(lines)


def _render_rule_docs_section(rule: Rule) -> list[str]:
    lines = [
        f"### {rule}",
        "",
        f"{rule.severity.word.capitalize()}. {rule.summary}",
        "",
        rule.why.strip(),
        "",
    ]
    lines += [f"**Fix.** {rule.fix.strip()}", ""]
    lines += ["A waiver may excuse it.", ""] if rule.may_be_waived else []
    lines += [f"Formerly `{'`, `'.join(rule.formerly)}`.", ""] if rule.formerly else []
    if example := find_rule_example(rule):
        for title, text in _list_example_sides(example):
            lines += [f"{title}", "", "```yaml", text.rstrip("\n"), "```", ""]
    return lines


def _list_example_sides(example: Example) -> Iterator[tuple[str, str]]:
    """Yield before and after, each with the name of its file."""
    file = "overlays/lab/kustomization.yaml (patches)" if example.place == "patch" else example.place
    for side, text in (("Before", example.before), ("After", example.after)):
        if text is None:
            yield f"{side}: {file} is not there", "# no such file"
        elif not text.strip():
            yield f"{side}, in {file}:", "# empty" if example.whole else "# the line is not there"
        else:
            yield f"{side}, in {file}:", text.rstrip("\n")
