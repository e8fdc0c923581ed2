"""`gangplan explain`: the page of a rule or of a field, on the terminal and in docs/rules.md."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from gangplan.commands.docs import field_rows
from gangplan.errors import Exit, UserError
from gangplan.rules import Example, Rule, rules
from gangplan.workspace import nearest

WIDTH = 100


def explain(name: str | None) -> Exit:
    """Print the page of a rule or of a field; without a name, all rules. Raises UserError for neither."""
    if name is None:
        width = max(map(len, rules()))
        for rule in rules().values():
            sys.stdout.write(f"{rule.id:{width}}  {rule.severity:7}  {rule.title}\n")
        return Exit.CLEAN
    known = rules()
    if name in known:
        sys.stdout.write(rule_text(known[name]))
        return Exit.CLEAN
    rows = list(_fields(name))
    if not rows:
        names = [*known, *(path for path, _ in field_rows())]
        raise UserError(f"there is no rule and no field '{name}'", nearest(name, names))
    sys.stdout.write("\n".join(rows))
    return Exit.CLEAN


def rule_text(rule: Rule) -> str:
    """The page of a rule for a terminal."""
    lines = [f"{rule.id} ({rule.severity})", "", _filled(rule.title), "", _filled(f"Why: {rule.why}"), ""]
    lines += [_filled(f"Fix: {rule.fix}"), ""]
    if rule.example:
        for title, text in _sides(rule.example):
            lines += [title, "", textwrap.indent(text, "    "), ""]
    return "\n".join(lines).rstrip() + "\n"


def rules_page() -> str:
    """docs/rules.md: every rule, by topic."""
    lines = [
        "# Rules",
        "",
        "Generated from `gangplan/rules/` by `make docs`; `gangplan explain RULE` prints one page. Every example",
        "is run by the tests: the first form breaks exactly this rule, the second does not.",
        "",
    ]
    topic = ""
    for rule in rules().values():
        if rule.topic != topic:
            topic = rule.topic
            lines += [f"## {topic.replace('-', ' ').capitalize()}", ""]
        lines += [
            f"### {rule.id}",
            "",
            f"{rule.severity.capitalize()}. {rule.title}",
            "",
            rule.why.strip(),
            "",
        ]
        lines += [f"**Fix.** {rule.fix.strip()}", ""]
        if rule.example:
            for title, text in _sides(rule.example):
                lines += [f"{title}", "", "```yaml", text.rstrip("\n"), "```", ""]
    return "\n".join(lines)


def _filled(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def _sides(example: Example) -> Iterator[tuple[str, str]]:
    """Before and after, each with the file it stands in."""
    file = "overlays/lab/kustomization.yaml (patches)" if example.place == "patch" else example.place
    for side, text in (("Before", example.before), ("After", example.after)):
        if text is None:
            yield f"{side}: {file} is not there", "# no such file"
        elif not text.strip():
            yield f"{side}, in {file}:", "# empty" if example.whole else "# the line is not there"
        else:
            yield f"{side}, in {file}:", text.rstrip("\n")


def _fields(name: str) -> Iterator[str]:
    """Each field of that name or path, with what docs/spec.md says of it."""
    for path, facts in field_rows():
        if name in (path, path.rpartition(".")[2], path.partition(".")[2]):
            lines = [path, "", _filled(facts["meaning"]), ""]
            lines += [f"{what}: {facts[what]}" for what in ("type", "default", "example") if facts[what]]
            yield "\n".join(lines) + "\n"
