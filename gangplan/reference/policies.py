"""Write docs/policies.md: every policy pack, its purpose, and each of its policies with parameters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gangplan import policies as shipped
from gangplan.rulebook import SHIPPED_PACKS_FOLDER, load_built_in_rules
from gangplan.rulebook import load_shipped_rules as shipped_rules
from gangplan.source import load_objects

INTRODUCTION = """\
# Policies

Generated from the packs in `policies/` by `make docs`.

A policy is a plain Kubernetes ValidatingAdmissionPolicy, and is judged twice: by `gangplan validate` in the pull
request, at the line of the spec, and by the API server of the cluster, which gets the same policies in
`rendered/<cluster>/platform/policies.yaml` ([policies-in-the-cluster.md](policies-in-the-cluster.md)). `gangplan explain POLICY` prints what this page says of one, with an object that it refuses.
Policies and packs of your own: [own-policies.md](own-policies.md).

## Which policies hold where

A cluster lists its packs; nothing holds without being listed.

```yaml
# overlays/<cluster>/cluster.yaml
policies:
  packs: [baseline, restricted, images, hipaa]
  actions: {image-scan: Warn}            # Deny (error), Warn (warning) or Audit (note) instead of the pack's
  params: {run-deadline: {seconds: 43200}}   # instead of the pack's numbers and lists
  enforcement: Audit                     # the most that the API server does; validate does not change
```

Most packs hold for every namespace of a team (label `gangplan.dev/team`). The packs of a regime hold for what
falls under it: a team says `compliance: [hipaa]` in team.yaml for all of its data, a spec for its own job. Both
become a label, and the bindings select by it. The pack `residency` holds for specs with `residency: eu`. A spec
or team that asks for a regime on a cluster without its pack is refused (`compliance-not-enforced`): what nobody
enforces is not kept.

Numbers and lists belong in parameters, never in expressions: a ConfigMap `gangplan-<policy>` in the namespace
`gangplan-policies`. What only the cluster's file knows (its region, storage classes that encrypt, the image
catalog) is filled in for each cluster; below such a parameter is written as *fact*.

A parameter in cluster.yaml has the kind of the pack's default: a number, a text, true or false, or a list of
texts. Names are unique: a pack of your own cannot have the name of one of these packs, nor a policy of your own
the name of a policy or rule of gangplan, so that nothing here is replaced unseen (`pack-invalid`).

A waiver excuses single jobs until a day, unless the policy says otherwise: [waivers.md](waivers.md). Case files in
`policies/<pack>/tests/` show what each policy lets through and refuses; `gangplan policy test` runs them.

Policies ask for Kubernetes 1.31 or later where they look into address ranges (`network-endpoints`,
`network-internet` and `network-posture`), else for 1.30; a pack that is too new for its cluster is an error.

What the API server sees and a rendered file does not, is judged there alone: policies about pods judge what
webhooks and controllers made of them, too. An update is judged only if it changes what the policy looks at, so
that a policy that comes later does not keep a running object from ending.
"""


def render_policies_docs_page() -> str:
    """Return the page. Packs and policies are in the order of their files."""
    lines = [INTRODUCTION, "## Packs", "", "| pack | policies | for |", "|---|---|---|"]
    packs = dict(_load_builtin_packs())
    for name, pack in packs.items():
        count = len(pack["policies"])
        also = [f"all of {needed}" for needed in pack.get("needs", ())]
        also += [f"{len(pack['uses'])} of others"] if pack.get("uses") else []
        lines.append(f"| [{name}](#{name}) | {' + '.join([str(count), *also])} | {pack['title']} |")
    for name, pack in packs.items():
        lines += ["", *_render_pack_docs_section(name, pack)]
    lines += ["", *_render_ci_only_docs_tables()]
    return "\n".join(lines) + "\n"


_ONLY_IN_CI = """\
## What only CI checks

The API server can judge every policy above: whatever gangplan knows and an object does not show is a parameter.
Built-in rules are not policies. Most compare a spec with other files, such as the pools and limits of a cluster or
the specs of other teams, which an API server that sees one object at a time cannot. Of those that a waiver may
excuse, these have no policy; whoever applies objects past CI gets round them:
"""

_ALSO_IN_CLUSTER = "These rules have one, whether or not a waiver may excuse them:\n"


def _render_ci_only_docs_tables() -> Iterator[str]:
    """Yield a table of the waivable built-in rules without a policy, and one of rules with a policy that
    reports the same."""
    rules = shipped_rules()
    alike = {name: [one for one in rules.values() if name in one.told_by] for name in load_built_in_rules()}
    yield from (_ONLY_IN_CI, "| rule | what it reports |", "|---|---|")
    waivable = [rule for rule in load_built_in_rules().values() if rule.may_be_waived]
    yield from (f"| `{rule}` | {rule.summary} |" for rule in waivable if not alike[rule])
    yield from ("", _ALSO_IN_CLUSTER, "| rule | in the cluster | may be waived |", "|---|---|---|")
    yield from (
        f"| `{name}` | {', '.join(f'[{one}](#{one})' for one in alike[name])} | {'yes' if rule.may_be_waived else 'no'} |"
        for name, rule in load_built_in_rules().items()
        if alike[name]
    )


def _load_builtin_packs() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in shipped.BUILTIN_PACKS:
        (pack,) = load_objects((SHIPPED_PACKS_FOLDER / name / "pack.yaml").read_text(encoding="utf-8"))
        yield name, pack


def _render_pack_docs_section(name: str, pack: dict[str, Any]) -> Iterator[str]:
    scope = pack.get("scope", "teams")
    yield from (f"## {name}", "", pack["title"], "", pack["why"], "")
    holds = "every namespace of a team" if scope == "teams" else f"what bears `gangplan.dev/{scope['label']}`"
    yield from (f"Holds for {holds}.", "")
    if pack.get("needs"):
        yield from (f"Switches on {' and '.join(pack['needs'])}, too.", "")
    if pack.get("uses"):
        yield "Uses policies of other packs: " + ", ".join(_describe_used_policies(pack["uses"])) + "."
        yield ""
    for policy, page in pack["policies"].items():
        yield from _render_policy_docs_section(name, policy, page)


def _describe_used_policies(uses: dict[str, Any]) -> Iterator[str]:
    for policy, params in uses.items():
        more = ", ".join(f"{key}: {_format_parameter_value_for_docs(value)}" for key, value in params.items())
        yield f"[{policy}](#{policy})" + (f" ({more})" if more else "")


def _render_policy_docs_section(pack: str, name: str, page: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {name}", "", f"{shipped_rules()[name].severity.word.capitalize()}. {page['title']}", "")
    yield from (page["why"], "", f"**Fix.** {page['fix']}", "")
    if page.get("params"):
        yield (
            "Parameters: "
            + ", ".join(f"`{k}` {_format_parameter_value_for_docs(v)}" for k, v in page["params"].items())
            + "."
        )
        yield ""
    if not page.get("waivable", True):
        yield from ("No waiver may excuse it.", "")
    if page.get("told_by"):
        told = ", ".join(f"`{rule}`" for rule in page["told_by"])
        yield from (f"Where {told} reports the same in a pull request, only that is reported.", "")
    cases = sorted(_list_policy_cases(SHIPPED_PACKS_FOLDER / pack / "tests", name))
    yield f"Cases: {', '.join(cases)}."
    yield ""


def _list_policy_cases(folder: Path, policy: str) -> Iterator[str]:
    for file in folder.glob(f"{policy}.*.yaml"):
        _, case, verdict, _ = file.name.split(".")
        yield f"{case} ({verdict})"


def _format_parameter_value_for_docs(value: Any) -> str:
    """Return a parameter's value for readers."""
    if isinstance(value, dict):
        return f"*fact* {value['fact']}"
    if isinstance(value, list):
        return f"`[{', '.join(map(str, value))}]`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
