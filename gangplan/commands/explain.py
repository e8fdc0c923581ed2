"""`gangplan explain`: the page of a rule or of a field, on the terminal and in docs/rules.md."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gangplan.commands.explain_policy import own_names, own_policy, policy_lines, workspace_of
from gangplan.commands.fields import FILES, Field, known_names, lookup, rules_about
from gangplan.commands.topics import kinds, packs, topic_text
from gangplan.errors import Exit, UserError
from gangplan.report.escape import own_line
from gangplan.rulebook import learn, rules, topics
from gangplan.rules.model import Example, Rule
from gangplan.workspace import nearest

WIDTH = 100
# More fields of one name than this are listed by their paths.
MOST_PAGES = 3
_FACTS = ("type", "default", "example")


def explain(name: str | None, workspace: Path | None = None) -> Exit:
    """Print the page of a rule, field, kind of file or pack; without a name, all rules. Raises UserError.

    A workspace, where there is one, adds its own policies.
    """
    root = workspace_of(workspace)
    if root is not None:
        learn(root)
    if name is None:
        width = max(map(len, rules()))
        for rule in rules().values():
            _print(f"{rule:{width}}  {rule.severity.word:7}  {' '.join(rule.summary.split())}\n")
        return Exit.CLEAN
    known = rules()
    if name in known:
        more = policy_lines(known[name], root) if known[name].is_policy else ()
        _print(rule_text(known[name]) + "".join(f"{line}\n" for line in more))
        return Exit.CLEAN
    if own := own_policy(name, root):
        _print("\n".join(own) + "\n")
        return Exit.CLEAN
    found = [] if name in kinds() else lookup(name)  # `Team` is a kind, `team` a field
    text = fields_text(found) if found else topic_text(name, root)
    if not text:
        close = nearest(name, {*known, *own_names(root), *known_names(), *kinds(), *packs(root)})
        every = "gangplan explain lists all rules; docs/spec.md has all fields."
        help = every if close.startswith("Known") else close
        raise UserError(f"there is no rule, field, kind or pack '{name}'", help)
    _print(text)
    return Exit.CLEAN


def _print(text: str) -> None:
    """Words of a workspace's own policies hold no command for a terminal or a CI runner."""
    sys.stdout.write("\n".join(map(own_line, text.split("\n"))))


def fields_text(found: Sequence[Field]) -> str:
    """The page of the first field, of all when they are few, and the paths of the others."""
    shown = found if len(found) <= MOST_PAGES else found[:1]
    text = "\n".join(field_text(one) for one in shown)
    rest = found[len(shown) :]
    if rest:
        text += "\nalso:\n" + "".join(f"  {one.name}\n" for one in rest)
    return text


def field_text(field: Field) -> str:
    """The page of a field for a terminal."""
    lines = [f"{field.name} ({FILES[field.kind]})", "", _filled(field.facts["meaning"]), ""]
    lines += [f"{what}: {_plain(field.facts[what])}" for what in _FACTS if field.facts[what]]
    lines += [_listed("fields", field.inner)] if field.inner else []
    about = rules_about(field)
    lines += [_listed("rules", about)] if about else []
    return "\n".join(lines) + "\n"


def rule_text(rule: Rule) -> str:
    """The page of a rule for a terminal."""
    lines = [f"{rule} ({rule.severity.word})", "", _filled(rule.summary), "", _filled(f"Why: {rule.why}"), ""]
    lines += [_filled(f"Fix: {rule.fix}"), ""]
    lines += [f"Waiver: {'a' if rule.may_be_waived else 'no'} waiver may excuse it.", ""]
    if rule.example:
        for title, text in _sides(rule.example):
            lines += [title, "", textwrap.indent(text, "    "), ""]
    return "\n".join(lines).rstrip() + "\n"


def rules_page() -> str:
    """docs/rules.md: every built-in rule, by topic; policies have a page of their own (policy_docs.py)."""
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
    if rule.example:
        for title, text in _sides(rule.example):
            lines += [f"{title}", "", "```yaml", text.rstrip("\n"), "```", ""]
    return lines


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


def _listed(what: str, names: Iterable[str]) -> str:
    """`fields: a, b, c`, further lines below the first name."""
    return textwrap.fill(
        ", ".join(names),
        WIDTH,
        initial_indent=f"{what}: ",
        subsequent_indent=" " * (len(what) + 2),
        break_on_hyphens=False,
    )


def _plain(text: str) -> str:
    """A cell of docs/spec.md without its Markdown."""
    return text.replace("\\|", "|").replace("`", "")
