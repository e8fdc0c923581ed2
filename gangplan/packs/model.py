"""pack.yaml as it is written: what a pack is for, and each of its policies with default parameters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gangplan.spec.base import Strict

Action = Literal["Deny", "Warn", "Audit"]


class Fact(Strict):
    """A parameter whose value is a fact of the cluster."""

    fact: str = Field(description="Name of the fact (gangplan/packs/facts.py).", examples=["region"])


class Label(Strict):
    """A pack that applies to what bears a label `gangplan.dev/<label>`."""

    label: str = Field(description="The label's name.", examples=["hipaa"])


Value = str | int | float | bool | tuple[str, ...] | Fact
Params = dict[str, Value]


class PackPolicy(Strict):
    """One policy of a pack. Its file stands beside pack.yaml and has its name."""

    title: str = Field(description="What holds when the policy is followed.")
    why: str = Field(description="What happens otherwise.")
    fix: str = Field(description="What to do.")
    action: Action = Field("Deny", description="What a breach leads to.", examples=["Warn"])
    params: Params = Field({}, description="Default parameters.", examples=[{"maxHours": 24}])
    told_by: tuple[str, ...] = Field(
        (),
        alias="told_by",
        description="Rules of gangplan that tell the same cause.",
        examples=[["pod-security"]],
    )
    waivable: bool = Field(True, description="Whether a waiver may excuse a breach.", examples=[False])


class Pack(Strict):
    """A pack.yaml."""

    title: str = Field(description="What the pack is for.")
    why: str = Field(description="Why anyone would want it.")
    scope: Literal["teams"] | Label = Field("teams", description="What it applies to.")
    needs: tuple[str, ...] = Field((), description="Packs that it switches on.", examples=[["baseline"]])
    uses: dict[str, Params] = Field(
        {}, description="Policies of other packs that it switches on, with parameters of its own."
    )
    policies: dict[str, PackPolicy] = Field({}, description="Its policies by name.")

    @property
    def label(self) -> str:
        """The label that the pack asks for; empty when it applies to all teams."""
        return self.scope.label if isinstance(self.scope, Label) else ""
