"""The errors of an expression: it does not compile, or it fails on an object."""

from __future__ import annotations

from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """One complaint about an expression. `offset` counts code points from 0."""

    offset: int
    message: str


class CompileError(Exception):
    """The API server would refuse the expression. `issues` is never empty and in source order.

    `place` is the path of the expression in its schema, if it is a rule of a CRD.
    """

    place: tuple[str | int, ...] = ()

    def __init__(self, text: str, issues: tuple[Issue, ...]) -> None:
        super().__init__("; ".join(issue.message for issue in issues))
        self.text = text
        self.issues = issues


class EvalError(Exception):
    """Evaluation ended in a CEL error, in the API server's words (`no such key: nope`).

    `cost` is what was spent until then, if it was measured.
    """

    cost = 0


class BudgetError(EvalError):
    """The expression used more than its cost budget."""


class UnknownError(Exception):
    """The expression depends on what can't be known offline (`authorizer`): neither a value nor an error."""
