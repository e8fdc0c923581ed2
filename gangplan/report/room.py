"""What a run leaves of its team's quota: as text for people, as data for machines."""

from __future__ import annotations

from typing import Any

from gangplan.model.amounts import format_amount, format_for_spec, format_with_unit
from gangplan.pipeline.team_room import QuotaRoom, TeamRoom


def format_quota_room_report(room: TeamRoom | None) -> str:
    """Return `a100: 16 of 32 GPUs left (other runs: 8), ...; 7 of 500 runs`; empty where nothing is known."""
    if room is None:
        return ""
    pools = dict.fromkeys(one.pool for one in room.rooms)
    parts = [
        f"{pool}: {', '.join(_describe_quota_left(one) for one in _sort_rooms_gpus_first(room) if one.pool == pool)}"
        for pool in pools
    ]
    asking = [f"more at {room.asks_at}"] if room.is_short and room.asks_at else []
    return "; ".join([*parts, f"{room.runs} of {room.most} runs", *asking])


def _sort_rooms_gpus_first(room: TeamRoom) -> list[QuotaRoom]:
    """Return the rows with GPUs first."""
    return sorted(room.rooms, key=lambda one: (one.resource in ("cpu", "memory"), one.resource))


def _describe_quota_left(one: QuotaRoom) -> str:
    others = f" (other runs: {format_amount(one.resource, one.used)})" if one.used else ""
    if one.left < 0:
        return f"{format_with_unit(one.resource, -one.left)} over the quota of {format_amount(one.resource, one.quota)}{others}"
    return (
        f"{format_amount(one.resource, one.left)} of {format_with_unit(one.resource, one.quota)} left{others}"
    )


def build_quota_room_json(room: TeamRoom | None) -> dict[str, Any] | None:
    """Return the same as data; None where nothing is known. Quantities are texts as in files."""
    if room is None:
        return None
    return {
        "runs": {"used": room.runs, "quota": room.most},
        **({"askAt": room.asks_at} if room.asks_at else {}),
        "resources": [
            {
                "pool": one.pool,
                "resource": one.resource,
                "quota": format_for_spec(one.resource, one.quota),
                "otherRuns": format_for_spec(one.resource, one.used),
                "thisRun": format_for_spec(one.resource, one.asked),
                "left": format_for_spec(one.resource, one.left),
            }
            for one in _sort_rooms_gpus_first(room)
        ],
    }
