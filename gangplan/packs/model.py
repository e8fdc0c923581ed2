"""The format of pack.yaml: the purpose of a pack, and its policies with their default parameters."""

from typing import Annotated, Any, Literal

from pydantic import Field

from gangplan.spec.base import ReadBy, Strict, build_helpful_error
from gangplan.spec.params import PARAM_SCHEMA, parse_param

Action = Literal["Deny", "Warn", "Audit"]


class FactParam(Strict):
    """A parameter whose value is a fact of the cluster."""

    fact: str = Field(description="Name of the fact (docs/own-policies.md lists them).", examples=["region"])


class Label(Strict):
    """The scope of a pack that applies to what has a label `gangplan.dev/<label>`."""

    label: str = Field(description="The label's name.", examples=["hipaa"])


def _parse_pack_parameter(value: Any) -> Any:
    if isinstance(value, dict):
        name = value.get("fact")
        if set(value) != {"fact"} or not isinstance(name, str):
            raise build_helpful_error(
                "param", "a fact is written as {fact: NAME}", "For example {fact: region}."
            )
        return FactParam(fact=name)
    return parse_param(value)


ParameterValue = Annotated[
    str | int | float | bool | tuple[str, ...] | FactParam,
    ReadBy(
        _parse_pack_parameter,
        {"anyOf": [*PARAM_SCHEMA["anyOf"], {"type": "object", "properties": {"fact": {"type": "string"}}}]},
    ),
]
Params = dict[str, ParameterValue]


class PackPolicy(Strict):
    """One policy of a pack. Its file is next to pack.yaml and has its name."""

    title: str = Field(
        description="What holds when the policy is followed.", examples=["Runs have at most 50 nodes."]
    )
    why: str = Field(description="What happens otherwise.", examples=["The fabric has 50 ports."])
    fix: str = Field(
        description="What to do; the help line of every finding.", examples=["Write workers: 50 or less."]
    )
    action: Action = Field(
        "Deny",
        description="What a breach leads to: Deny (error), Warn (warning), Audit (note).",
        examples=["Warn"],
    )
    params: Params = Field(
        {},
        description=(
            "Parameters with their defaults: a string, a number, true or false, a list of strings, or a fact"
            " of the cluster, `{fact: NAME}`. The default's kind is the parameter's."
        ),
        examples=[{"most": 50}],
    )
    told_by: tuple[str, ...] = Field(
        (),
        alias="told_by",
        description=(
            "Built-in rules that report the same cause: where one does, `validate`"
            " does not report the policy,"
            " and a waiver of that rule covers the policy."
        ),
        examples=[["pod-security"]],
    )
    blames: str = Field(
        "",
        pattern=r"^(spec|team|cluster)(\.[A-Za-z]+)+$|^$",
        description="The field at which a breach is reported, where several decide; first its file.",
        examples=["spec.network.egress"],
    )
    ci_only: str = Field(
        "",
        alias="ci_only",
        description=(
            "Why the API server cannot judge the policy. Then it is not applied, and holds in `validate`"
            " alone; `policy list` and `explain` show it."
        ),
        examples=["It needs the list of licences, which is in Git."],
    )
    waivable: bool = Field(
        True,
        description="Whether a waiver may excuse a breach. False: its bindings ignore the labels of waivers.",
        examples=[False],
    )


class Pack(Strict):
    """A pack.yaml."""

    title: str = Field(description="What the pack is for.", examples=["Our own rules."])
    why: str = Field(description="Why anyone would want it.", examples=["They hold in this company alone."])
    scope: Literal["teams"] | Label = Field(
        "teams",
        description=(
            "What it applies to: every namespace of a team (`teams`), or what has a label"
            " `gangplan.dev/<label>` (`{label: hipaa}`)."
        ),
        examples=[{"label": "hipaa"}],
    )
    needs: tuple[str, ...] = Field((), description="Packs that it switches on.", examples=[["baseline"]])
    uses: dict[str, Params] = Field(
        {},
        description=(
            "Policies of other packs that it switches on, with parameters of its own, which win over the"
            " cluster's."
        ),
        examples=[{"waiver-granted": {}, "network-internet": {"allowed": False}}],
    )
    policies: dict[str, PackPolicy] = Field(
        {},
        description="Its policies by name. Each is in `<name>.yaml` next to pack.yaml.",
        examples=[{"few-nodes": {"title": "Runs are small.", "why": "The lab is.", "fix": "Lower workers."}}],
    )

    @property
    def label(self) -> str:
        """The label that the pack selects by; empty when it applies to all teams."""
        return self.scope.label if isinstance(self.scope, Label) else ""
