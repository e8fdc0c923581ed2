"""Checks of options whose values become part of files for engines and forges.

Such a file is committed, and its first line has the flags that made it (gitops/made.py), so no value may end
a line. Names that Argo CD reads as patterns would allow more than they name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gangplan.errors import UserError
from gangplan.gitops.source import is_server_address

_PYTHON = re.compile(r"3(?:\.[0-9]{1,2}){0,2}")
_ORGANISATION = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*", re.ASCII)
# A user, a team or a role (@@) of the forge, or an email address.
_OWNER = re.compile(r"@@?\w[\w.-]*(?:/\w[\w.-]*)*|[\w.+-]+@[\w.-]+", re.ASCII)
# The end of an annotation's name, which has 63 characters: subscribe.gangplan-sync-failed.SERVICE. Argo CD
# splits it at dots, and recipients at semicolons (notifications-engine, pkg/subscriptions/annotations.go).
_SERVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,30}[A-Za-z0-9])?")
# Destinations of a project are patterns (Argo CD 3.5, AppProject.IsDestinationPermitted).
_PATTERN = frozenset("*?[]{}!\\")


def check_python_version(value: Any, words: str) -> Any:
    """Check a version of Python, and return it. Raises UserError."""
    if not _PYTHON.fullmatch(value):
        raise UserError(f"'{value}' is not a version of Python", f"Write {words} 3.13.")
    return value


def check_forge_organisation(value: Any, words: str) -> Any:
    """Check an organisation or group of a forge, and return it. Raises UserError."""
    if not _ORGANISATION.fullmatch(value):
        bare = value.strip("@/ ")
        help = f"Write {words} {bare if _ORGANISATION.fullmatch(bare) else 'acme'}."
        raise UserError(f"'{value}' is not the name of an organisation or group", help)
    return value


def check_argocd_destinations(value: Any, words: str) -> Any:
    """Check what Argo CD calls clusters, or the addresses of their servers, and return them. Raises
    UserError."""
    help = (
        "Write its name, without * ? [ ] { } ! and \\, or its server's address: https://k8s.example.com:6443."
    )
    return _check_delivery_option_values(
        value, words, "is not what Argo CD calls a cluster", _is_destination, help
    )


def check_delivery_notification_recipients(value: Any, words: str) -> Any:
    """Check recipients by service, and return them. Raises UserError."""
    for service in value:
        if not _SERVICE.fullmatch(service):
            message = f"{words} {service}: '{service}' is not what Argo CD calls a service"
            raise UserError(message, "Write it in letters, digits, '-' and '_', such as slack.")
    return _check_delivery_option_values(
        value, words, "cannot be a recipient", _is_line, "Write ml-runs; for two, 'ml-runs;ml-ops'."
    )


def check_owners(value: Any, words: str) -> Any:
    """Check owners by team, and return them. Raises UserError."""
    help = "Write @acme/nlp; for two, '@acme/nlp @acme/ops'."
    return _check_delivery_option_values(value, words, "does not name owners", _is_codeowner_list, help)


def _check_delivery_option_values(
    value: Mapping[str, str], words: str, says: str, takes: Callable[[str], bool], help: str
) -> Mapping[str, str]:
    wrong = [f"{words} {name}: '{one}' {says}" for name, one in value.items() if not takes(one)]
    if wrong:
        raise UserError("; ".join(wrong), help)
    return value


def _is_line(value: str) -> bool:
    return bool(value) and value.isprintable() and value == value.strip() and "`" not in value


def _is_destination(value: str) -> bool:
    if value.startswith(("https://", "http://")):
        return is_server_address(value)
    return _is_line(value) and not _PATTERN.intersection(value)


def _is_codeowner_list(value: str) -> bool:
    return all(_OWNER.fullmatch(one) for one in value.split(" "))
