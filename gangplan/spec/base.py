"""The strict base model and the field types that all file formats share."""

import contextlib
import posixpath
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from gangplan.interrupts import delay_interrupts
from gangplan.model.duration import DurationError, parse_duration_to_seconds
from gangplan.model.profiles import LEAST_GRACE_S, MOST_GRACE_S
from gangplan.model.quantity import (
    Quantity,
    QuantityError,
    format_bytes,
    parse_cpu,
    parse_memory_quantity,
    parse_quantity,
)
from gangplan.model.units import AmountError
from gangplan.spec.words import DNS_LABEL, LABEL_KEY

GANGPLAN_API_VERSION = "gangplan.dev/v1"
ApiVersion = Literal["gangplan.dev/v1"]

ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Strict(BaseModel):
    """The base of all models. Unknown keys and wrong types are errors; values are never coerced or
    changed."""

    model_config = ConfigDict(
        # Both are about the start of each command: pydantic compiles what is used, and compares no names.
        defer_build=True,
        protected_namespaces=(),
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        use_attribute_docstrings=False,
    )

    @classmethod
    def model_rebuild(cls, *, _parent_namespace_depth: int = 2, **named: Any) -> bool | None:
        """Build what pydantic deferred, without interrupts.

        pydantic-core prints an interrupt that arrives while it copies a pattern, drops it, and goes on with a
        wrong pattern (2.50: `to_string` of the pattern calls PyObject_Str, which checks for signals).
        """
        with delay_interrupts():
            return super().model_rebuild(_parent_namespace_depth=_parent_namespace_depth + 1, **named)


class Hints(NamedTuple):
    """What code can know about an error from `build_helpful_error`.

    `word` is the index of the wrong entry of a list; `is_whole`: the message names the field itself;
    `proposed` are the amounts that the help proposes, in words, and `meant` the only possible one; `writes`
    is the field that the help rewrites as a whole.
    """

    word: int | None = None
    is_whole: bool = False
    proposed: str = ""
    meant: str = ""
    writes: str = ""


NO_HINTS = Hints()


def build_helpful_error(
    kind: str, message: str, help: str = "", hints: Hints = NO_HINTS
) -> PydanticCustomError:
    """Return an error that `spec.load` prints unchanged, with its help line."""
    return PydanticCustomError(kind, "{message}", {"message": message, "help": help, "hints": hints})


def unreadable(kind: str, error: AmountError) -> PydanticCustomError:
    """Return the error of `build_helpful_error` for a text that is not an amount."""
    return build_helpful_error(
        kind, error.message, error.help, Hints(proposed=error.proposed, meant=error.meant)
    )


# In characters; shorter reasons do not explain anything.
SHORTEST_REASON = 10


def is_blank(text: str) -> bool:
    """Return whether a reader would see nothing: the text has only blanks and characters without width."""
    return not any(unicodedata.category(letter)[0] not in "CZ" for letter in text)


def parse_spec_reason(text: str, say: str) -> str:
    """Return the text itself. Raises an error of `build_helpful_error` if it is too short to be a reason; `say` is the
    help."""
    if is_blank(text) or len(text.strip()) < SHORTEST_REASON:
        raise build_helpful_error(
            "reason", f"'{text}' is not a reason: it has fewer than {SHORTEST_REASON} characters", say
        )
    return text


class ReadBy:
    """How a field is read, its JSON schema, and how it is written (default: unchanged).

    `read` returns the value or raises an error of `build_helpful_error`. pydantic's PlainValidator and its companions
    would also work, but they inspect the type of the value although it is not used, which would slow down
    every start.
    """

    __slots__ = ("_schema", "read", "write")

    def __init__(
        self,
        read: Callable[[Any], Any],
        schema: dict[str, Any],
        write: Callable[[Any], str] | None = None,
    ) -> None:
        self.read, self._schema, self.write = read, schema, write

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        writing = self.write and core_schema.plain_serializer_function_ser_schema(
            self.write, return_schema=core_schema.str_schema()
        )
        return core_schema.no_info_plain_validator_function(self.read, serialization=writing)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return dict(self._schema)


def _parse_cpu_in_spec_field(value: Any) -> Quantity:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise build_helpful_error(
            "quantity", "expected a number of cores", "Write a number of cores, such as 8 or 500m."
        )
    try:
        return parse_cpu(value)
    except QuantityError as error:
        raise unreadable("quantity", error) from None


def _parse_memory_in_spec_field(value: Any) -> Quantity:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise build_helpful_error(
            "quantity", "expected an amount of memory", "Write a number and its unit, such as 32Gi."
        )
    try:
        amount = parse_memory_quantity(value)
    except QuantityError as error:
        raise unreadable("quantity", error) from None
    if amount < _LEAST_MEMORY:
        number = re.match(r"[0-9.]+", str(value))
        proposals = [(f"{number[0]}{unit}", "") for unit in ("Mi", "Gi")] if number else []
        message = f"{value!r} is {format_bytes(amount)}, too little for any program"
        raise unreadable("quantity", QuantityError(message, "Write it as 32Gi.", proposals))
    return amount


# No container starts with less: the runtimes of Kubernetes need several MiB (CRI-O 1.34, 12 MiB).
_LEAST_MEMORY = parse_memory_quantity("1Mi")


def _parse_kueue_weight_field(value: Any) -> Quantity:
    # Kueue refuses a weight between 0 and 1e-9 (clusterqueue_webhook.go, v0.19.2).
    help = "Write a number from 0 to 1000000, such as 32 or 0.75."
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1_000_000:
        raise build_helpful_error("quantity", "expected a weight", help)
    weight = parse_quantity(str(value))
    if weight.nano % 1_000_000:
        raise build_helpful_error("quantity", f"weight {value} has more than three decimal places", help)
    return weight


def _parse_factor_in_spec_field(value: Any) -> Quantity:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise build_helpful_error(
            "quantity", "expected an amount per unit", "Write a number, such as 10, 0.5 or 5Ki."
        )
    try:
        factor = parse_quantity(str(value))
    except QuantityError as error:
        raise unreadable("quantity", error) from None
    if factor.nano < 0:
        raise build_helpful_error("quantity", f"{value} is less than nothing", "Write 0 or more.")
    return factor


def parse_spec_price(value: Any, what: str, help: str, most: int = 1_000_000) -> Decimal:
    """Parse a number from 0 to `most` with at most nine decimal places.

    Raises an error of `build_helpful_error`, which says that `what` was expected.
    """
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        raise build_helpful_error("price", f"expected {what}", help)
    try:
        price = Decimal(str(value))
    except InvalidOperation:
        raise build_helpful_error("price", f"'{value}' is not {what}", help) from None
    if not (price.is_finite() and 0 <= price <= most):
        raise build_helpful_error("price", f"'{value}' is not {what}", help)
    if price != price.quantize(_NANO):
        raise build_helpful_error("price", f"'{value}' has more than nine decimal places", help)
    return price


_NANO = Decimal("1E-9")


def _parse_price_field(value: Any) -> Decimal:
    return parse_spec_price(value, "a price", "Write an amount of money such as 1.5625, without a currency.")


def _parse_duration_field(value: Any, span: tuple[int, int] | None = None) -> int:
    if not isinstance(value, (str, int)) or isinstance(value, bool):
        raise build_helpful_error("duration", "expected a time", "Write it as 30m, 24h, 7d or 1h30m.")
    try:
        return parse_duration_to_seconds(value, span)
    except DurationError as error:
        raise unreadable("duration", error) from None


def parse_spec_mount_path(path: str) -> str:
    """Return a normalised absolute path inside a container. Raises an error of `build_helpful_error` for other texts."""
    if found := re.search(r"\$\w+|\$[{(][^})]*[})]?|^/?~|^[a-z0-9]+://", path):
        said = (
            "is an address, not a path"
            if "://" in found[0]
            else f"has {found[0]}, which nothing expands here"
        )
        help = "Write where it is in the container, such as /data."
        raise build_helpful_error("path", f"'{path}' {said}", help)
    if not path.startswith("/"):
        raise build_helpful_error("path", f"'{path}' is not an absolute path", f"Write '/{path}'.")
    parts = path.split("/")
    if ".." in parts or "." in parts or "" in parts[1:] or path == "/":
        raise build_helpful_error(
            "path",
            f"'{path}' is not a plain absolute path",
            f"Write '{posixpath.normpath(path)}'." if path.strip("/") else "Name a folder, such as /data.",
        )
    if wrong := next((char for char in path if ord(char) < 32 or char == ":"), ""):
        raise build_helpful_error(
            "path",
            f"{path!r} has {wrong!r}, which a mount path cannot have",
            f"Write {path.partition(':')[0]}." if wrong == ":" else "Use letters, digits, '-', '_' and '.'.",
        )
    return path


_CPU = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+|m)?$"},
    ]
}
_MEMORY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$"}
_DURATION = {"type": "string", "pattern": r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"}
_WEIGHT = {"type": "number", "minimum": 0, "maximum": 1_000_000}

Cpu = Annotated[Quantity, ReadBy(_parse_cpu_in_spec_field, _CPU, Quantity.canonical)]
Memory = Annotated[Quantity, ReadBy(_parse_memory_in_spec_field, _MEMORY, Quantity.canonical)]
DurationSeconds = Annotated[int, ReadBy(_parse_duration_field, _DURATION)]
GraceSeconds = Annotated[
    int, ReadBy(partial(_parse_duration_field, span=(LEAST_GRACE_S, MOST_GRACE_S)), _DURATION)
]
Weight = Annotated[Quantity, ReadBy(_parse_kueue_weight_field, _WEIGHT, Quantity.canonical)]
Factor = Annotated[
    Quantity, ReadBy(_parse_factor_in_spec_field, {"type": ["number", "string"]}, Quantity.canonical)
]
Price = Annotated[Decimal, ReadBy(_parse_price_field, {"type": ["number", "string"]})]
Name = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
SecretName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
EnvName = Annotated[str, Field(pattern=ENV_NAME, max_length=253)]
MountPath = Annotated[str, AfterValidator(parse_spec_mount_path)]
# A text that may be written as a number or a boolean; its spelling in the file is kept (spec.load).
ScalarText = Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]
LabelKey = Annotated[
    str,
    Field(
        pattern=LABEL_KEY,
        max_length=316,
    ),
]
LabelValue = Annotated[
    str,
    Field(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63),
    WithJsonSchema({"type": ["string", "number", "boolean"], "maxLength": 63}),
]
Cidr = Annotated[str, AfterValidator(lambda text: _validate_cidr_range_field(text))]


def _validate_cidr_range_field(text: str) -> str:
    import ipaddress  # only imported when a cluster file lists addresses

    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        said, help = f"'{text}' is not an address range: {error}", "Write it as 10.20.0.0/16."
    with contextlib.suppress(ValueError):  # a host in a network, with its mask
        help = f"Write {ipaddress.ip_network(text, strict=False)}."
    if re.search(r"[A-Za-z]", text) and ":" not in text.partition("//")[2] + text.partition("://")[0]:
        said = f"'{text}' is a name, and a NetworkPolicy knows no host names"
        help = "Write the addresses behind it, such as 10.20.0.0/16."
    raise build_helpful_error("cidr", said, help)


def _validate_iso_date_field(text: str) -> str:
    import datetime  # only imported if a file has a day

    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise build_helpful_error("day", f"'{text}' is not a valid date", "Write it as 2026-12-31.") from None
    return text


Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(_validate_iso_date_field)]
