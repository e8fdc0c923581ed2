"""Change the state of a spec, its run, or a list such as `retired`, in its text.

Only whole lines of these fields change. A file that cannot be changed like this is refused: see
`set_state_fields`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gangplan.source import ManifestError, load_objects

# A top-level field with the lines that belong to it: indented lines and the items of a list.
_FIELD = r"^{}[ \t]*:.*(?:\n(?:[ \t]+\S.*|-[ \t].*))*\n?"


def set_state_fields(text: str, state: str | None, retired: Sequence[str]) -> str | None:
    """Return the text of a spec with this `state` (None: unchanged) and these runs in `retired`.

    Return None if the result would not contain exactly that with everything else unchanged, as in a file that
    is one flow mapping.
    """
    before = _load_spec_mapping(text)
    if before is None:
        return None
    wanted = {name: value for name, value in before.items() if name != "retired"}
    changed = text
    if list(before.get("retired") or ()) != list(retired):
        line = f"retired: [{', '.join(retired)}]\n" if retired else ""
        changed = _replace_spec_field_lines(changed, "retired", line)
    if state is not None and before.get("state", "active") != state:
        changed = _replace_spec_field_lines(changed, "state", f"state: {state}\n")
        wanted["state"] = state
    if retired:
        wanted["retired"] = list(retired)
    return changed if _load_spec_mapping(changed) == wanted else None


def set_run_number(text: str, number: int) -> str | None:
    """Return the text of a spec with this `run`; None as in `set_state_fields`."""
    before = _load_spec_mapping(text)
    if before is None:
        return None
    changed = _replace_spec_field_lines(text, "run", f"run: {number}\n")
    return changed if _load_spec_mapping(changed) == {**before, "run": number} else None


def set_sweep_lists(text: str, lists: Mapping[str, Sequence[str]]) -> str | None:
    """Return the text of a sweep with these names in its lists; None as in `set_state_fields`."""
    before = _load_spec_mapping(text)
    if before is None:
        return None
    wanted, changed = dict(before), text
    for name, names in lists.items():
        if list(before.get(name) or ()) != list(names):
            changed = _replace_spec_field_lines(
                changed, name, f"{name}: [{', '.join(names)}]\n" if names else ""
            )
            wanted.pop(name, None)
            if names:
                wanted[name] = list(names)
    return changed if _load_spec_mapping(changed) == wanted else None


def _replace_spec_field_lines(text: str, name: str, line: str) -> str:
    pattern = re.compile(_FIELD.format(name), re.MULTILINE)
    if pattern.search(text):
        return pattern.sub(lambda _: line, text, count=1)
    if not line:
        return text
    return text + line if text.endswith("\n") else f"{text}\n{line}"


def _load_spec_mapping(text: str) -> Mapping[str, Any] | None:
    try:
        documents = list(load_objects(text))
    except ManifestError:
        return None
    return documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None
