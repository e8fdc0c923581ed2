"""Write docs/rules.md, and the page of one rule for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gangplan.reference.words import filled
from gangplan.rulebook import example_of, topics
from gangplan.rules.model import Example, Rule


def rule_text(rule: Rule) -> str:
    """Return the page of a rule for a terminal."""
    lines = [f"{rule} ({rule.severity.word})", "", filled(rule.summary), "", filled(f"Why: {rule.why}"), ""]
    lines += [filled(f"Fix: {rule.fix}"), ""]
    lines += [f"Waiver: {'a' if rule.may_be_waived else 'no'} waiver may excuse it.", ""]
    lines += [f"Formerly: {', '.join(rule.formerly)}.", ""] if rule.formerly else []
    if example := example_of(rule):
        for title, text in _sides(example):
            lines += [title, "", textwrap.indent(text, "    "), ""]
    return "\n".join(lines).rstrip() + "\n"


def rules_page() -> str:
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
    for topic, pages in topics().items():
        lines += [f"## {topic.replace('-', ' ').capitalize()}", ""]
        for rule in pages.values():
            lines += _section(rule)
    return "\n".join(lines)


def _section(rule: Rule) -> list[str]:
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
    if example := example_of(rule):
        for title, text in _sides(example):
            lines += [f"{title}", "", "```yaml", text.rstrip("\n"), "```", ""]
    return lines


def _sides(example: Example) -> Iterator[tuple[str, str]]:
    """Yield before and after, each with the name of its file."""
    file = "overlays/lab/kustomization.yaml (patches)" if example.place == "patch" else example.place
    for side, text in (("Before", example.before), ("After", example.after)):
        if text is None:
            yield f"{side}: {file} is not there", "# no such file"
        elif not text.strip():
            yield f"{side}, in {file}:", "# empty" if example.whole else "# the line is not there"
        else:
            yield f"{side}, in {file}:", text.rstrip("\n")
