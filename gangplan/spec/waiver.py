"""Waiver: one rule that some runs may break, why, who approved it, and until when.

Its file is policies/waivers/<name>.yaml, which belongs to the platform, not to the team that needs it.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gangplan.spec.base import (
    ApiVersion,
    Cpu,
    DurationSeconds,
    Memory,
    Strict,
    build_helpful_error,
    is_blank,
    parse_spec_reason,
)
from gangplan.spec.team import Day

# A name, or a pattern in which '*' matches any characters and '?' one.
NamePattern = Annotated[str, Field(pattern=r"^[a-z?*][-a-z0-9?*]*$", max_length=63)]
RuleName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=56)]


def _parse_waiver_reason(text: str) -> str:
    return parse_spec_reason(
        text,
        "Say in a sentence why the rule cannot be kept, such as: The vendor's image cannot be rebuilt before May.",
    )


def _validate_waiver_approver(text: str) -> str:
    if is_blank(text):
        raise build_helpful_error(
            "approver", "nobody approved it", "Name who did: approver: ml-platform@example.com."
        )
    return text


class WaiverScope(Strict):
    """What the waiver covers. An omitted field matches all; at least one needs a letter or digit."""

    cluster: NamePattern | None = Field(
        None, description="Cluster, or a pattern with * and ?.", examples=["onprem-*"]
    )
    team: NamePattern | None = Field(None, description="Team, or a pattern with * and ?.", examples=["nlp"])
    job: NamePattern | None = Field(
        None,
        description="Job by its name, or a pattern with * and ?; omitted: every job, and what the team itself has.",
        examples=["llm-*"],
    )


class WaiverLimit(Strict):
    """The limits of the waiver. A run that exceeds any of them is not excused."""

    timeout: DurationSeconds | None = Field(None, description="Longest timeout.", examples=["14d"])
    workers: Annotated[int, Field(ge=1, le=500)] | None = Field(
        None, description="Most workers.", examples=[200]
    )
    gpus: Annotated[int, Field(ge=0, le=16)] | None = Field(
        None, description="Maximum GPUs per worker.", examples=[8]
    )
    cpu: Cpu | None = Field(None, description="Maximum CPU cores per worker.", examples=[64])
    memory: Memory | None = Field(None, description="Maximum memory per worker.", examples=["512Gi"])
    retries: Annotated[int, Field(ge=0, le=3)] | None = Field(None, description="Most retries.", examples=[1])


def _validate_waiver_scope(scope: WaiverScope) -> WaiverScope:
    # `?*`, `????` and `*-*` select nothing in particular: only letters and digits narrow a pattern.
    narrow = [one for one in (scope.cluster, scope.team, scope.job) if one and one.strip("*?-")]
    if not narrow:
        raise build_helpful_error(
            "scope",
            "the waiver covers every run of every team",
            "Name a cluster, team or job: scope: {team: nlp}. To relax a policy for a whole cluster, set policies.actions in its cluster.yaml.",
        )
    return scope


class Waiver(Strict):
    """One rule or policy that is waived for some runs until a day. Only the platform's owners merge it."""

    api_version: ApiVersion = Field(description="Version of this file format.", examples=["gangplan.dev/v1"])
    kind: Literal["Waiver"] = Field(description="Kind of this file.", examples=["Waiver"])
    rule: RuleName = Field(
        description="Rule or policy by its id, as findings show it in brackets.", examples=["image-digest"]
    )
    scope: Annotated[WaiverScope, AfterValidator(_validate_waiver_scope)] = Field(
        description="Which cluster, team and job it covers.", examples=[{"team": "nlp", "job": "llm-*"}]
    )
    reason: Annotated[str, Field(max_length=1024), AfterValidator(_parse_waiver_reason)] = Field(
        description="Why the rule cannot be kept, in 10 characters or more; shown wherever the waiver is used.",
        examples=["The vendor's image cannot be rebuilt before May."],
    )
    approver: Annotated[str, Field(max_length=253), AfterValidator(_validate_waiver_approver)] = Field(
        description="Who allowed it; not blank.", examples=["ml-platform@example.com"]
    )
    expires: Day = Field(
        description="Last day, at most a year away; after that day, the check fails until the waiver is renewed or removed.",
        examples=["2027-01-31"],
    )
    limit: WaiverLimit | None = Field(
        None,
        description="Limits of the waiver; a run that exceeds them is not excused.",
        examples=[{"timeout": "14d"}],
    )
