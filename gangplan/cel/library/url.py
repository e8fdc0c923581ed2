"""`kubernetes.URL` (k8s.io/apiserver v0.34 `pkg/cel/library/urls.go`)."""

from __future__ import annotations

from typing import ClassVar

from gangplan.cel import types
from gangplan.cel.errors import EvalError
from gangplan.cel.library.base import Implementation, S
from gangplan.cel.library.locators import (
    Locator,
    UrlError,
    escape_path,
    format_cel_url,
    parse_cel_url,
    parse_cel_url_query,
    parse_request_url,
    split_cel_url_host_and_port,
)
from gangplan.cel.numbers import quote_as_go
from gangplan.cel.types import Type
from gangplan.cel.values import Opaque
from gangplan.records import dataclass


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """A URL; two are equal if their normal forms are."""

    cel_type: ClassVar[Type] = types.URL
    locator: Locator

    def same(self, other: Opaque) -> bool:
        """Return whether both have the same normal form."""
        return isinstance(other, Url) and format_cel_url(self.locator) == format_cel_url(other.locator)


def parse(text: str) -> Url:
    """Evaluate `url(text)`: an absolute URL or path. Raises `EvalError`."""
    try:
        parse_request_url(text)
        return Url(parse_cel_url(text))
    except UrlError as problem:
        shown = f"parse {quote_as_go(text)}: {problem}"
        raise EvalError(f"URL parse error during conversion from string: {shown}") from problem


def find_cel_request_uri_problem(text: str) -> str:
    """Return what is wrong with a request URI; empty if nothing is."""
    try:
        parse_request_url(text)
    except UrlError as problem:
        return f"parse {quote_as_go(text)}: {problem}"
    return ""


def _decode_url_bytes(data: str) -> str:
    """Return bytes as the text that people see."""
    return data.encode("latin-1").decode(errors="replace")


def get_query(url: Url) -> dict[str, list[str]]:
    """Evaluate `url.getQuery()`."""
    return {
        _decode_url_bytes(key): [_decode_url_bytes(value) for value in values]
        for key, values in parse_cel_url_query(url.locator).items()
    }


_U = (types.URL,)
TABLE = (
    Implementation("string_to_url", "url", (S,), parse),
    Implementation("is_url_string", "isURL", (S,), lambda text: not find_cel_request_uri_problem(text)),
    Implementation("url_get_scheme", "getScheme", _U, lambda url: url.locator.scheme),
    Implementation("url_get_host", "getHost", _U, lambda url: _decode_url_bytes(url.locator.host)),
    Implementation(
        "url_get_hostname",
        "getHostname",
        _U,
        lambda url: _decode_url_bytes(split_cel_url_host_and_port(url.locator.host)[0]),
    ),
    Implementation(
        "url_get_port", "getPort", _U, lambda url: split_cel_url_host_and_port(url.locator.host)[1]
    ),
    Implementation(
        "url_get_escaped_path", "getEscapedPath", _U, lambda url: _decode_url_bytes(escape_path(url.locator))
    ),
    Implementation("url_get_query", "getQuery", _U, get_query),
)
