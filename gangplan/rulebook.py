"""Every rule that a finding can name, with its page: built-in ones and policies.

Built-in rules are defined in `gangplan/rules/`. The pages of policies stand in the pack.yaml of their packs:
those that come with gangplan are in docs/policies.md; a `Rulebook` adds those of a workspace's own packs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gangplan import policies
from gangplan.errors import InternalError
from gangplan.records import dataclass
from gangplan.rules.model import ERROR, NOTE, WARNING, Example, Rule
from gangplan.source import ManifestError, load_objects

# Files of gangplan/rules/, in the order of docs/rules.md.
TOPICS = (
    "after",
    "core",
    "admission",
    "backends",
    "budgets",
    "clusters",
    "commands",
    "containerfiles",
    "contention",
    "debug",
    "devices",
    "dra",
    "elastic",
    "fabrics",
    "files",
    "frameworks",
    "grants",
    "images",
    "imports",
    "lifecycle",
    "live",
    "merges",
    "models",
    "neighbours",
    "network",
    "nodes",
    "objects",
    "patches",
    "platform",
    "pods",
    "policy",
    "preflight",
    "queues",
    "quotas",
    "recipes",
    "roles",
    "runs",
    "schedules",
    "security",
    "settings",
    "specs",
    "steps",
    "sweeps",
    "templates",
    "teams",
    "volumes",
    "waivers",
    "workers",
)
# What a breach of a policy is reported as, by its validationActions.
ACTIONS = {"Deny": ERROR, "Warn": WARNING, "Audit": NOTE}
# Policies of a workspace that are of no pack: files of this folder.
POLICIES = "policies"
PACKS = Path(str(policies.__file__)).parent
# The examples of rules, a file by topic; no command that judges a workspace reads them.
EXAMPLES = Path(__file__).parent / "rules/examples"


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules of a workspace: those that come with gangplan, and `own` of its packs by id."""

    own: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def rules(self) -> Mapping[str, Rule]:
        """All rules by id: the built-in ones in the order of their files, then policies by pack, those of the
        workspace last. Raises InternalError for a file that is no registry."""
        return {**shipped(), **self.own} if self.own else shipped()

    def find(self, name: str) -> Rule | None:
        """The rule of this id, if any has it or had it."""
        return shipped().get(name) or self.own.get(name) or formerly().get(name)

    def policy(self, name: str) -> Rule:
        """The rule of a policy; one of the workspace that no pack describes has only its name."""
        return self.find(name) or Rule(
            name, ERROR, "", why="", fix="", is_verdict=True, pack=POLICIES, is_own=True
        )

    def policies_of(self, rule: Rule) -> tuple[Rule, ...]:
        """The policies that a waiver of a rule covers: itself, and those that say the same of an object as a
        built-in rule (`told_by` of their page), which a server would hold against it all the same."""
        if rule.is_policy:
            return (rule,)
        return tuple(one for one in self.rules.values() if rule in one.told_by)


@cache
def shipped() -> dict[str, Rule]:
    """The rules that come with gangplan: built-in ones and policies."""
    found = dict(built_in())
    for pack in policies.PACKS:
        (written,) = load_objects((PACKS / pack / "pack.yaml").read_text(encoding="utf-8"))
        for name, page in written["policies"].items():
            if name in found:
                raise InternalError(f"policy {name} of pack {pack} has the name of another rule")
            found[name] = _policy(name, pack, page)
    return found


def load_rulebook(root: Path) -> Rulebook:
    """The rules of a workspace.

    A page that cannot be read, or that has the name of another rule, is left out: packs/checks.py tells it.
    """
    own: dict[str, Rule] = {}
    for file in sorted((root / "policies").glob("*/pack.yaml")):
        if file.parent.name not in policies.PACKS:
            for name, page in _pages(file).items():
                own.setdefault(name, _policy(name, file.parent.name, page, is_own=True))
    return Rulebook({name: own[name] for name in own if name not in shipped()}) if own else Rulebook()


@cache
def formerly() -> dict[str, Rule]:
    """Rules by the ids that they had."""
    return {name: rule for rule in built_in().values() for name in rule.formerly}


def topic_of(rule: Rule) -> str:
    """What a rule is about: a file of gangplan/rules/, or the pack of a policy."""
    if rule.is_policy:
        return f"policies of {rule.pack}"
    return next(topic for topic, pages in topics().items() if rule in pages)


def example_of(rule: Rule) -> Example | None:
    """Return the example of a rule; a policy has none, nor has a rule that says why it is `untested`."""
    return None if rule.is_policy else examples(topic_of(rule)).get(rule)


@cache
def examples(topic: str) -> dict[str, Example]:
    """Return the examples of a topic by rule. Raises InternalError when they were not installed."""
    file = EXAMPLES / f"{topic}.yaml"
    if not file.is_file():
        raise InternalError(f"the examples of gangplan's rules about {topic} are not installed")
    (written,) = load_objects(file.read_text(encoding="utf-8"))
    return {name: _example(body) for name, body in written.items()}


def _example(body: dict[str, Any]) -> Example:
    """An entry; a file that repeats one line is written as that `line` and how many `times`."""
    changes = tuple((one["file"], one["old"], one["new"]) for one in body.get("changes", ()))
    files = {
        name: text if isinstance(text, str) else f"{text['line']}\n" * text["times"]
        for name, text in body.get("files", {}).items()
    }
    return Example(**{**body, "changes": changes, "files": files, "rest": tuple(body.get("rest", ()))})


def _pages(file: Path) -> dict[str, dict[str, Any]]:
    """The policies of a pack.yaml that have a page."""
    try:
        (pack,) = load_objects(file.read_bytes())
    except (OSError, ManifestError, ValueError):
        return {}
    found = pack.get("policies")
    texts = ("title", "why", "fix")
    return {
        name: page
        for name, page in (found if isinstance(found, dict) else {}).items()
        if isinstance(page, dict)
        and all(isinstance(page.get(text), str) for text in texts)
        and page.get("action", "Deny") in ACTIONS
        and isinstance(page.get("told_by", []), list)
    }


@cache
def topics() -> dict[str, dict[str, Rule]]:
    """The rules that gangplan itself reports, by topic."""
    return {
        topic: {
            rule: rule
            for rule in vars(import_module(f"gangplan.rules.{topic}")).values()
            if isinstance(rule, Rule)
        }
        for topic in TOPICS
    }


@cache
def built_in() -> dict[str, Rule]:
    """The rules that gangplan itself reports. Raises InternalError where two have one id."""
    found: dict[str, Rule] = {}
    for topic, pages in topics().items():
        for rule in pages:
            if rule in found:
                raise InternalError(f"rule {rule} is defined twice, the second time in {topic}.py")
        found.update(pages)
    return found


def _policy(name: str, pack: str, page: dict[str, Any], is_own: bool = False) -> Rule:
    """The page of a policy; its examples are the case files beside it."""
    cases = f"policies/{pack}/tests/{name}.*.yaml are its examples; `gangplan policy test` runs them."
    return Rule(
        name,
        ACTIONS[page.get("action", "Deny")],
        page["title"],
        why=page["why"],
        fix=page["fix"],
        is_verdict=True,
        untested=cases,
        waivable=page.get("waivable", True),
        told_by=tuple(page.get("told_by", ())),
        pack=pack,
        is_own=is_own,
    )
