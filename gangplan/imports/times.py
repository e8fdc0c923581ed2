"""Map deadlines, retries and priorities of a source to fields of the spec."""

from __future__ import annotations

from gangplan.imports.draft import SpecDraft
from gangplan.model.duration import format_duration
from gangplan.model.exits import LAUNCH_EXITS

_DAY_S, _WEEK_S = 86_400, 7 * 86_400
_MOST_RETRIES = 3
_MOST_CODES = 64
# Exit codes of gangplan's own scripts before the program starts (gangplan.rules.pods, exit-codes-clash).
_OWN_CODES = frozenset(one.code for one in LAUNCH_EXITS.values())


def map_time_limit_retries_and_priority(draft: SpecDraft) -> None:
    """Map the time limit, the retries and the priority."""
    settings = draft.work.settings
    if limit := settings.get("timeout"):
        seconds = int(limit.value)
        if seconds > _WEEK_S:
            draft.put("timeout", "7d", limit.node)
            draft.wonder(
                limit.node,
                f"a run takes up to 7d, and the source allows {format_duration(seconds)}",
                "Save checkpoints, and run it again.",
            )
        elif seconds > 0:
            draft.put("timeout", format_duration(seconds), limit.node)
        if seconds > _DAY_S:
            draft.put("extendedTimeout", True)
    if tries := settings.get("retries"):
        count = int(tries.value)
        if count > _MOST_RETRIES:
            draft.put("retries", _MOST_RETRIES, tries.node)
            draft.wonder(
                tries.node, f"a run restarts up to {_MOST_RETRIES} times, and the source {count} times", ""
            )
        elif count:
            draft.put("retries", count, tries.node)
        else:
            tries.node.same("runs are not restarted")
    if level := settings.get("priority"):
        name = next(
            (one for one in ("low", "normal", "high", "critical") if one in str(level.value).lower()), ""
        )
        if name:
            draft.put("priority", name, level.node)
        else:
            level.node.asked("choose priority: low, normal, high or critical")


def map_imported_exit_codes(draft: SpecDraft, framework: str) -> None:
    """Map exit codes that decide on retries, if the pod ends with the exit code of the program."""
    for field, codes, node in draft.work.exit_codes:
        kept = [code for code in codes if 1 <= code <= 255 and code not in _OWN_CODES]
        listed = [*draft.values.get("exitCodes", {}).get(field, ()), *kept]
        if not draft.values.get("retries"):
            node.dropped("without retries, every failure ends the run")
        elif framework == "torch":
            node.asked("torchrun ends with 1 whatever a rank ended with, so that exit codes decide nothing")
        elif len(kept) < len(codes) or len(listed) > _MOST_CODES:
            node.asked("exitCodes takes up to 64 codes from 1 to 255, without 193 and 196 to 199")
        else:
            draft.values.setdefault("exitCodes", {})[field] = list(dict.fromkeys(listed))
            node.mapped(f"exitCodes.{field}")
            draft.origins.setdefault("exitCodes", node)
