"""Values of policies' parameters: the text, numbers, booleans and lists that a ConfigMap can contain."""

from __future__ import annotations

import math
from typing import Annotated, Any

from gangplan.spec.base import Hints, ReadBy, build_helpful_error


def parse_param(value: Any) -> Any:
    """Return the value itself if it is valid. Raises an error of `build_helpful_error` for other values."""
    if isinstance(value, tuple):
        for index, one in enumerate(value):
            if not isinstance(one, str):
                message = f"word {index + 1} of the list is not a string"
                hints = Hints(word=index, is_whole=True)
                raise build_helpful_error(
                    "param", message, f'Quote it: "{_format_parameter_text(one)}".', hints
                )
        return value
    if isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise build_helpful_error(
        "param",
        "expected a string, a number, true, false or a list of strings",
        "For example 24, true, prod or [a, b].",
    )


def _format_parameter_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


PARAM_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
    ]
}
# A parameter of a policy: text, a number, a boolean, or a list of texts.
PolicyParam = Annotated[str | int | float | bool | tuple[str, ...], ReadBy(parse_param, PARAM_SCHEMA)]
