"""What is wrong with an object: a path, words, and the rule that is broken."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gangplan.records import dataclass
from gangplan.rules.model import Rule, Severity
from gangplan.rules.objects import SCHEMA

Step = str | int
SIMPLE_NAME = re.compile(r"[A-Za-z_][-A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an object. `path` leads to the field, or to where a missing one belongs.

    `field` names the field of the spec that is to blame (as in `Job.origins`), where a proof knows it;
    `level` is the severity where it is not the rule's.
    """

    path: tuple[Step, ...]
    message: str
    help: str = ""
    rule: Rule = SCHEMA
    field: str = ""
    level: Severity | None = None

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.rule.severity if self.level is None else self.level


def in_order(found: Iterable[Problem]) -> list[Problem]:
    """Sorted by path, without repeats."""
    return sorted(set(found), key=lambda one: ([(isinstance(at, str), at) for at in one.path], one.message))


def dotted(path: Iterable[Step]) -> str:
    """`spec.trainer.env[0].name`, `metadata.labels['example.com/team']`; "" for the object itself."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif SIMPLE_NAME.fullmatch(step):
            out += f".{step}" if out else step
        else:
            out += f"[{step!r}]"
    return out


def place(path: Iterable[Step]) -> str:
    """The path as the subject of a sentence."""
    return dotted(path) or "the object"
