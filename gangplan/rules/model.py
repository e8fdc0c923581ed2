"""The type of rules. A rule is defined once, and imported by name where it is raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum, IntEnum
from typing import Any

from gangplan.records import dataclass


class Severity(IntEnum):
    """The severity of a finding; larger is worse."""

    NOTE = 0
    WARNING = 1
    ERROR = 2

    @property
    def word(self) -> str:
        """The lower-case word for reports."""
        return _WORDS[self]


_WORDS = tuple(one.name.lower() for one in Severity)
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


class Deduplication(Enum):
    """How often a rule is reported if one mistake breaks it many times (pipeline/blame.py)."""

    EACH = "every breach"
    CAUSE = "every breach; what runs suffer from it at the same place is not reported as well"
    RUN = "of the runs that suffer from one object the first, and none where the object says so itself"
    PATCH = "of the runs that one patch changes the first, with how many more"


@dataclass(frozen=True, slots=True)
class Example:
    """A mistake in a small workspace, and its correction: an entry of a file in examples/.

    In the file `place`, the text `old` becomes `before` or `after` (without `old` they are appended, with
    `whole` they are the whole file; None removes the file). `place` "patch" is the list of patches of the
    cluster's overlay. Everything else is the same for both: `base` names the workspace (`small` of
    tests/workspaces.py, `shared` of tests/standing/base.py), `changes` are further (file, old, new), `files`
    further files, `run` the command, `rest` the other rules that the mistake breaks.
    """

    place: str
    before: str | None
    after: str | None
    old: str = ""
    whole: bool = False
    base: str = "small"
    run: str = "validate"
    changes: tuple[tuple[str, str, str], ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


class Rule(str):
    """A rule: its id with its severity, a summary on one line, why it matters, and what to do.

    A rule is its id, a string in kebab case, so that it can be used in reports, waivers and tables directly.
    `is_verdict`: a breach means that the input was understood and judged (exit code 1), not that it is
    unusable (2; docs/exit-codes.md). `waivable`: whether a waiver may excuse a breach; None means yes for a
    policy and no for a built-in rule, because most of these report runs that would not work. `untested`: why
    no example can show it, and the test that does. `pack`: the pack of a policy. `told_by`: built-in rules
    that report the same cause as a policy. `is_own`: its pack belongs to the workspace. `formerly`: earlier
    ids, which waivers, `explain` and code scanning still understand.
    """

    severity: Severity
    summary: str
    why: str
    fix: str
    is_verdict: bool
    echo: Deduplication
    waivable: bool | None
    untested: str
    told_by: tuple[str, ...]
    pack: str
    is_own: bool
    formerly: tuple[str, ...]

    def __new__(
        cls,
        id: str,
        severity: Severity,
        summary: str,
        *,
        why: str,
        fix: str,
        is_verdict: bool = False,
        echo: Deduplication = Deduplication.EACH,
        waivable: bool | None = None,
        untested: str = "",
        told_by: tuple[str, ...] = (),
        pack: str = "",
        is_own: bool = False,
        formerly: tuple[str, ...] = (),
    ) -> Rule:
        """Make the rule with this id."""
        rule = super().__new__(cls, id)
        rule.severity, rule.summary, rule.why, rule.fix = severity, summary, why, fix
        rule.is_verdict, rule.echo, rule.waivable = is_verdict, echo, waivable
        rule.untested = untested
        rule.told_by, rule.pack, rule.is_own, rule.formerly = told_by, pack, is_own, formerly
        return rule

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `__new__` for pickle, since rules are sent to worker processes."""
        named = {key: value for key, value in vars(self).items() if key not in ("severity", "summary")}
        return (str(self), self.severity, self.summary), named

    @property
    def is_policy(self) -> bool:
        """Whether it is a ValidatingAdmissionPolicy, which the API server evaluates as well."""
        return bool(self.pack)

    @property
    def may_be_waived(self) -> bool:
        """Whether a waiver may excuse a breach."""
        return self.is_policy if self.waivable is None else self.waivable
