"""CODEOWNERS: who must approve changes in which folder. The last line that matches a file decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gangplan.records import dataclass

# People who may change these decide what runs on clusters, and what checks it.
PLATFORM = ("/overlays/", "/images/", "/jobtemplates/", "/policies/", "/schemas/")
_SETTINGS = ("/.gitattributes", "/gangplan.yaml", "/requirements.txt")
# What the CI of a forge reads from the top of the repository: adding one of these decides what runs.
RECIPES = ("/.github/", "/.gitlab-ci.yml", "/.gitlab/", "/Jenkinsfile", "/.tekton/", "/tekton/")


@dataclass(frozen=True, slots=True)
class Owners:
    """Who owns what: the prefix of team names, owners by team (or `platform`) where their names differ, and
    the folder of the workspace in the repository."""

    organisation: str
    given: Mapping[str, str]
    prefix: str = ""


def build_codeowners_files(
    owners: Owners, teams: Sequence[str], engines: Sequence[str] = ()
) -> dict[str, str]:
    """Build the CODEOWNERS file; `engines` are folders of sync manifests."""
    names = {name: owners.given.get(name, f"@{owners.organisation}/{name}") for name in (*teams, "platform")}
    top = f"/{owners.prefix}" if owners.prefix else ""
    rows = [(f"{top}/specs/{team}/", names[team]) for team in teams]
    own = [f"{top}{path}" for path in (*PLATFORM, *(f"/{one}/" for one in engines), *_SETTINGS)]
    rows += [(path, names["platform"]) for path in (*own, *RECIPES, "/CODEOWNERS")]
    return {"CODEOWNERS": _format_codeowners_table(rows)}


def organisation_of(repository: str) -> str:
    """Return the first folder of a repository's path, which forges put before the names of teams."""
    path = re.sub(r"^\w+://[^/]+/|^[^:/]+:", "", repository)
    first = path.split("/")[0] if "/" in path else ""
    return first if re.fullmatch(r"[\w.-]+", first) else "example"


def _format_codeowners_table(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(path) for path, _ in rows)
    head = [
        "# Who must approve a change. Whoever may merge to overlays/ or policies/ owns the clusters.",
        "# rendered/ needs no owner where CI is required: it holds what the other files say.",
    ]
    return "\n".join([*head, *(f"{path:{width}} {owner}" for path, owner in rows), ""])
