"""Every rule that a finding can name, with its page: built-in rules and policies.

Built-in rules are defined in `gangplan/rules/`. The pages of policies are in the pack.yaml of their packs.
Policies that come with gangplan are listed in docs/policies.md; a `Rulebook` adds the workspace's own.
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
# The severity of a policy's breaches, by its validationActions.
ACTIONS = {"Deny": ERROR, "Warn": WARNING, "Audit": NOTE}
# The pack of policies that belong to none: the folder of a workspace's own policies.
POLICIES = "policies"
SHIPPED_PACKS_FOLDER = Path(str(policies.__file__)).parent
# The examples of rules, one file per topic. Commands that judge a workspace do not read them.
EXAMPLES = Path(__file__).parent / "rules/examples"


@dataclass(frozen=True, slots=True)
class Rulebook:
    """All rules of a workspace: those that come with gangplan, and its `own` policies by id."""

    own: Mapping[str, Rule] = field(default_factory=dict)

    @property
    def rules(self) -> Mapping[str, Rule]:
        """All rules by id: built-in ones in the order of their files, policies by pack, the workspace's last.

        Raises InternalError for two rules with one id.
        """
        return {**load_shipped_rules(), **self.own} if self.own else load_shipped_rules()

    def find(self, name: str) -> Rule | None:
        """Return the rule that has, or once had, this id, or None."""
        return load_shipped_rules().get(name) or self.own.get(name) or formerly().get(name)

    def policy(self, name: str) -> Rule:
        """Return the rule of a policy; a policy of the workspace that no pack describes has only its name."""
        return self.find(name) or Rule(
            name, ERROR, "", why="", fix="", is_verdict=True, pack=POLICIES, is_own=True
        )

    def policies_of(self, rule: Rule) -> tuple[Rule, ...]:
        """Return the policies that a waiver of a rule covers.

        For a policy that is the policy itself. For a built-in rule, it is every policy that repeats the rule
        (`told_by` of its page), because the API server would still refuse the object.
        """
        if rule.is_policy:
            return (rule,)
        return tuple(one for one in self.rules.values() if rule in one.told_by)


@cache
def load_shipped_rules() -> dict[str, Rule]:
    """Return the rules that come with gangplan: built-in ones and policies.

    Raises InternalError for two rules with one id.
    """
    found = dict(load_built_in_rules())
    for pack in policies.BUILTIN_PACKS:
        (written,) = load_objects((SHIPPED_PACKS_FOLDER / pack / "pack.yaml").read_text(encoding="utf-8"))
        for name, page in written["policies"].items():
            if name in found:
                raise InternalError(f"policy {name} of pack {pack} has the name of another rule")
            found[name] = _build_rule_from_policy_page(name, pack, page)
    return found


def load_rulebook(root: Path) -> Rulebook:
    """Return the rules of a workspace.

    A page that cannot be read, or that has the name of another rule, is left out: packs/checks.py reports it.
    """
    own: dict[str, Rule] = {}
    for file in sorted((root / "policies").glob("*/pack.yaml")):
        if file.parent.name not in policies.BUILTIN_PACKS:
            for name, page in _read_policy_pages_of_pack(file).items():
                own.setdefault(name, _build_rule_from_policy_page(name, file.parent.name, page, is_own=True))
    return (
        Rulebook({name: own[name] for name in own if name not in load_shipped_rules()}) if own else Rulebook()
    )


@cache
def formerly() -> dict[str, Rule]:
    """Return the rules by their former ids."""
    return {name: rule for rule in load_built_in_rules().values() for name in rule.formerly}


def topic_of(rule: Rule) -> str:
    """Return the topic of a rule: a file of gangplan/rules/, or the pack of a policy."""
    if rule.is_policy:
        return f"policies of {rule.pack}"
    return next(topic for topic, pages in group_built_in_rules_by_topic().items() if rule in pages)


def find_rule_example(rule: Rule) -> Example | None:
    """Return the example of a rule, or None for a policy and for a rule that says why it is `untested`."""
    return None if rule.is_policy else load_examples_of_rules(topic_of(rule)).get(rule)


@cache
def load_examples_of_rules(topic: str) -> dict[str, Example]:
    """Return the examples of a topic by rule. Raises InternalError when they were not installed."""
    file = EXAMPLES / f"{topic}.yaml"
    if not file.is_file():
        raise InternalError(f"the examples of gangplan's rules about {topic} are not installed")
    (written,) = load_objects(file.read_text(encoding="utf-8"))
    return {name: _parse_rule_example(body) for name, body in written.items()}


def _parse_rule_example(body: dict[str, Any]) -> Example:
    """Parse an entry; a file that repeats one line is written as that `line` and how many `times`."""
    changes = tuple((one["file"], one["old"], one["new"]) for one in body.get("changes", ()))
    files = {
        name: text if isinstance(text, str) else f"{text['line']}\n" * text["times"]
        for name, text in body.get("files", {}).items()
    }
    return Example(**{**body, "changes": changes, "files": files, "rest": tuple(body.get("rest", ()))})


def _read_policy_pages_of_pack(file: Path) -> dict[str, dict[str, Any]]:
    """Return the pages of a pack.yaml by policy, without malformed ones."""
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
def group_built_in_rules_by_topic() -> dict[str, dict[str, Rule]]:
    """Return the built-in rules by topic."""
    return {
        topic: {
            rule: rule
            for rule in vars(import_module(f"gangplan.rules.{topic}")).values()
            if isinstance(rule, Rule)
        }
        for topic in TOPICS
    }


@cache
def load_built_in_rules() -> dict[str, Rule]:
    """Return the built-in rules by id. Raises InternalError where two have one id."""
    found: dict[str, Rule] = {}
    for topic, pages in group_built_in_rules_by_topic().items():
        for rule in pages:
            if rule in found:
                raise InternalError(f"rule {rule} is defined twice, the second time in {topic}.py")
        found.update(pages)
    return found


def _build_rule_from_policy_page(name: str, pack: str, page: dict[str, Any], is_own: bool = False) -> Rule:
    """Build the rule of a policy from its page; its examples are the case files in its pack."""
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
