"""Find the credentials for a registry in the files of docker and podman and in credential helpers."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gangplan.errors import ToolError
from gangplan.records import dataclass
from gangplan.tools.run import run_program

_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HELPER_S = 60.0
_MOST_BYTES = 1 << 20
# The user name by which a helper says that the secret is an identity token (docker login).
_TOKEN = "<token>"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, or an identity token. Neither ever appears in a message."""

    user: str = ""
    secret: str = ""
    identity_token: str = ""

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        pair = f"{self.user}:{self.secret}".encode()
        return f"Basic {base64.b64encode(pair).decode('ascii')}"

    def __repr__(self) -> str:
        return "Credentials(...)"


def find_registry_credentials(repository: str, environment: Mapping[str, str]) -> Credentials | None:
    """Return the credentials for a repository (with its host), or None to ask anonymously.

    Raises ToolError for a file that cannot be read, or a helper that fails.
    """
    for path in _list_registry_credential_files(environment):
        config = _read_registry_credential_file(path)
        if config is None:
            continue
        found = _ask_registry_credential_helper(
            config, repository, environment
        ) or _find_stored_registry_credentials(path, config, repository)
        if found is not None:
            return found
    return None


def _list_registry_credential_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the files to search: REGISTRY_AUTH_FILE and auth.json, as podman does, then docker's."""
    if named := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    if folder := environment.get("XDG_RUNTIME_DIR"):
        yield Path(folder, "containers/auth.json")
    home = environment.get("HOME") or os.path.expanduser("~")
    yield Path(environment.get("DOCKER_CONFIG") or Path(home, ".docker"), "config.json")


def _read_registry_credential_file(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as stream:
            data = stream.read(_MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as bad:
        raise ToolError(f"{path} cannot be read: {bad.strerror}", "Check its permissions.") from None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ToolError(f"{path} is not a file of docker login", "Log in again, or remove it.")
    return value


def _list_registry_credential_keys(repository: str) -> list[str]:
    """Return the keys under which a repository may be listed, the most specific first.

    podman lists paths, docker hosts.
    """
    parts = repository.split("/")
    keys = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
    if parts[0] in ("docker.io", "registry-1.docker.io", "index.docker.io"):
        keys.append("https://index.docker.io/v1/")
    return [*keys, *(f"https://{parts[0]}{end}" for end in ("", "/v1/", "/v2/"))]


def _find_stored_registry_credentials(
    path: Path, config: Mapping[str, Any], repository: str
) -> Credentials | None:
    entries = config.get("auths")
    for key in _list_registry_credential_keys(repository):
        entry = entries.get(key) if isinstance(entries, dict) else None
        if not isinstance(entry, dict):
            continue
        token = entry.get("identitytoken")
        user, secret = str(entry.get("username", "")), str(entry.get("password", ""))
        if isinstance(entry.get("auth"), str) and entry["auth"]:
            try:
                text = base64.b64decode(entry["auth"], validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                raise ToolError(f"{path}: the entry of {key} is damaged", f"Log in to {key} again.") from None
            user, _, secret = text.partition(":")
        if token or user:
            return Credentials(user, secret.rstrip("\0"), str(token or ""))
    return None


def _ask_registry_credential_helper(
    config: Mapping[str, Any], repository: str, environment: Mapping[str, str]
) -> Credentials | None:
    helpers = config.get("credHelpers")
    chosen = next(
        (
            (helpers[key], key)
            for key in _list_registry_credential_keys(repository)
            if isinstance(helpers, dict) and key in helpers
        ),
        (config.get("credsStore"), _list_registry_credential_keys(repository)[-4]),
    )
    helper, server = chosen
    if not isinstance(helper, str) or not helper:
        return None
    if not _HELPER.fullmatch(helper):
        raise ToolError(f"'{helper[:60]}' is not the name of a credential helper")
    program = f"docker-credential-{helper}"
    # A helper may need any variable that its owner set, such as cloud profiles or the address of a keychain.
    done = run_program(
        [program, "get"], input=server.encode(), timeout_s=_HELPER_S, env=dict(environment), ok=(0, 1)
    )
    if done.returncode:
        return None  # it has no credentials for this server; like docker, go on and ask anonymously
    try:
        answer = json.loads(done.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError):
        raise ToolError(f"{program} answers nothing that docker would understand") from None
    return Credentials(identity_token=secret) if user == _TOKEN else Credentials(user, secret)
