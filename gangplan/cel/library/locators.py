"""Parse URLs as Go's `net/url` does, with its messages.

Kubernetes 1.34 is built with Go 1.24, whose security releases parse hosts in brackets as later versions do,
and so does this module. Escapes are bytes, kept as Latin-1 letters until they are shown.
"""

from __future__ import annotations

import string
from dataclasses import replace

from gangplan.cel.library.addresses import AddressError, parse_cel_ip_with_zone
from gangplan.cel.numbers import quote_as_go
from gangplan.records import dataclass

_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.~")
_HEX = frozenset(string.hexdigits)
_HOST = _PLAIN | frozenset("!$&'()*+,;=:[]<>\"")
# What each part of a URL leaves unescaped.
_LEFT = {
    "host": _HOST,
    "zone": _HOST,
    "path": _PLAIN | frozenset("$&+,/:;=@"),
    "user": _PLAIN | frozenset("$&+,;="),
    "query": _PLAIN,
    "fragment": _PLAIN | frozenset("$&+,/:;=?@!()*"),
}
_USER = _PLAIN | frozenset(":!$&'()*+,;=%@")
_VALID_PATH = _LEFT["path"] | frozenset("!'()*[]%")


class UrlError(ValueError):
    """The text is not a URL; the message is Go's, without the text itself."""


@dataclass(frozen=True, slots=True)
class Locator:
    """A parsed URL; `user` is None if it has none, and `raw_path` is the path as written."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str = ""
    path: str = ""
    raw_path: str = ""
    query: str = ""
    fragment: str = ""
    force_query: bool = False
    omit_host: bool = False


def parse_cel_url(text: str) -> Locator:
    """Parse a URL as `url.Parse` does. Raises `UrlError`."""
    data = text.encode(errors="surrogatepass").decode("latin-1")
    before, _, fragment = data.partition("#")
    locator = _parse_cel_locator(before, request=False)
    return locator if not fragment else _add_url_fragment(locator, fragment)


def parse_request_url(text: str) -> Locator:
    """Parse an absolute URL or path without a fragment, as `url.ParseRequestURI` does. Raises `UrlError`."""
    return _parse_cel_locator(text.encode(errors="surrogatepass").decode("latin-1"), request=True)


def _add_url_fragment(locator: Locator, fragment: str) -> Locator:
    return replace(locator, fragment=_unescape_url_part(fragment, "fragment"))


def _parse_cel_locator(text: str, *, request: bool) -> Locator:
    if any(letter < " " or letter == "\x7f" for letter in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and request:
        raise UrlError("empty url")
    if text == "*":
        return Locator(path="*")
    scheme, rest = _split_url_scheme(text)
    force = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Locator(scheme, rest, query=query, force_query=force)
        if request:
            raise UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user, host, omit = None, "", False
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        user, host = _parse_url_authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        omit = True
    path = _unescape_url_part(rest, "path")
    raw = "" if _escape_url_part(path, "path") == rest else rest
    return Locator(scheme, "", user, host, path, raw, query, "", force, omit)


def _split_url_scheme(text: str) -> tuple[str, str]:
    for at, letter in enumerate(text):
        if letter in string.ascii_letters or (at and letter in string.digits + "+-."):
            continue
        if letter != ":":
            break
        if not at:
            raise UrlError("missing protocol scheme")
        return text[:at].lower(), text[at + 1 :]
    return "", text


def _parse_url_authority(scheme: str, authority: str) -> tuple[str | None, str]:
    written, at, host = authority.rpartition("@")
    host = _parse_cel_url_host(scheme, host)
    if not at:
        return None, host
    # Go compares letters, not bytes, but anything that is not ASCII is refused either way.
    if not set(written) <= _USER:
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = written.partition(":")
    user = _escape_url_part(_unescape_url_part(name, "user"), "user")
    return user + (
        ":" + _escape_url_part(_unescape_url_part(password, "user"), "user") if colon else ""
    ), host


def _parse_cel_url_host(scheme: str, host: str) -> str:
    opening = host.rfind("[")
    if opening > 0:
        raise UrlError("invalid IP-literal")
    if opening == 0:
        return _parse_bracketed_url_host(host)
    first, last = host.find(":"), host.rfind(":")
    if first != -1:
        start = first if scheme in ("http", "https") and STRICT_COLONS else last
        if not _is_port(host[start:]):
            raise UrlError(f"invalid port {_quote_url_text(host[start:])} after host")
    return _unescape_url_part(host, "host")


# Go 1.26 refuses a second colon in hosts of http and https; 1.24, which builds Kubernetes 1.34, accepts it.
STRICT_COLONS = False


def _parse_bracketed_url_host(host: str) -> str:
    closing = host.rfind("]")
    if closing < 0:
        raise UrlError("missing ']' in host")
    port = host[closing + 1 :]
    if not _is_port(port):
        raise UrlError(f"invalid port {_quote_url_text(port)} after host")
    name, zone = host[1:closing], ""
    if "%25" in name:
        at = name.index("%25")
        name, zone = name[:at], _unescape_url_part(name[at:], "zone")
    name = _unescape_url_part(name, "host") + zone
    try:
        address, _ = parse_cel_ip_with_zone(name)
    except AddressError as problem:
        raise UrlError(f"invalid host: {problem}") from problem
    if address.version == 4:
        raise UrlError("invalid IP-literal")
    return f"[{name}]{port}"


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and set(text[1:]) <= frozenset(string.digits))


def _quote_url_text(text: str) -> str:
    return quote_as_go(text.encode("latin-1").decode(errors="surrogateescape"))


# Escapes


def _unescape_url_part(text: str, part: str) -> str:
    if "%" not in text and part not in ("host", "zone", "query"):
        return text
    built: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "%":
            escape = text[at : at + 3]
            if (
                len(escape) < 3
                or not set(escape[1:]) <= _HEX
                or not _is_escape_allowed_in_cel_url(escape, part)
            ):
                raise UrlError(f"invalid URL escape {_quote_url_text(escape)}")
            built.append(chr(int(escape[1:], 16)))
            at += 3
            continue
        if part in ("host", "zone") and letter < "\x80" and letter not in _HOST:
            raise UrlError(f"invalid character {_quote_url_text(letter)} in host name")
        built.append(" " if letter == "+" and part == "query" else letter)
        at += 1
    return "".join(built)


def _is_escape_allowed_in_cel_url(escape: str, part: str) -> bool:
    """Return whether a part may have an escape.

    A host may escape only what is not ASCII, a zone only what a host may contain unescaped, and spaces.
    """
    if escape == "%25" or part not in ("host", "zone"):
        return True
    code = int(escape[1:], 16)
    if part == "host":
        return code >= 0x80
    return chr(code) == " " or chr(code) in _HOST


def _escape_url_part(text: str, part: str) -> str:
    left = _LEFT[part]
    return "".join(letter if letter in left else f"%{ord(letter):02X}" for letter in text)


# Parts of a URL


def escape_path(locator: Locator) -> str:
    """Return `URL.EscapedPath()`: the path as written if that is valid."""
    if locator.raw_path and set(locator.raw_path) <= _VALID_PATH:
        return locator.raw_path
    return "*" if locator.path == "*" else _escape_url_part(locator.path, "path")


def split_cel_url_host_and_port(host: str) -> tuple[str, str]:
    """Return `URL.Hostname()` and `URL.Port()`."""
    port = ""
    colon = host.rfind(":")
    if colon != -1 and _is_port(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def parse_cel_url_query(locator: Locator) -> dict[str, list[str]]:
    """Return `URL.Query()`: the readable part of the query."""
    found: dict[str, list[str]] = {}
    for pair in locator.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        try:
            key, value = _unescape_url_part(key, "query"), _unescape_url_part(value, "query")
        except UrlError:
            continue
        found.setdefault(key, []).append(value)
    return found


def format_cel_url(locator: Locator) -> str:
    """Return `URL.String()`; two URLs are equal if their strings are."""
    text = f"{locator.scheme}:" if locator.scheme else ""
    if locator.opaque:
        text += locator.opaque
    else:
        text += _format_url_authority_and_path(locator, bool(text))
    if locator.force_query or locator.query:
        text += f"?{locator.query}"
    return text + (f"#{_escape_url_part(locator.fragment, 'fragment')}" if locator.fragment else "")


def _format_url_authority_and_path(locator: Locator, begun: bool) -> str:
    text = ""
    if (locator.scheme or locator.host or locator.user is not None) and not (
        locator.omit_host and not locator.host and locator.user is None
    ):
        if locator.host or locator.path or locator.user is not None:
            text += "//"
        if locator.user is not None:
            text += f"{locator.user}@"
        text += _escape_url_part(locator.host, "host")
    path = escape_path(locator)
    if path and path[0] != "/" and locator.host:
        text += "/"
    if not begun and not text and ":" in path.partition("/")[0]:
        text += "./"
    return text + path
