"""Rules about waivers: files in policies/waivers/ that excuse a breach of a rule until a day."""

from __future__ import annotations

from gangplan.rules.model import ERROR, NOTE, WARNING, Rule

WAIVER_RULE_UNKNOWN = Rule(
    "waiver-rule-unknown",
    ERROR,
    "A waiver names a rule that does not exist.",
    why=(
        "It would excuse nothing, and its author would believe that it does. Renamed rules are "
        "announced; policies come and go with their pack."
    ),
    fix="Correct the id; findings show it in brackets, and gangplan explain lists them all.",
)

WAIVER_NOT_ALLOWED = Rule(
    "waiver-not-allowed",
    ERROR,
    "A waiver names a rule that cannot be waived.",
    why=(
        "Most built-in rules report runs that would not work, such as a schema error or a claim that "
        "does not exist. Waiving one would only hide the failure until the cluster shows it."
    ),
    fix="Remove the waiver and follow the rule.",
)

WAIVER_SCOPE = Rule(
    "waiver-scope",
    ERROR,
    "A waiver names a cluster or team that does not exist.",
    why=(
        "A misspelt scope covers nothing. The breach is still reported, while the waiver looks as if it "
        "were in force."
    ),
    fix="Correct the name or pattern in scope.",
)

WAIVER_TOO_LONG = Rule(
    "waiver-too-long",
    ERROR,
    "A waiver lasts longer than a year.",
    why=(
        "A waiver that does not end soon is a change of the rule that nobody looks at again. A year is "
        "long enough for any fix, and renewing the waiver shows that somebody still needs it."
    ),
    fix="Write an earlier date, and renew the waiver when it ends.",
    is_verdict=True,
)

WAIVER_EXPIRED = Rule(
    "waiver-expired",
    ERROR,
    "A waiver has expired.",
    why=(
        "What it excused counts again. Nothing else would remind a team of a breach that was once "
        "allowed, so the check fails until the file is renewed or removed. Rendering ignores the date, "
        "so that a tag always renders the same."
    ),
    fix="Follow the rule and remove the file, or have it approved again with a later date.",
    is_verdict=True,
)

WAIVER_ENDS_SOON = Rule(
    "waiver-ends-soon",
    WARNING,
    "A waiver expires within thirty days.",
    why=(
        "The day after, every check of the repository fails, even for those who have nothing to do with "
        "it. A month is enough to fix what it excuses or to have it approved again."
    ),
    fix="Follow the rule before that day, or renew the waiver.",
)

WAIVER_UNUSED = Rule(
    "waiver-unused",
    NOTE,
    "A waiver excuses nothing.",
    why=(
        "The breach was fixed, or the scope or limit does not cover it. A waiver that is kept for no "
        "reason excuses the next breach without anyone's decision."
    ),
    fix="Remove the file, or correct its scope or limit.",
)

WAIVER_UNHEEDED = Rule(
    "waiver-unheeded",
    ERROR,
    "A waiver excuses what the API server would refuse.",
    why=(
        "gangplan labels what a waiver excuses, and the bindings that it writes for packs respect that "
        "label. A policy outside packs has its own bindings; one that ignores the label refuses the run "
        "when it is synced, although the check passed."
    ),
    fix="Exclude objects with the label in the binding's objectSelector.",
)
