"""Answer a registry's challenge: Basic, or a token for one repository (Distribution, docs/spec/auth)."""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Mapping

from gangplan.errors import ToolError
from gangplan.oci.credentials import Credentials
from gangplan.oci.http import Sleep, scheme_of, send_registry_request

_CHALLENGE = re.compile(r"\s*(?P<kind>[A-Za-z]+)\s+(?P<rest>.*)", re.DOTALL)
_PAIR = re.compile(r'(?P<name>[A-Za-z_]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s,"]+))')
_MOST_BYTES = 1 << 20


def parse_registry_challenge(text: str) -> tuple[str, dict[str, str]]:
    """Parse a WWW-Authenticate header into its scheme, in lower case, and its parameters."""
    match = _CHALLENGE.match(text)
    if match is None:
        return text.strip().lower(), {}
    pairs = {
        found["name"].lower(): re.sub(r"\\(.)", r"\1", found["quoted"])
        if found["quoted"] is not None
        else found["bare"]
        for found in _PAIR.finditer(match["rest"])
    }
    return match["kind"].lower(), pairs


def answer_registry_challenge(
    host: str, path: str, challenge: str, known: Credentials | None, sleep: Sleep
) -> str | None:
    """Return the header that answers a challenge for pulling from a repository; None without credentials for
    it.

    Raises ToolError for a challenge that cannot be answered safely, and for a token service that fails.
    """
    kind, facts = parse_registry_challenge(challenge)
    if kind == "basic":
        return known.basic if known is not None and known.user else None
    if kind != "bearer":
        raise ToolError(f"{host} wants to know who asks by '{kind[:40]}', which gangplan does not speak")
    realm = urllib.parse.urlsplit(facts.get("realm", ""))
    if realm.scheme not in ("http", "https") or not realm.hostname:
        raise ToolError(f"{host} names no service that gives tokens")
    if realm.scheme == "http" and scheme_of(realm.netloc) != "http":
        raise ToolError(f"{host} sends us to {realm.netloc} for a token, without encryption")
    query = dict(urllib.parse.parse_qsl(realm.query))
    query |= {"service": facts["service"]} if "service" in facts else {}
    scope = facts.get("scope") or f"repository:{path}:pull"
    return f"Bearer {_request_registry_token(host, realm, query, scope, known, sleep)}"


def _request_registry_token(
    host: str,
    realm: urllib.parse.SplitResult,
    query: Mapping[str, str],
    scope: str,
    known: Credentials | None,
    sleep: Sleep,
) -> str:
    headers, data = {}, None
    if known is not None and known.identity_token:
        wanted = {**query, "scope": scope, "grant_type": "refresh_token", "client_id": "gangplan"}
        data = urllib.parse.urlencode({**wanted, "refresh_token": known.identity_token}).encode()
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        url = realm._replace(query="").geturl()
    else:
        url = realm._replace(query=urllib.parse.urlencode({**query, "scope": scope})).geturl()
        if known is not None and known.user:
            headers["Authorization"] = known.basic
    answer = send_registry_request(url, headers, most=_MOST_BYTES, data=data, sleep=sleep)
    if answer.status in (401, 403):
        raise ToolError(
            f"{realm.netloc} gives no token for {host}: it answers {answer.status}",
            _describe_registry_login(host),
        )
    try:
        body = json.loads(answer.body) if answer.status == 200 else None
    except (ValueError, RecursionError):
        body = None
    token = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
    if not isinstance(token, str) or not re.fullmatch(r"[!-~]+", token):
        raise ToolError(f"{realm.netloc} gives no token for {host}: it answers {answer.status}")
    return token


def _describe_registry_login(host: str) -> str:
    return f"Log in: docker login {host}, or podman login {host}; or check the account's rights."
