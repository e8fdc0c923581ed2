"""Changes from one state of a cluster to the next in what the API server refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gangplan.objects import BINDING, POLICY
from gangplan.rules.model import Severity
from gangplan.rules.policy import POLICY_ENFORCED
from gangplan.validate.apiserver.forms import Body, Path
from gangplan.validate.problems import Problem
from gangplan.validate.run_hours import Key

_STRENGTH = ("", "Audit", "Warn", "Deny")
_PREFIX = "gangplan-"
# What the API server did until now, and what it does from now on, by the action of the binding.
_WAS = {"": "did not look at", "Audit": "only audited", "Warn": "only warned of", "Deny": "refused"}
_IS = {"": "no longer looks at", "Audit": "only audits", "Warn": "only warns of", "Deny": "refuses"}
_SHOWN = 4


def changes_of_policies(old: Mapping[Key, Body], new: Mapping[Key, Body]) -> Iterator[tuple[Key, Problem]]:
    """Yield policies whose action changes, and policies that judge differently.

    Policies whose action changes in the same way are grouped; each group comes with the key of a binding.
    """
    before, after = _actions(old), _actions(new)
    moves: dict[tuple[str, str], list[str]] = {}
    for name in sorted({*before, *after}):
        was, now = before.get(name, ("", None))[0], after.get(name, ("", None))[0]
        if was != now:
            moves.setdefault((was, now), []).append(name)
    for (was, now), names in sorted(moves.items()):
        key = after.get(names[0], before.get(names[0], ("", None)))[1]
        if key is not None:
            yield key, _moved(was, now, names)
    with_params = [key for key, body in old.items() if _has_params(key, body)]
    if with_params and not any(_has_params(key, body) for key, body in new.items()):
        yield with_params[0], _last()
    yield from _otherwise(old, new)


def _actions(bodies: Mapping[Key, Body]) -> dict[str, tuple[str, Key]]:
    """Return the strongest action of each policy, and a binding that has it."""
    found: dict[str, tuple[str, Key]] = {}
    for key, body in bodies.items():
        spec = body.get("spec")
        if key[0] != BINDING or not isinstance(spec, dict):
            continue
        actions = [one for one in spec.get("validationActions") or () if one in _STRENGTH]
        strongest = max(actions, key=_STRENGTH.index, default="")
        name = str(spec.get("policyName"))
        if name not in found or _STRENGTH.index(found[name][0]) < _STRENGTH.index(strongest):
            found[name] = strongest, key
    return found


def _has_params(key: Key, body: Body) -> bool:
    return key[0] == POLICY and bool((body.get("spec") or {}).get("paramKind"))


def _last() -> Problem:
    """Report that the last policy with parameters is removed.

    Found in the lab, with Kubernetes 1.34: tests/e2e/policies/server.py.
    """
    message = (
        "the last policy with parameters leaves the cluster: an API server of Kubernetes 1.34 then stops"
        " watching parameters, and policies that come back later refuse everything until it is restarted"
    )
    help = "Write enforcement: Audit and keep the packs."
    return Problem((), message, help, POLICY_ENFORCED)


def _moved(was: str, now: str, names: list[str]) -> Problem:
    what = f"what breaks {_listed(names)}"
    message = f"the API server {_IS[now]} {what}, which it {_WAS[was]} until now"
    if now == "Deny":
        help = "Validate shows which runs in Git it would refuse; write enforcement: Audit to look first."
    elif was == "Deny":
        help = "Nothing needs to be done if that is meant; validate goes on as the packs say."
    else:
        help = "Nothing needs to be done."
    level = Severity.WARNING if "Deny" in (was, now) else Severity.NOTE
    return Problem(("spec", "validationActions"), message, help, POLICY_ENFORCED, level=level)


def _note(path: Path, said: str) -> Problem:
    return Problem(path, said, "Nothing needs to be done.", POLICY_ENFORCED, level=Severity.NOTE)


def _listed(names: Iterable[str]) -> str:
    """List policies without gangplan's prefix; of many only the first ones, and how many more there are."""
    known = [name.removeprefix(_PREFIX) for name in names]
    rest = len(known) - _SHOWN
    if rest > 1:
        return f"{', '.join(known[:_SHOWN])} and {rest} more policies"
    one = len(known) == 1
    return (
        f"{'policy' if one else 'policies'} {', '.join(known[:-1]) + ' and ' if not one else ''}{known[-1]}"
    )


def _otherwise(old: Mapping[Key, Body], new: Mapping[Key, Body]) -> Iterator[tuple[Key, Problem]]:
    """Yield policies that stay in force and judge differently: by other expressions or other parameters."""
    kept = [(key, old[key], body) for key, body in new.items() if key in old]
    changed = [(key, was, now) for key, was, now in kept if key[0] == POLICY and was["spec"] != now["spec"]]
    if changed:
        verb = "judges" if len(changed) == 1 else "judge"
        said = f"{_listed(key[2] for key, _, _ in changed)} {verb} by other expressions from now on"
        yield changed[0][0], _note(("spec",), said)
    named = {_param_of(body) for key, body in new.items() if key[0] == BINDING}
    for key, was, now in kept:
        if key in named and was.get("data") != now.get("data"):
            names = _differing(was.get("data") or {}, now.get("data") or {})
            said = f"parameters of {_listed([key[2]])} change: {', '.join(names)}"
            yield key, _note(("data",), said)


def _param_of(binding: Body) -> Key:
    ref = (binding.get("spec") or {}).get("paramRef") or {}
    return "ConfigMap", str(ref.get("namespace")), str(ref.get("name"))


def _differing(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return each changed parameter with both values; only its name if a value is long or empty."""
    found = []
    for name in sorted({*was, *now}):
        before, after = was.get(name, ""), now.get(name, "")
        if before != after:
            is_short = max(len(before), len(after)) <= 24 and before and after
            found.append(f"{name} from {before} to {after}" if is_short else name)
    return found
