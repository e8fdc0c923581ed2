"""Write a comment on a pull request of GitHub or GitLab, or update the earlier one.

REST API of GitHub, version 2022-11-28 (issues/comments); API v4 of GitLab (merge request notes). The
comment is recognised by its first line, an HTML comment, which is invisible.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from gangplan.errors import ToolError, UserError
from gangplan.records import dataclass

APIS = {"github": "https://api.github.com", "gitlab": "https://gitlab.com/api/v4"}
_MARK = re.compile(r"<!-- [\w: .-]+ -->")
_TIMEOUT_S = 30.0
_PAGE = 100
# Pages of comments that are read at most.
_PAGES = 50
# The longest comment that a forge accepts, in characters.
_MOST = {"github": 65_536, "gitlab": 1_000_000}
_SHORTENED = "\n\n(shortened: the report of the job has all of it)\n"


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull or merge request: its forge, the URL of the forge's API, repository, number and token."""

    forge: str
    api: str
    repository: str
    number: int
    token: str


def find_pull_request_of_ci_job(
    environment: Mapping[str, str], given: Mapping[str, str | None]
) -> PullRequest:
    """Return the pull request of a CI job, from what is `given` and, for the rest, the forge's variables.

    `given` has forge, api, repository and number. Raises UserError for a missing or invalid one.
    """
    forge = given.get("forge") or ("gitlab" if environment.get("GITLAB_CI") else "github")
    if forge not in APIS:
        raise UserError(f"there is no forge '{forge}'", "Write --forge github or --forge gitlab.")
    is_github = forge == "github"
    names = (
        ("GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_TOKEN")
        if is_github
        else ("CI_API_V4_URL", "CI_PROJECT_ID", "GITLAB_TOKEN")
    )
    reference = re.fullmatch(r"refs/pull/(\d+)/merge", environment.get("GITHUB_REF", ""))
    known = (reference[1] if reference else "") if is_github else environment.get("CI_MERGE_REQUEST_IID", "")
    repository = given.get("repository") or environment.get(names[1], "")
    number = given.get("number") or known
    token = environment.get("GANGPLAN_FORGE_TOKEN") or environment.get(names[2], "")
    for what, value, help in (
        ("the repository", repository, "Write --repository acme/jobs."),
        ("the number of the pull request", number, "Write --number 7, or run it for a pull request."),
        ("the token", token, f"Set {names[2]}, or GANGPLAN_FORGE_TOKEN."),
    ):
        if not value:
            raise UserError(f"nothing was written: {what} is missing", help)
    if not number.isdigit():
        raise UserError(f"--number {number}: not a number", "Write --number 7.")
    api = given.get("api") or environment.get(names[0]) or APIS[forge]
    if not re.match(r"https://|http://(127\.0\.0\.1|localhost)[:/]", api):
        raise UserError(f"--api {api}: a token goes over https alone", f"Write --api {APIS[forge]}.")
    return PullRequest(forge, api.rstrip("/"), repository, int(number), token)


def write_pull_request_comment(where: PullRequest, text: str) -> bool:
    """Write the comment, or update the earlier one; return whether it is new. Raises ToolError."""
    mark = text.split("\n", 1)[0].strip()
    if not _MARK.fullmatch(mark):
        mark = "<!-- gangplan -->"
        text = f"{mark}\n{text}"
    if len(text) > _MOST[where.forge]:
        text = text[: _MOST[where.forge] - len(_SHORTENED)] + _SHORTENED
    for one in _list_pull_request_comments(where):
        if str(one.get("body", "")).startswith(mark) and _edit_pull_request_comment(
            where, int(one["id"]), text
        ):
            return False
    _call_forge_api(where, "POST", _build_comments_path(where), {"body": text})
    return True


def _edit_pull_request_comment(where: PullRequest, id: int, text: str) -> bool:
    """Update a comment and return whether that was allowed; another user's comment may have the same mark."""
    path = (
        f"/repos/{where.repository}/issues/comments/{id}"
        if where.forge == "github"
        else f"{_build_comments_path(where)}/{id}"
    )
    try:
        _call_forge_api(where, "PATCH" if where.forge == "github" else "PUT", path, {"body": text})
    except _RefusedError:
        return False
    return True


def _list_pull_request_comments(where: PullRequest) -> Iterator[dict[str, Any]]:
    for page in range(1, _PAGES + 1):
        found = _call_forge_api(where, "GET", f"{_build_comments_path(where)}?per_page={_PAGE}&page={page}")
        yield from found
        if len(found) < _PAGE:
            return


def _build_comments_path(where: PullRequest) -> str:
    if where.forge == "github":
        return f"/repos/{where.repository}/issues/{where.number}/comments"
    return f"/projects/{urllib.parse.quote(where.repository, safe='')}/merge_requests/{where.number}/notes"


class _Stays(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirect, because the token would be sent to its target."""

    def redirect_request(self, *_: object) -> None:
        return None


class _RefusedError(ToolError):
    """The forge answers 401, 403 or 404: the token lacks a right."""


def _call_forge_api(where: PullRequest, method: str, path: str, body: object = None) -> Any:
    headers = {"Content-Type": "application/json", "User-Agent": "gangplan"}
    if where.forge == "github":
        headers |= {"Authorization": f"Bearer {where.token}", "X-GitHub-Api-Version": "2022-11-28"}
    else:
        headers |= {"PRIVATE-TOKEN": where.token}
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"{where.api}{path}", data, headers, method=method)
    try:
        with urllib.request.build_opener(_Stays).open(asked, timeout=_TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as bad:
        message = f"{where.forge} answers {bad.code} to {method} {path.split('?')[0]}"
        if bad.code in (401, 403, 404):
            help = "The token must be allowed to write comments; that of a pull request from a fork is not."
            raise _RefusedError(message, help) from None
        raise ToolError(message, "Try again later.") from None
    except (OSError, ValueError) as bad:
        raise ToolError(f"{where.api} cannot be asked: {bad}", "Check --api and the network.") from None
