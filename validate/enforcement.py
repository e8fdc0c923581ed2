"""Changes from one state of a cluster to the next in what the API server refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gangplan.findings import FieldPath
from gangplan.objects import BINDING_KIND, POLICY_KIND, Body
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICY_ENFORCED
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import ObjectKey

_STRENGTH = ("", "Audit", "Warn", "Deny")
_PREFIX = "gangplan-"
# What the API server did until now, and what it does from now on, by the action of the binding.
_WAS = {"": "did not look at", "Audit": "only audited", "Warn": "only warned of", "Deny": "refused"}
_IS = {"": "no longer looks at", "Audit": "only audits", "Warn": "only warns of", "Deny": "refuses"}
_SHOWN = 4


def compare_policies_between_commits(
    old: Mapping[ObjectKey, Body], new: Mapping[ObjectKey, Body]
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield policies whose action changes, and policies that judge differently.

    Policies whose action changes in the same way are grouped; each group comes with the key of a binding.
    """
    before, after = _find_strongest_actions_of_policies(old), _find_strongest_actions_of_policies(new)
    moves: dict[tuple[str, str], list[str]] = {}
    for name in sorted({*before, *after}):
        was, now = before.get(name, ("", None))[0], after.get(name, ("", None))[0]
        if was != now:
            moves.setdefault((was, now), []).append(name)
    for (was, now), names in sorted(moves.items()):
        key = after.get(names[0], before.get(names[0], ("", None)))[1]
        if key is not None:
            yield key, _describe_enforcement_change(was, now, names)
    with_params = [key for key, body in old.items() if _has_params(key, body)]
    if with_params and not any(_has_params(key, body) for key, body in new.items()):
        yield with_params[0], _describe_last_params_removal()
    yield from _find_policies_changed_between_commits(old, new)


def _find_strongest_actions_of_policies(bodies: Mapping[ObjectKey, Body]) -> dict[str, tuple[str, ObjectKey]]:
    """Return the strongest action of each policy, and a binding that has it."""
    found: dict[str, tuple[str, ObjectKey]] = {}
    for key, body in bodies.items():
        spec = body.get("spec")
        if key[0] != BINDING_KIND or not isinstance(spec, dict):
            continue
        actions = [one for one in spec.get("validationActions") or () if one in _STRENGTH]
        strongest = max(actions, key=_STRENGTH.index, default="")
        name = str(spec.get("policyName"))
        if name not in found or _STRENGTH.index(found[name][0]) < _STRENGTH.index(strongest):
            found[name] = strongest, key
    return found


def _has_params(key: ObjectKey, body: Body) -> bool:
    return key[0] == POLICY_KIND and bool((body.get("spec") or {}).get("paramKind"))


def _describe_last_params_removal() -> Problem:
    """Report that the last policy with parameters is removed.

    Found in the lab, with Kubernetes 1.34: tests/e2e/policies/server.py.
    """
    message = (
        "the last policy with parameters leaves the cluster: an API server of Kubernetes 1.34 then stops"
        " watching parameters, and policies that come back later refuse everything until it is restarted"
    )
    help = "Write enforcement: Audit and keep the packs."
    return Problem((), message, help, POLICY_ENFORCED)


def _describe_enforcement_change(was: str, now: str, names: list[str]) -> Problem:
    what = f"what breaks {_format_policy_names(names)}"
    message = f"the API server {_IS[now]} {what}, which it {_WAS[was]} until now"
    if now == "Deny":
        help = "Validate shows which runs in Git it would refuse; write enforcement: Audit to look first."
    elif not now:
        help = "Unless that is meant, list their packs again: validate no longer judges by them, either."
    elif was == "Deny":
        help = "Nothing needs to be done if that is meant; validate goes on as the packs say."
    else:
        help = "Nothing needs to be done."
    level = Severity.WARNING if "Deny" in (was, now) else Severity.NOTE
    return Problem(("spec", "validationActions"), message, help, POLICY_ENFORCED, level=level)


def _build_enforcement_note(path: FieldPath, said: str) -> Problem:
    return Problem(path, said, "Nothing needs to be done.", POLICY_ENFORCED, level=Severity.NOTE)


def _format_policy_names(names: Iterable[str]) -> str:
    """List policies without gangplan's prefix; of many only the first ones, and how many more there are."""
    known = [name.removeprefix(_PREFIX) for name in names]
    rest = len(known) - _SHOWN
    if rest > 1:
        return f"{', '.join(known[:_SHOWN])} and {rest} more policies"
    one = len(known) == 1
    return (
        f"{'policy' if one else 'policies'} {', '.join(known[:-1]) + ' and ' if not one else ''}{known[-1]}"
    )


def _find_policies_changed_between_commits(
    old: Mapping[ObjectKey, Body], new: Mapping[ObjectKey, Body]
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield policies that stay in force and judge differently: by other expressions or other parameters."""
    kept = [(key, old[key], body) for key, body in new.items() if key in old]
    changed = [
        (key, was, now) for key, was, now in kept if key[0] == POLICY_KIND and was["spec"] != now["spec"]
    ]
    if changed:
        verb = "judges" if len(changed) == 1 else "judge"
        said = (
            f"{_format_policy_names(key[2] for key, _, _ in changed)} {verb} by other expressions from now on"
        )
        yield changed[0][0], _build_enforcement_note(("spec",), said)
    named = {_find_param_object_key(body) for key, body in new.items() if key[0] == BINDING_KIND}
    for key, was, now in kept:
        if key in named and was.get("data") != now.get("data"):
            names = _list_changed_parameters(was.get("data") or {}, now.get("data") or {})
            said = f"parameters of {_format_policy_names([key[2]])} change: {', '.join(names)}"
            yield key, _build_enforcement_note(("data",), said)


def _find_param_object_key(binding: Body) -> ObjectKey:
    ref = (binding.get("spec") or {}).get("paramRef") or {}
    return "ConfigMap", str(ref.get("namespace")), str(ref.get("name"))


def _list_changed_parameters(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return each changed parameter with both values; only its name if a value is long or empty."""
    found = []
    for name in sorted({*was, *now}):
        before, after = was.get(name, ""), now.get(name, "")
        if before != after:
            is_short = max(len(before), len(after)) <= 24 and before and after
            found.append(f"{name} from {before} to {after}" if is_short else name)
    return found
