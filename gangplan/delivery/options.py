"""Options that several engines share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from gangplan.delivery.engine import EngineInput, EngineOption
from gangplan.errors import UserError
from gangplan.gitops.source import EXAMPLE_REPOSITORY, check_branch_name, check_gitops_repository_url

FORGES = ("github", "gitlab", "none")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def build_delivery_option_choice_check(what: str, known: Iterable[str]) -> Callable[[Any, str], Any]:
    """Return a check that a value is one of those known."""
    names = tuple(known)

    def check(value: Any, words: str) -> Any:
        from gangplan.spec.near import suggest_nearest

        if value not in names:
            raise UserError(f"there is no {what} '{value}'", suggest_nearest(value, names))
        return value

    return check


def _check_workspace_folder(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_workspace_folder_in_repository

    folder = check_workspace_folder_in_repository(value or ".", words)
    return "" if folder == "." else folder


def _check_optional_ci_image(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_ci_image

    return check_ci_image(value, words) if value else ""


def name(value: Any, words: str) -> Any:
    """Check that the value can be the name of a namespace, and return it. Raises UserError."""
    if not _NAME.fullmatch(value) or len(value) > 63:
        raise UserError(f"'{value}' cannot be the name of a namespace", f"Write {words} gitops.")
    return value


def _find_workspace_folder_in_repository(given: EngineInput) -> str:
    """Return the folder of the workspace in its repository.

    An OCI artifact contains only the workspace, so its folder is empty.
    """
    from gangplan.tools.git import find_folder_in_git_repository

    is_oci = str(given.values.get("repo", "")).startswith("oci://")
    return "" if is_oci else find_folder_in_git_repository(given.request.root) or ""


REPO_OPTION = EngineOption(
    "repo",
    "Git repository that the engine reads.",
    "URL",
    EXAMPLE_REPOSITORY,
    shared="repo",
    check=check_gitops_repository_url,
    is_needed=True,
)
REVISION_OPTION = EngineOption(
    "revision", "Branch or tag.", "NAME", "production", "main", shared="branch", check=check_branch_name
)
BRANCH_OPTION = replace(REVISION_OPTION, name="branch", help="Branch that is synced.")
NAMESPACE_OPTION = EngineOption(
    "namespace", "Namespace that the engine runs in.", "NAME", "gitops", check=name
)
PREFIX_OPTION = EngineOption(
    "prefix",
    "Folder of the workspace in the repository (default: as Git has it).",
    "DIR",
    "ml/jobs",
    shared="prefix",
    find=_find_workspace_folder_in_repository,
    check=_check_workspace_folder,
)
IMAGE_OPTION = EngineOption(
    "image",
    "Image with Python and Git that CI runs in; name it by digest.",
    "REF",
    "registry.example.com/ci/gangplan@sha256:DIGEST",
    shared="image",
    check=_check_optional_ci_image,
)
FORGE_OPTION = EngineOption(
    "forge",
    "github, gitlab or none.",
    "NAME",
    "gitlab",
    "github",
    shared="forge",
    check=build_delivery_option_choice_check("forge", FORGES),
)
SHARED_OPTIONS = (REPO_OPTION, BRANCH_OPTION, PREFIX_OPTION, FORGE_OPTION, IMAGE_OPTION)
