"""Values of policies' parameters: the text, numbers, booleans and lists that a ConfigMap can contain."""

from __future__ import annotations

import math
from typing import Annotated, Any

from gangplan.spec.base import Hints, ReadBy, helpful


def param(value: Any) -> Any:
    """Return the value itself if it is valid. Raises an error of `helpful` for other values."""
    if isinstance(value, tuple):
        for index, one in enumerate(value):
            if not isinstance(one, str):
                message = f"word {index + 1} of the list is not a string"
                hints = Hints(word=index, is_whole=True)
                raise helpful("param", message, f'Quote it: "{_word(one)}".', hints)
        return value
    if isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise helpful(
        "param",
        "expected a string, a number, true, false or a list of strings",
        "For example 24, true, prod or [a, b].",
    )


def _word(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
    ]
}
# A parameter of a policy: text, a number, a boolean, or a list of texts.
PolicyParam = Annotated[str | int | float | bool | tuple[str, ...], ReadBy(param, SCHEMA)]
