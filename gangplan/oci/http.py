"""One HTTP request to a registry, with redirects, retries and limits; the only module here that opens
connections.

It uses the standard library alone: `http.client` follows no redirects itself, so this module decides which
headers go to which host. HTTPS_PROXY, HTTP_PROXY, NO_PROXY and SSL_CERT_FILE are respected.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from typing import IO

from gangplan import __version__
from gangplan.errors import ToolError
from gangplan.records import dataclass

#: Seconds until a connection counts as failed, and the longest pause between two packets.
TIMEOUT_S = 20.0
#: Seconds for one transfer; a layer of 10 GB takes seventeen minutes at 10 MB/s.
TRANSFER_S = 1800.0
#: Seconds to wait before each retry of a request that a busy registry refuses or that breaks off.
WAITS_S = (0.5, 2.0)
#: The longest pause, in seconds, that a registry may ask for.
_LONGEST_S = 10.0
_REDIRECTS = 5
_CHUNK = 1 << 16
_AGAIN = (408, 429, 500, 502, 503, 504)
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")

Sleep = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response after redirects: status, headers by lower-case name, body, its SHA-256 digest, and the final
    URL.

    The body is empty if it was written to a file.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    digest: str
    url: str


class _BrokenError(Exception):
    """A request failed in a way that a retry may fix."""


def scheme_of(host: str) -> str:
    """Return https, or http for this machine."""
    return "http" if _strip_port_from_host(host) in _LOOPBACK else "https"


def send_registry_request(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    most: int,
    data: bytes | None = None,
    into: IO[bytes] | None = None,
    sleep: Sleep = time.sleep,
) -> HttpAnswer:
    """Send a request, following redirects and retrying failures.

    `most` is the largest body in bytes; `into` receives it instead of memory. Any status counts as an answer.
    Raises ToolError if there is no answer.
    """
    last = ""
    for wait in (*WAITS_S, None):
        try:
            answer = _follow_redirects(url, dict(headers or {}), most, data, into)
        except _BrokenError as broken:
            last, asked = str(broken), 0.0
        else:
            if answer.status not in _AGAIN or wait is None:
                return answer
            last, asked = f"it answers {answer.status}", _parse_retry_after(answer.headers.get("retry-after"))
        if wait is not None:
            sleep(max(wait, asked))
        if into is not None:
            into.seek(0)
            into.truncate()
    raise ToolError(
        f"{_strip_url_secrets(url)} cannot be read: {last}", "Check the network, the proxy and the registry."
    )


def _follow_redirects(
    url: str, headers: dict[str, str], most: int, data: bytes | None, into: IO[bytes] | None
) -> HttpAnswer:
    began = url
    for _ in range(_REDIRECTS + 1):
        answer = _send_single_request(url, headers, most, data, into)
        place = answer.headers.get("location")
        if answer.status not in (301, 302, 303, 307, 308) or not place:
            return answer
        target = urllib.parse.urljoin(url, place)
        old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
        if new.scheme not in ("http", "https") or not new.hostname:
            raise ToolError(
                f"{_strip_url_secrets(began)} leads to {_strip_url_secrets(target)}, which is not an address"
            )
        if old.scheme == "https" and new.scheme == "http":
            raise ToolError(
                f"{_strip_url_secrets(began)} leads to {_strip_url_secrets(target)} without encryption"
            )
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            # Credentials for the registry must not reach the store that it redirects to.
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        url, data = target, None if answer.status == 303 else data
    raise ToolError(
        f"{_strip_url_secrets(began)} leads from one place to the next, more than {_REDIRECTS} times"
    )


def _send_single_request(
    url: str, headers: Mapping[str, str], most: int, data: bytes | None, into: IO[bytes] | None
) -> HttpAnswer:
    parts = urllib.parse.urlsplit(url)
    connection, target, login = _build_registry_connection(parts)
    try:
        sent = {"User-Agent": f"gangplan/{__version__}", "Accept-Encoding": "identity", **headers, **login}
        connection.request("GET" if data is None else "POST", target, data, sent)
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        body, digest = _read_registry_response_body(url, response, most, into)
        return HttpAnswer(response.status, found, body, digest, url)
    except ssl.SSLCertVerificationError as bad:
        help = "Name the certificates of your site with SSL_CERT_FILE."
        raise ToolError(
            f"{parts.netloc} has a certificate that is not trusted: {bad.verify_message}", help
        ) from None
    except (OSError, http.client.HTTPException) as bad:
        raise _BrokenError(str(bad) or type(bad).__name__) from bad
    except UnicodeError:
        raise ToolError(f"{_strip_url_secrets(url)} is not an address") from None
    finally:
        connection.close()


def _read_registry_response_body(
    url: str, response: http.client.HTTPResponse, most: int, into: IO[bytes] | None
) -> tuple[bytes, str]:
    """Read the body into memory or a file; an error's body goes into memory, and only its first 64 KiB."""
    is_error = response.status >= 300
    limit = min(most, _CHUNK) if is_error else most
    declared = response.getheader("content-length")
    if declared and declared.isdigit() and int(declared) > limit and not is_error:
        raise ToolError(f"{_strip_url_secrets(url)} has {declared} bytes; at most {limit} are read")
    total, kept, hashed = 0, bytearray(), hashlib.sha256()
    deadline = time.monotonic() + TRANSFER_S
    while chunk := response.read(_CHUNK):
        total += len(chunk)
        if total > limit:
            if is_error:
                break
            raise ToolError(
                f"{_strip_url_secrets(url)} has more than {limit} bytes, which is all that is read"
            )
        if time.monotonic() > deadline:
            raise ToolError(f"{_strip_url_secrets(url)} took longer than {TRANSFER_S:g} s")
        hashed.update(chunk)
        if into is not None and not is_error:
            into.write(chunk)
        else:
            kept += chunk
    if response.length:  # http.client does not report a body that ends early
        raise _BrokenError(f"it broke off after {total} bytes")
    return bytes(kept), f"sha256:{hashed.hexdigest()}"


def _build_registry_connection(
    parts: urllib.parse.SplitResult,
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Return a connection, through the environment's proxy if there is one, the target to
    request on it, and the header that logs in to the proxy."""
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    host, proxy, port = parts.hostname or "", "", _parse_url_port(parts)
    if host not in _LOOPBACK and not urllib.request.proxy_bypass(host):
        proxy = urllib.request.getproxies().get(parts.scheme, "")
    via = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
    if via is not None and via.hostname:
        login, port_of_proxy = _build_proxy_login_header(via), _parse_url_port(via) or 3128
        if parts.scheme == "http":
            plain = http.client.HTTPConnection(via.hostname, port_of_proxy, timeout=TIMEOUT_S)
            return plain, parts._replace(fragment="").geturl(), login
        tunnel = http.client.HTTPSConnection(via.hostname, port_of_proxy, timeout=TIMEOUT_S)
        tunnel.set_tunnel(host, port or 443, login)
        return tunnel, target, {}
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(host, port, timeout=TIMEOUT_S), target, {}


def _parse_url_port(parts: urllib.parse.SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise ToolError(f"{parts.netloc.rpartition('@')[2]} has no port that there is") from None


def _build_proxy_login_header(via: urllib.parse.SplitResult) -> dict[str, str]:
    """Return the header that logs in to a proxy. Raises ToolError for a proxy that is not http://."""
    if via.scheme != "http":
        help = "Write http:// in HTTPS_PROXY: the traffic through it is still encrypted up to the registry."
        raise ToolError(
            f"the proxy {_strip_url_secrets(via.geturl())} is not one that gangplan can use", help
        )
    if via.username is None:
        return {}
    name, password = (urllib.parse.unquote(one or "") for one in (via.username, via.password))
    return {"Proxy-Authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"}


def _strip_port_from_host(host: str) -> str:
    return host if host.endswith("]") or ":" not in host else host.rpartition(":")[0]


def _strip_url_secrets(url: str) -> str:
    """Return an address without its query, which may hold a signature."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _parse_retry_after(text: str | None) -> float:
    return min(float(text), _LONGEST_S) if text and text.isdigit() else 0.0
