"""The type of facts about rules, and short ways to write many of them."""

from __future__ import annotations

from gangplan.model.backend import TRAINJOB
from gangplan.records import dataclass
from gangplan.validate.apiserver.crdrules.rules import CrdRule

TRAINER_GROUP, JOBSET_GROUP, KUEUE_GROUP = TRAINJOB.group, "jobset.x-k8s.io", "kueue.x-k8s.io"
IMMUTABLE_RULE = "self == oldSelf"


@dataclass(frozen=True, slots=True)
class RuleFact:
    """A rule, the kinds that have it, and the minors of their component in which they do (both inclusive)."""

    kinds: tuple[tuple[str, str], ...]
    rule: CrdRule
    since: str = "0"
    until: str = "99"


def build_crd_rule_facts(
    group: str, kinds: str, path: str, *rules: tuple[str, str], since: str = "0", until: str = "99"
) -> list[RuleFact]:
    """Return the facts of one path: (expression, message) each."""
    names = tuple((group, kind) for kind in kinds.split())
    steps = tuple(step for step in path.split(".") if step)
    return [RuleFact(names, CrdRule(steps, text, message), since, until) for text, message in rules]


def build_immutable_crd_field_facts(
    group: str, kinds: str, *paths: str, since: str = "0", until: str = "99"
) -> list[RuleFact]:
    """Return the facts of fields that keep the value that they were created with."""
    rule = (IMMUTABLE_RULE, "cannot change under one name")
    return [
        fact
        for path in paths
        for fact in build_crd_rule_facts(group, kinds, path, rule, since=since, until=until)
    ]
