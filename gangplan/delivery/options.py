"""Options that several engines share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gangplan.delivery.engine import Given, Option
from gangplan.errors import UserError
from gangplan.gitops.source import EXAMPLE, check_branch, check_url

FORGES = ("github", "gitlab", "none")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def one_of(what: str, known: Iterable[str]) -> Callable[[Any, str], Any]:
    """Return a check that a value is one of those known."""
    names = tuple(known)

    def check(value: Any, words: str) -> Any:
        from gangplan.spec.near import nearest

        if value not in names:
            raise UserError(f"there is no {what} '{value}'", nearest(value, names))
        return value

    return check


def _folder(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_folder

    folder = check_folder(value or ".", words)
    return "" if folder == "." else folder


def _image(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_image

    return check_image(value, words) if value else ""


def name(value: Any, words: str) -> Any:
    """Check that the value can be the name of a namespace, and return it. Raises UserError."""
    if not _NAME.fullmatch(value) or len(value) > 63:
        raise UserError(f"'{value}' cannot be the name of a namespace", f"Write {words} gitops.")
    return value


def _inside(given: Given) -> str:
    """Return the folder of the workspace in its repository.

    An OCI artifact contains only the workspace, so its folder is empty.
    """
    from gangplan.tools.git import folder_inside

    is_oci = str(given.values.get("repo", "")).startswith("oci://")
    return "" if is_oci else folder_inside(given.request.root) or ""


REPO = Option(
    "repo",
    "Git repository that the engine reads.",
    "URL",
    EXAMPLE,
    shared="repo",
    check=check_url,
    is_needed=True,
)
REVISION = Option(
    "revision", "Branch or tag.", "NAME", "production", "main", shared="branch", check=check_branch
)
BRANCH = replace(REVISION, name="branch", help="Branch that is synced.")
NAMESPACE = Option("namespace", "Namespace that the engine runs in.", "NAME", "gitops", check=name)
PREFIX = Option(
    "prefix",
    "Folder of the workspace in the repository (default: as Git has it).",
    "DIR",
    "ml/jobs",
    shared="prefix",
    find=_inside,
    check=_folder,
)
IMAGE = Option(
    "image",
    "Image with Python and Git that CI runs in; name it by digest.",
    "REF",
    "registry.example.com/ci/gangplan@sha256:DIGEST",
    shared="image",
    check=_image,
)
FORGE = Option(
    "forge",
    "github, gitlab or none.",
    "NAME",
    "gitlab",
    "github",
    shared="forge",
    check=one_of("forge", FORGES),
)
SHARED = (REPO, BRANCH, PREFIX, FORGE, IMAGE)
