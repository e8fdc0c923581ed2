"""`gangplan explain`: the page of a rule, a cause, a field, a kind of file or a policy pack."""

from __future__ import annotations

import sys
from pathlib import Path

from gangplan.diagnose.causes import list_diagnosis_causes
from gangplan.errors import Exit, UserError
from gangplan.packs.own import OwnPolicies, load_policies
from gangplan.reference.causes import render_cause_reference
from gangplan.reference.field_pages import render_fields_reference
from gangplan.reference.fields import find_fields, list_field_names
from gangplan.reference.one_policy import (
    explain_own_policy,
    explain_pack_policy,
    find_workspace_to_explain,
    list_own_policies,
)
from gangplan.reference.rules import render_rule_reference
from gangplan.reference.topics import list_file_kinds, render_topic_reference
from gangplan.report.escape import escape_own_line
from gangplan.rulebook import Rulebook, load_rulebook
from gangplan.spec.near import find_similar


def run_explain_command(name: str | None, workspace: Path | None = None) -> Exit:
    """Print the page of a rule, cause, field, kind of file or pack; without a name, list all rules.

    A workspace, if there is one, adds its own policies. Raises UserError for an unknown name.
    """
    root = find_workspace_to_explain(workspace)
    policies = load_policies(root) if root is not None else OwnPolicies()
    rulebook = load_rulebook(root) if root is not None else Rulebook()
    known = rulebook.rules
    if name is None:
        width = max(map(len, known))
        for rule in known.values():
            _print_escaped_text(f"{rule:{width}}  {rule.severity.word:7}  {' '.join(rule.summary.split())}\n")
        return Exit.CLEAN
    if page := rulebook.find(name):
        more = explain_pack_policy(page, policies) if page.is_policy else ()
        _print_escaped_text(render_rule_reference(page) + "".join(f"{line}\n" for line in more))
        return Exit.CLEAN
    if own := explain_own_policy(name, policies):
        _print_escaped_text("\n".join(own) + "\n")
        return Exit.CLEAN
    if cause := render_cause_reference(name):
        _print_escaped_text(cause)
        return Exit.CLEAN
    found = [] if name in list_file_kinds() else find_fields(name)  # `Team` is a kind, `team` a field
    text = render_fields_reference(found) if found else render_topic_reference(name, policies)
    if not text:
        names = {
            *known,
            *list_own_policies(policies),
            *list_field_names(),
            *list_file_kinds(),
            *policies.names,
            *list_diagnosis_causes(),
        }
        close = find_similar(name, names)
        every = "gangplan explain lists all rules; docs/spec.md has all fields."
        help = f"Did you mean '{close}'?" if close else every
        raise UserError(f"there is no rule, cause, field, kind or pack '{name}'", help)
    _print_escaped_text(text)
    return Exit.CLEAN


def _print_escaped_text(text: str) -> None:
    """Print text without commands for a terminal or a CI runner, which a workspace's own policies might
    contain."""
    sys.stdout.write("\n".join(map(escape_own_line, text.split("\n"))))
