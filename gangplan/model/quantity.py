"""Kubernetes quantities: exact numbers, their parser and the canonical text of `resource.Quantity`.

The grammar, the rounding and the canonical text are those of k8s.io/apimachinery v0.34, with two differences.
Go always reads and writes the result of `canonical` unchanged, while its `String()` returns some texts as
they were written (`1.500`, `+1Gi`, `01Gi`), and some that it then changes (`4.8828125Ki` to 5000 to 5k).
Where Go caps (`8Ei`) or overflows (`10E`), a `QuantityError` is raised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import total_ordering

from gangplan.model.units import UNIT_SPELLINGS, UNIT_SUFFIXES, AmountError, AmountProposal
from gangplan.records import dataclass

_NANO = 10**9
# The largest number of whole units: `Value()` is an int64.
_MAXUNITS = 2**63 - 1
# More digits than any amount within that limit needs, and few enough to be cheap.
_MAX_DIGITS = 64

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ("", *_BINARY)

# Go's scanner also reads "+" and "-." as zero, which cannot be intended.
_QUANTITY = re.compile(
    r"([-+]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([numkMGTPE]|[KMGTPE]i)?|[eE]([-+]?[0-9]+))", re.ASCII
)
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+", re.ASCII)
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+", re.ASCII)
_LOOKS_LIKE = re.compile(r"([-+]?[0-9][0-9.,_]*)\s*([A-Za-z]*)", re.ASCII)


class QuantityFormat(StrEnum):
    """The family of suffixes that a quantity was written with; the canonical text keeps it."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class QuantityError(AmountError):
    """The text is not a quantity."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """An exact amount in billionths of a unit (a core, a byte, a GPU). Equality ignores the format."""

    nano: int
    format: QuantityFormat = QuantityFormat.DECIMAL_SI

    @classmethod
    def of(cls, units: int, format: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
        """Return a number of whole cores, bytes or devices."""
        return cls(units * _NANO, format)

    @property
    def bytes(self) -> int:
        """The amount as bytes, rounded up."""
        return self.value()

    def value(self) -> int:
        """Return whole units, rounded away from zero like Go's `Value()`."""
        return _divide_away_from_zero(self.nano, _NANO)

    def milli(self) -> int:
        """Return thousandths, rounded away from zero like Go's `MilliValue()`."""
        return _divide_away_from_zero(self.nano, _NANO // 1000)

    def canonical(self) -> str:
        """Return the text that Kubernetes stores: the largest suffix that needs no fraction."""
        if not self.nano:
            return "0"
        # Go writes amounts below 1Ki, and those that are not whole bytes, with decimal suffixes. We also do
        # so for amounts that are not a multiple of 1Ki: Go writes 5000 then, but reads that back as 5k.
        if (
            self.format is QuantityFormat.BINARY_SI
            and abs(self.nano) >= 1024 * _NANO
            and self.nano % _NANO == 0
        ):
            number, power = _divide_out_factor(self.nano // _NANO, 1024, len(_BINARY))
            if power:
                return f"{number}{_BINARY_SUFFIX[power]}"
        thousands = None if self.format is QuantityFormat.DECIMAL_EXPONENT else 9
        number, power = _divide_out_factor(self.nano, 1000, thousands)
        exponent = 3 * power - 9
        if self.format is QuantityFormat.DECIMAL_EXPONENT:
            return f"{number}e{exponent}" if exponent else str(number)
        return f"{number}{_DECIMAL_SUFFIX[exponent]}"

    def __str__(self) -> str:
        return self.canonical()

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum, in the format of the first operand that is not zero (like Go's `Add`)."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, times: int) -> Quantity:
        return Quantity(self.nano * times, self.format)

    __rmul__ = __mul__


ZERO = Quantity(0)


def parse_quantity(text: str) -> Quantity:
    """Parse a quantity as Kubernetes does; parts finer than a billionth round up. Raises `QuantityError`."""
    match = _match_quantity_text(text)
    if not match:
        raise _build_quantity_error(text)
    sign, number, suffix, exponent = match.groups()
    whole, _, fraction = number.partition(".")
    digits = int(whole + fraction)
    scaled, format = _scale_quantity_to_billionths(digits, len(fraction), suffix or "", exponent)
    if scaled > _MAXUNITS * _NANO:
        raise QuantityError(f"{text!r} is more than Kubernetes can count (2^63-1)", "Check the unit.")
    # Go writes a positive binary amount below one unit with decimal suffixes from then on.
    if format is QuantityFormat.BINARY_SI and 0 < scaled < _NANO:
        format = QuantityFormat.DECIMAL_SI
    return Quantity(-scaled if sign == "-" else scaled, format)


def _match_quantity_text(text: str) -> re.Match[str] | None:
    return _QUANTITY.fullmatch(text) if len(text) <= _MAX_DIGITS else None


_CPU_HELP = "Write a number of cores, such as 8 or 500m."
_MEMORY_HELP = "Write a number and its unit, such as 32Gi."


def parse_cpu(text: str | int | float) -> Quantity:
    """Parse a number of cores such as 8, 0.5, "8" or "500m". Raises `QuantityError`.

    An unquoted `0.5` arrives as a float; as in Kubernetes its decimal text counts, not its bits.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{text!r} is not a number of cores", _CPU_HELP)
    quantity = _parse_or_propose_quantity(str(text), ("", "m"), _CPU_HELP, _is_cpu)
    if quantity.format is QuantityFormat.BINARY_SI or str(text).endswith("i"):
        raise QuantityError(f"{text!r} is an amount of memory, not of cores", _CPU_HELP)
    if quantity.nano % (_NANO // 1000):
        raise QuantityError(f"{text!r} is finer than a thousandth of a core (1m)", _CPU_HELP)
    return _require_positive_quantity(quantity, text)


def parse_memory_quantity(text: str | int | float) -> Quantity:
    """Parse an amount of memory or disk with its unit, such as "32Gi". Raises `QuantityError`."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"{text!r} is not an amount of memory", _MEMORY_HELP)
    written = str(text).strip()
    is_number = len(written) <= _MAX_DIGITS and _NUMBER.fullmatch(written)
    if is_number and 0 < float(written) <= _MAXUNITS:
        raise QuantityError(f"{text!r} has no unit", _MEMORY_HELP, _propose_memory_quantities(written))
    suffixes = tuple(suffix for suffix in UNIT_SUFFIXES if suffix not in ("", "m"))
    quantity = _parse_or_propose_quantity(str(text), suffixes, _MEMORY_HELP, _is_memory)
    if quantity.nano % _NANO:
        raise QuantityError(f"{text!r} is not a whole number of bytes", _MEMORY_HELP)
    return _require_positive_quantity(quantity, text)


def _is_cpu(text: str) -> bool:
    """Return whether a text may be proposed as a number of cores."""
    quantity = parse_quantity(text) if _QUANTITY.fullmatch(text) else ZERO
    return quantity.nano > 0 and not quantity.nano % (_NANO // 1000) and not text.endswith("i")


def _is_memory(text: str) -> bool:
    """Return whether a text may be proposed as an amount of memory."""
    quantity = parse_quantity(text) if _QUANTITY.fullmatch(text) and not _NUMBER.fullmatch(text) else ZERO
    return quantity.nano > 0 and not quantity.nano % _NANO


def _parse_or_propose_quantity(
    text: str, suffixes: tuple[str, ...], otherwise: str, fits: Callable[[str], bool]
) -> Quantity:
    """Parse a quantity. For a text that is not one, propose only amounts with one of the suffixes for which
    `fits` is true."""
    try:
        return parse_quantity(text)
    except QuantityError as error:
        if _match_quantity_text(text):
            raise  # it is a quantity, but too large
        proposals = _propose_close_quantities(text.strip(), suffixes, fits) if error.proposed else ()
        raise QuantityError(error.message, otherwise, proposals) from None


def _require_positive_quantity(quantity: Quantity, text: str | int | float) -> Quantity:
    if quantity.nano <= 0:
        raise QuantityError(f"{text!r} is not more than zero", "Write an amount above zero.")
    return quantity


def _scale_quantity_to_billionths(
    digits: int, places: int, suffix: str, exponent: str | None
) -> tuple[int, QuantityFormat]:
    """Return billionths, rounded up, and the family of the suffix."""
    if suffix in _BINARY:
        return _divide_rounding_up(digits * _NANO << _BINARY[suffix], 10**places), QuantityFormat.BINARY_SI
    format = QuantityFormat.DECIMAL_SI if exponent is None else QuantityFormat.DECIMAL_EXPONENT
    power = (_DECIMAL[suffix] if exponent is None else int(exponent)) + 9 - places
    # Beyond these powers the amount is out of range, or rounds up to one billionth, regardless of its digits.
    power = max(-2 * _MAX_DIGITS, min(power, _MAX_DIGITS))
    return (digits * 10**power, format) if power >= 0 else (_divide_rounding_up(digits, 10**-power), format)


def _divide_rounding_up(amount: int, divisor: int) -> int:
    return -(-amount // divisor)


def _divide_away_from_zero(amount: int, divisor: int) -> int:
    return _divide_rounding_up(amount, divisor) if amount >= 0 else -_divide_rounding_up(-amount, divisor)


def _divide_out_factor(number: int, factor: int, most: int | None) -> tuple[int, int]:
    """Return `number` divided by the highest power of `factor` that divides it (at most `most`), and that
    power."""
    power = 0
    while power != most and number % factor == 0:
        number //= factor
        power += 1
    return number, power


def _build_quantity_error(text: str) -> QuantityError:
    if not text.strip():
        return QuantityError("the amount is empty", _GENERAL)
    if len(text) > _MAX_DIGITS:
        return QuantityError(f"{text[:20]!r}... is too long for an amount", _GENERAL)
    return QuantityError(f"{text!r} is not a valid amount", _GENERAL, _propose_close_quantities(text.strip()))


_GENERAL = "Write a number and its unit, such as 32Gi, 500m or 8."


def _propose_memory_quantities(number: str) -> list[AmountProposal]:
    """Return the plausible readings of an amount of memory without a unit: GiB, MiB (as Slurm reads it),
    bytes."""
    amount = float(number)
    if amount >= 1e8:
        exact = Quantity.of(int(amount), QuantityFormat.BINARY_SI)
        text = exact.canonical()
        return [(text, format_bytes(exact))] if _is_memory(text) else []
    units = ("Mi",) if amount >= 16_384 else ("Gi",) if amount < 1024 else ("Mi", "Gi")
    return [(number + unit, "") for unit in units if _is_memory(number + unit)]


def format_bytes(amount: Quantity) -> str:
    """Return an amount of bytes as people write it: `34 GiB`, `1.5 TiB`, `512 MiB`, with up to three
    decimals.

    Amounts from 1 GiB to 10 TiB are in GiB, so that they are easy to compare; amounts below 1 KiB are in
    bytes.
    """
    size = abs(amount.nano)
    power = (
        40 if size >= _NANO * 10 << 40 else 30 if size >= _NANO << 30 else 20 if size >= _NANO << 20 else 10
    )
    if size < _NANO << 10:
        return "1 byte" if amount.value() == 1 else f"{amount.value()} bytes"
    return f"{_format_quantity_as_short_decimal(amount.nano, _NANO << power)} {_BINARY_SUFFIX[power // 10]}B"


def _format_quantity_as_short_decimal(number: int, unit: int) -> str:
    """Return a number of units with up to three decimals, without trailing zeros."""
    thousandths, rest = divmod(abs(number) * 1000, unit)
    if rest and thousandths < 1:
        return "less than 0.001"
    thousandths += 2 * rest >= unit
    whole, behind = divmod(thousandths, 1000)
    text = f"{whole}.{behind:03}".rstrip("0").rstrip(".")
    return f"-{text}" if number < 0 else text


def _propose_close_quantities(
    text: str, among: tuple[str, ...] = UNIT_SUFFIXES, fits: Callable[[str], bool] | None = None
) -> Sequence[AmountProposal]:
    """Return the closest texts that are quantities."""
    match = _LOOKS_LIKE.fullmatch(text)
    if not match:
        return ()
    number, unit = match[1].replace("_", ""), match[2]
    # 1,024 and 1,000,000 separate thousands; 1,5 has a decimal comma.
    number = number.replace(",", "" if _THOUSANDS.fullmatch(number) else ".")
    suffixes = (unit,) if unit in _DECIMAL or unit in _BINARY else UNIT_SPELLINGS.get(unit.lower(), ())
    wanted = (suffix for suffix in suffixes if suffix in among)
    fits = fits or (lambda written: _QUANTITY.fullmatch(written) is not None)
    good = [number + suffix for suffix in wanted if fits(number + suffix)]
    if len(good) == 2:
        return (good[0], ""), (good[1], format_bytes(parse_quantity(good[1])))
    return [(one, "") for one in good[:1]]
