"""`format` in the schemas of CRDs: which ones a server checks, and what a valid text is.

Source: kube-openapi pkg/validation/strfmt and its govalidator, apiextensions-apiserver v0.34,
pkg/apiserver/validation/formats.go. Names are compared without dashes. Only common forms of email addresses
are accepted: Go's net/mail also accepts comments and folded lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from ipaddress import AddressValueError, IPv6Address

from gangplan.cel.library.formats import NAMED_FORMATS
from gangplan.re2 import compile_search

_UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}$"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]"
    r"{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_CARD = (
    "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$"
)
_TONE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_ATOM = r"[^\s()<>\[\]:;@\\,.\"]+"
_ADDRESS = rf'({_ATOM}(\.{_ATOM})*|"[^"\\]*")@({_ATOM}(\.{_ATOM})*|\[[^\]\\]*\])'
_UNITS = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
# A number before a unit, as Scala writes durations; the long units may have an ending (`seconds`).
_SCALA = re.compile(
    r"[0-9]+\s*(ns|us|ms|s|m|h|d|w|hr|wk|µs)(?![A-Za-zµ])|[0-9]+\s*(nano|micro|milli|sec|min|hour|day|week)",
    re.IGNORECASE,
)


def _matches_go_pattern(pattern: str, text: str) -> bool:
    return compile_search(pattern)(text) is not None


def _count_utf8_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _is_hostname(text: str) -> bool:
    return (
        _matches_go_pattern(_HOSTNAME, text)
        and _count_utf8_bytes(text) <= 255
        and all(map(_is_short, text.split(".")))
    )


def _is_short(label: str) -> bool:
    return _count_utf8_bytes(label) <= 63


def _is_dotted_quad(text: str) -> bool:
    """Return whether a text is four numbers with dots; leading zeros are accepted, as in Go before 1.17."""
    parts = text.split(".")
    return len(parts) == 4 and all(
        re.fullmatch("[0-9]{1,20}", part) is not None and int(part) <= 255 for part in parts
    )


def _is_ipv6_address(text: str) -> bool:
    try:
        return "%" not in text and bool(IPv6Address(text))
    except AddressValueError:
        return False


def _is_ipv4_address(text: str) -> bool:
    return "." in text and (_is_dotted_quad(text) or _is_ipv6_address(text))


def _is_cidr_range(text: str) -> bool:
    address, slash, size = text.partition("/")
    most = 32 if _is_dotted_quad(address) else 128 if _is_ipv6_address(address) else -1
    return bool(slash) and re.fullmatch("[0-9]{1,20}", size) is not None and int(size) <= most


def _is_mac_address(text: str) -> bool:
    pair, four = "[0-9a-fA-F]{2}", "[0-9a-fA-F]{4}"
    return any(
        re.fullmatch(rf"{pair}(:{pair}){{{count - 1}}}|{pair}(-{pair}){{{count - 1}}}", text)
        or re.fullmatch(rf"{four}(\.{four}){{{count // 2 - 1}}}", text)
        for count in (6, 8, 20)
    )


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch("[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((at + 1) * (10 if one == "X" else int(one)) for at, one in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text)
    if re.fullmatch("[0-9]{13}", digits) is None:
        return False
    return sum((1, 3)[at % 2] * int(one) for at, one in enumerate(digits)) % 10 == 0


def _is_credit_card_number(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    doubled = [int(one) * (1 + at % 2) for at, one in enumerate(reversed(digits))]
    return _matches_go_pattern(_CARD, digits) and sum(one // 10 + one % 10 for one in doubled) % 10 == 0


def _is_email_address(text: str) -> bool:
    return re.fullmatch(rf"\s*({_ADDRESS}|[^<>@,;:]*<{_ADDRESS}>)\s*", text) is not None


def _is_duration_text(text: str) -> bool:
    return re.fullmatch(rf"[-+]?(0|({_UNITS})+)", text) is not None or _SCALA.search(text) is not None


def _matches_cel_format(name: str, text: str) -> bool:
    """Return what CEL's `format.<name>()` does; the API server uses the same functions for both."""
    return not NAMED_FORMATS[name].problems(text)


def _matches_name_pattern(pattern: str, most: int, text: str) -> bool:
    return _count_utf8_bytes(text) <= most and re.fullmatch(pattern, text) is not None


# name -> (words, check)
CRD_FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "bsonobjectid": ("24 hexadecimal digits", partial(_matches_go_pattern, "^[0-9a-fA-F]{24}$")),
    "byte": ("base64", partial(_matches_cel_format, "byte")),
    "cidr": ("an address range such as 10.0.0.0/8", _is_cidr_range),
    "creditcard": ("a number of a credit card", _is_credit_card_number),
    "date": ("a date such as 2006-01-02", partial(_matches_cel_format, "date")),
    "datetime": ("a time such as 2006-01-02T15:04:05Z", partial(_matches_cel_format, "datetime")),
    "duration": ("a duration such as 30s, 5m, 1h30m", _is_duration_text),
    "email": ("an email address", _is_email_address),
    "hexcolor": (
        "a color such as #00ff00",
        partial(_matches_go_pattern, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
    ),
    "hostname": ("a host name", _is_hostname),
    "ipv4": ("an IPv4 address", _is_ipv4_address),
    "ipv6": ("an IPv6 address", lambda text: ":" in text and _is_ipv6_address(text)),
    "isbn": ("an ISBN", lambda text: _is_isbn10(text) or _is_isbn13(text)),
    "isbn10": ("an ISBN of 10 digits", _is_isbn10),
    "isbn13": ("an ISBN of 13 digits", _is_isbn13),
    "k8slongname": ("names joined by dots", partial(_matches_name_pattern, rf"{_LABEL}(\.{_LABEL})*", 253)),
    "k8sshortname": (
        "a name of lower case letters, digits and '-'",
        partial(_matches_name_pattern, _LABEL, 63),
    ),
    "mac": ("a hardware address such as 00:00:5e:00:53:01", _is_mac_address),
    "password": ("a text", lambda text: True),
    "rgbcolor": (
        "a color such as rgb(0,255,0)",
        partial(_matches_go_pattern, rf"^rgb\(\s*{_TONE}\s*,\s*{_TONE}\s*,\s*{_TONE}\s*\)$"),
    ),
    "ssn": ("a social security number", lambda text: _matches_go_pattern(r"^\d{3}[- ]\d{2}[- ]\d{4}$", text)),
    "uri": ("a URL, or a path that begins with /", partial(_matches_cel_format, "uri")),
    "uuid": ("a UUID", partial(_matches_cel_format, "uuid")),
    "uuid3": ("a UUID of version 3", partial(_matches_go_pattern, _UUID % ("3", "[0-9a-f]"))),
    "uuid4": ("a UUID of version 4", partial(_matches_go_pattern, _UUID % ("4", "[89ab]"))),
    "uuid5": ("a UUID of version 5", partial(_matches_go_pattern, _UUID % ("5", "[89ab]"))),
}
# They came in 1.34, and a server checks the formats of the minor before its own.
_SINCE = {"k8slongname": 35, "k8sshortname": 35}


def find_format_name(format: str, minor: int) -> str | None:
    """Return the name under which Kubernetes 1.`minor` checks a format, or None if it ignores it."""
    name = format.replace("-", "")
    return name if name in CRD_FORMATS and minor >= _SINCE.get(name, 0) else None
