"""Checks of waivers against the workspace and the calendar: what they name, and whether they still apply."""

from __future__ import annotations

import datetime
import fnmatch
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from gangplan.findings import Finding, Location
from gangplan.objects import BINDING_KIND, POLICY_KIND, Body, ref_of
from gangplan.packs.read import list_own_policy_files, list_pack_policy_files
from gangplan.rulebook import Rulebook
from gangplan.rules.debug import DEBUG_KEPT
from gangplan.rules.waivers import (
    WAIVER_ENDS_SOON,
    WAIVER_EXPIRED,
    WAIVER_NOT_ALLOWED,
    WAIVER_RULE_UNKNOWN,
    WAIVER_SCOPE,
    WAIVER_TOO_LONG,
    WAIVER_UNHEEDED,
    WAIVER_UNUSED,
)
from gangplan.source import ManifestError, load_objects
from gangplan.spec.waiver_files import WaiverFile
from gangplan.waivers import WAIVED_PREFIX
from gangplan.workspace import Workspace, suggest_nearest

# A waiver is temporary and does not change the rule: it ends in at most a year (with a leap day), and
# gangplan warns a month before.
LONGEST_WAIVER = datetime.timedelta(days=366)
NOTICE = datetime.timedelta(days=30)


def check_waivers(workspace: Workspace) -> list[Finding]:
    """Report waivers of unknown things or unwaivable rules, and ones that the API server ignores."""
    own = _load_own_policy_objects(workspace.root)
    mine = {ref_of(body).name for body in own if body.get("kind") == POLICY_KIND}
    policies = list_known_policy_ids(workspace.root)
    return [
        finding
        for waiver in workspace.waivers
        for finding in (
            *_check_waiver_rule(waiver, policies, workspace.rulebook),
            *_check_waiver_scope(waiver, workspace),
            *(_check_bindings_heed_waiver(waiver, own) if waiver.spec.rule in mine else ()),
        )
    ]


def list_known_policy_ids(root: Path) -> set[str]:
    """Return the ids of the policies of all packs that the workspace can name and of its own policies.

    Its own are all ValidatingAdmissionPolicies in its policies/*.yaml.
    """
    own = {ref_of(body).name for body in _load_own_policy_objects(root) if body.get("kind") == POLICY_KIND}
    return own | {path.stem for path in list_pack_policy_files(root)}


def _load_own_policy_objects(root: Path) -> list[Body]:
    """Return the named objects in policies/*.yaml. Unreadable files are reported where they are read."""
    found: list[Body] = []
    for path in list_own_policy_files(root):
        try:
            found += load_objects(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ManifestError):
            continue
    return [body for body in found if isinstance(body.get("metadata"), dict)]


def _check_bindings_heed_waiver(waiver: WaiverFile, own: Iterable[Body]) -> Iterator[Finding]:
    """Report a binding outside packs that ignores the label of a waiver of its policy."""
    name = waiver.spec.rule
    policy = [body for body in own if body.get("kind") == POLICY_KIND and ref_of(body).name == name]
    bindings = [body for body in own if body.get("kind") == BINDING_KIND and _is_of(body, name)]
    if any(f"{WAIVED_PREFIX}{name}" in json.dumps(body, default=str) for body in policy):
        return
    for body in bindings:
        if f"{WAIVED_PREFIX}{name}" not in json.dumps(body, default=str):
            message = f"the API server would refuse what this waiver excuses: binding '{ref_of(body).name}' "
            message += f"ignores the label {WAIVED_PREFIX}{name}"
            help = "Add to matchResources.objectSelector.matchExpressions of the binding: "
            help += f"{{key: {WAIVED_PREFIX}{name}, operator: DoesNotExist}}."
            yield Finding(WAIVER_UNHEEDED, waiver.where, message, help)
            return


def _is_of(binding: Body, policy: str) -> bool:
    spec = binding.get("spec")
    return isinstance(spec, dict) and spec.get("policyName") == policy


def _check_waiver_rule(
    waiver: WaiverFile, policies: Collection[str], rulebook: Rulebook
) -> Iterator[Finding]:
    name = waiver.spec.rule
    page = rulebook.find(name)
    if page is None and name not in policies:
        known = {*policies, *(rule for rule, one in rulebook.rules.items() if one.may_be_waived)}
        message = f"there is no rule or policy '{name}'"
        yield Finding(WAIVER_RULE_UNKNOWN, waiver.where, message, suggest_nearest(name, known))
    elif page is not None and not page.may_be_waived:
        message = f"rule '{name}' cannot be waived: {_lower_first_letter(page.summary)}"
        help = f"Remove the waiver, and follow the rule: {_lower_first_letter(page.fix)}"
        yield Finding(WAIVER_NOT_ALLOWED, waiver.where, message, help)


def _lower_first_letter(sentence: str) -> str:
    """Return a sentence as it follows a colon, on one line."""
    text = " ".join(sentence.split())
    return text[:1].lower() + text[1:]


def _check_waiver_scope(waiver: WaiverFile, workspace: Workspace) -> Iterator[Finding]:
    """Report unknown clusters and teams. Jobs may come later: an unmatched waiver is reported as unused."""
    scope = waiver.spec.scope
    known = {
        "cluster": {*workspace.clusters, *workspace.unread},
        # A team file that cannot be read has its own finding.
        "team": {*workspace.teams, *(file.team for file in workspace.spec_files)},
    }
    for what, pattern in (("cluster", scope.cluster), ("team", scope.team)):
        if pattern is None or any(fnmatch.fnmatchcase(name, pattern) for name in known[what]):
            continue
        verb = "fits" if set(pattern) & set("*?") else "is"
        message = f"no {what} {verb} '{pattern}': the waiver applies to nothing"
        yield Finding(
            WAIVER_SCOPE,
            waiver.document.where(("scope", what)),
            message,
            suggest_nearest(pattern, known[what]),
        )


def judge_waivers(
    workspace: Workspace, findings: Iterable[Finding], today: datetime.date, is_whole: bool
) -> list[Finding]:
    """Return the findings as of a day: those with expired waivers count again, and each waiver is checked.

    `is_whole` means that everything was checked, so that a waiver without a finding is unneeded.
    """
    found = [judge_waived_finding(finding, today) for finding in findings]
    uses = Counter(one.waiver.where for one in found if one.waiver is not None)
    for waiver in workspace.waivers:
        found += _check_waiver_validity(waiver, uses[waiver.where], today, is_whole)
    return found


def judge_waived_finding(finding: Finding, today: datetime.date) -> Finding:
    """Return the finding as of a day: it counts again if its waiver has expired.

    A note about kept pods is judged by its own last day.
    """
    waiver = finding.waiver
    if finding.rule == DEBUG_KEPT:
        from gangplan.resolve import debug  # few runs have one

        return debug.judge_debug_note(finding, today)
    if waiver is None or datetime.date.fromisoformat(waiver.until) >= today:
        return finding
    return replace(finding, waiver=replace(waiver, is_over=True))


def _check_waiver_validity(
    waiver: WaiverFile, uses: int, today: datetime.date, is_whole: bool
) -> Iterator[Finding]:
    rule, ends = waiver.spec.rule, datetime.date.fromisoformat(waiver.spec.expires)
    where: Location = waiver.document.where(("expires",))
    if ends < today:
        again = f"; it excused {_format_finding_count(uses)}" if uses else ""
        message = f"the waiver of {rule} ended on {ends}, and today is {today}{again}"
        help = "Follow the rule and remove the file, or have it approved again with a later date."
        yield Finding(WAIVER_EXPIRED, where, message, help)
        return
    if ends - today > LONGEST_WAIVER:
        message = f"the waiver of {rule} lasts {(ends - today).days} days; a year is the most"
        yield Finding(WAIVER_TOO_LONG, where, message, f"Write expires: {today + LONGEST_WAIVER} or earlier.")
    elif ends - today <= NOTICE:
        days = (ends - today).days
        when = "today" if not days else f"in {days} day{'' if days == 1 else 's'}, on {ends}"
        message = f"the waiver of {rule} ends {when}; it excuses {_format_finding_count(uses)}"
        yield Finding(
            WAIVER_ENDS_SOON, where, message, "Follow the rule before that day, or have it approved again."
        )
    elif is_whole and not uses:
        message = f"the waiver of {rule} excuses nothing: no finding of that rule is in its scope"
        yield Finding(WAIVER_UNUSED, waiver.where, message, "Remove the file, or correct its scope or limit.")


def _format_finding_count(uses: int) -> str:
    return f"{uses} finding{'' if uses == 1 else 's'}" if uses else "nothing"
