"""`kubernetes.Semver`: semantic versions 2.0 (k8s.io/apiserver v0.34 `semverlib.go`, blang/semver v4)."""

from __future__ import annotations

import string
from typing import ClassVar

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import B, Implementation, S
from gangplan.cel.numbers import INT_MAX, UINT_MAX, quote_as_go
from gangplan.cel.types import Type
from gangplan.cel.values import Opaque
from gangplan.records import dataclass

_DIGITS = frozenset(string.digits)
_LETTERS = frozenset(string.ascii_letters + string.digits + "-")
_SHORT = "short version cannot contain PreRelease/Build meta data"


@dataclass(frozen=True, slots=True)
class SemverValue(Opaque):
    """A version; identifiers of a pre-release are numbers if they look like numbers. Builds are ignored."""

    cel_type: ClassVar[Type] = types.SEMVER
    numbers: tuple[int, int, int]
    pre: tuple[int | str, ...]

    def compare(self, other: SemverValue) -> int:
        """Return -1, 0 or 1 by the precedence of semver.org."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if not self.pre or not other.pre:
            return bool(other.pre) - bool(self.pre)
        mine, others = (
            tuple(map(_rank_prerelease_identifier, self.pre)),
            tuple(map(_rank_prerelease_identifier, other.pre)),
        )
        return (mine > others) - (mine < others)

    def same(self, other: Opaque) -> bool:
        """Return whether versions have equal precedence."""
        return isinstance(other, SemverValue) and self.compare(other) == 0


def _rank_prerelease_identifier(identifier: int | str) -> tuple[int, int, bytes]:
    if isinstance(identifier, int):
        return 0, identifier, b""
    return 1, 0, identifier.encode()


def parse(text: str) -> SemverValue:
    """Evaluate `semver(text)`. Raises `EvalError`."""
    if not text:
        raise EvalError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvalError("No Major.Minor.Patch elements found")
    patch, _, build = parts[2].partition("+")
    builds = build.split(".") if "+" in parts[2] else []
    patch, dash, before = patch.partition("-")
    numbers = (
        _parse_semver_number(parts[0], "major"),
        _parse_semver_number(parts[1], "minor"),
        _parse_semver_number(patch, "patch"),
    )
    pre = tuple(map(_parse_cel_semver_identifier, before.split("."))) if dash else ()
    for part in builds:
        if not part:
            raise EvalError("Build meta data is empty")
        if not set(part) <= _LETTERS:
            raise EvalError(f"Invalid character(s) found in build meta data {quote_as_go(part)}")
    return SemverValue(numbers, pre)


def _parse_semver_number(text: str, name: str) -> int:
    if not set(text) <= _DIGITS:
        raise EvalError(f"Invalid character(s) found in {name} number {quote_as_go(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvalError(f"{name.capitalize()} number must not contain leading zeroes {quote_as_go(text)}")
    return _parse_semver_uint64(text)


def _parse_semver_uint64(text: str) -> int:
    if not text:
        raise EvalError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise EvalError(f"strconv.ParseUint: parsing {quote_as_go(text)}: value out of range")
    return int(text)


def _parse_cel_semver_identifier(text: str) -> int | str:
    if not text:
        raise EvalError("Prerelease is empty")
    if set(text) <= _DIGITS:
        if len(text) > 1 and text[0] == "0":
            raise EvalError(f"Numeric PreRelease version must not contain leading zeroes {quote_as_go(text)}")
        return _parse_semver_uint64(text)
    if not set(text) <= _LETTERS:
        raise EvalError(f"Invalid character(s) found in prerelease {quote_as_go(text)}")
    return text


def parse_cel_semver(text: str, normalize: bool) -> SemverValue:
    """Evaluate `semver(text, normalize)`: drop a leading v and leading zeros, and set missing parts to 0."""
    if not normalize:
        return parse(text)
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        # Go counts bytes.
        if len(part.encode()) > 1:
            part = part.lstrip("0")
            parts[index] = part if part and part[0] in _DIGITS else "0" + part
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise EvalError(_SHORT)
        parts += ["0"] * (3 - len(parts))
    return parse(".".join(parts))


def _wrap_to_int64(number: int) -> int:
    """Return a part as the API server's int64 holds it: from 2^63 on it wraps around."""
    return number - 2**64 if number > INT_MAX else number


def is_semver(text: str, normalize: bool = False) -> bool:
    """Evaluate `isSemver(text, normalize)`."""
    try:
        parse_cel_semver(text, normalize)
    except EvalError:
        return False
    return True


_V = types.SEMVER
TABLE = (
    Implementation("string_to_semver", "semver", (S,), parse),
    Implementation("string_bool_to_semver", "semver", (S, B), parse_cel_semver),
    Implementation("is_semver_string", "isSemver", (S,), is_semver),
    Implementation("is_semver_string_bool", "isSemver", (S, B), is_semver),
    Implementation(
        "semver_is_greater_than", "isGreaterThan", (_V, _V), lambda one, other: one.compare(other) > 0
    ),
    Implementation("semver_is_less_than", "isLessThan", (_V, _V), lambda one, other: one.compare(other) < 0),
    Implementation("semver_compare_to", "compareTo", (_V, _V), SemverValue.compare),
    Implementation("semver_major", "major", (_V,), lambda version: _wrap_to_int64(version.numbers[0])),
    Implementation("semver_minor", "minor", (_V,), lambda version: _wrap_to_int64(version.numbers[1])),
    Implementation("semver_patch", "patch", (_V,), lambda version: _wrap_to_int64(version.numbers[2])),
)
