"""`gangplan explain`: the page of a rule, a cause, a field, a kind of file or a policy pack."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.diagnose.causes import causes
from gangplan.errors import Exit, UserError
from gangplan.packs.own import OwnPolicies, load_policies
from gangplan.reference.causes import cause_text
from gangplan.reference.field_pages import fields_text
from gangplan.reference.fields import known_names, lookup
from gangplan.reference.one_policy import own_names, own_policy, policy_lines, workspace_of
from gangplan.reference.rules import rule_text
from gangplan.reference.topics import kinds, topic_text
from gangplan.report.escape import own_line
from gangplan.rulebook import Rulebook, load_rulebook
from gangplan.spec.near import close_to


def explain(name: str | None, workspace: Path | None = None) -> Exit:
    """Print the page of a rule, cause, field, kind of file or pack; without a name, list all rules.

    A workspace, if there is one, adds its own policies. Raises UserError for an unknown name.
    """
    root = workspace_of(workspace)
    policies = load_policies(root) if root is not None else OwnPolicies()
    rulebook = load_rulebook(root) if root is not None else Rulebook()
    known = rulebook.rules
    if name is None:
        width = max(map(len, known))
        for rule in known.values():
            _print(f"{rule:{width}}  {rule.severity.word:7}  {' '.join(rule.summary.split())}\n")
        return Exit.CLEAN
    if page := rulebook.find(name):
        more = policy_lines(page, policies) if page.is_policy else ()
        _print(rule_text(page) + "".join(f"{line}\n" for line in more))
        return Exit.CLEAN
    if own := own_policy(name, policies):
        _print("\n".join(own) + "\n")
        return Exit.CLEAN
    if cause := cause_text(name):
        _print(cause)
        return Exit.CLEAN
    found = [] if name in kinds() else lookup(name)  # `Team` is a kind, `team` a field
    text = fields_text(found) if found else topic_text(name, policies)
    if not text:
        names = {*known, *own_names(policies), *known_names(), *kinds(), *policies.names, *causes()}
        close = close_to(name, names)
        every = "gangplan explain lists all rules; docs/spec.md has all fields."
        help = f"Did you mean '{close}'?" if close else every
        raise UserError(f"there is no rule, cause, field, kind or pack '{name}'", help)
    _print(text)
    return Exit.CLEAN


def _print(text: str) -> None:
    """Print text without commands for a terminal or a CI runner, which a workspace's own policies might
    contain."""
    sys.stdout.write("\n".join(map(own_line, text.split("\n"))))
