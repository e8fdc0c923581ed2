"""CODEOWNERS: each team owns its specs, the platform all that decides for others."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.delivery.engine import Engine, Given, Option
from gangplan.delivery.options import FORGE, PREFIX
from gangplan.errors import UserError


def _files(given: Given) -> Mapping[str, str]:
    """CODEOWNERS of all teams. Raises UserError for the owner of a team that is none."""
    from gangplan.gitops.codeowners import RECIPES, Owners, codeowners_files
    from gangplan.spec.near import nearest

    root = given.request.root
    teams = sorted(path.parent.name for path in root.glob("specs/*/team.yaml"))
    for name in given["owner"]:
        if name not in (*teams, "platform"):
            raise UserError(f"there is no team '{name}'", nearest(name, [*teams, "platform"]))
    prefix = given["prefix"]
    owners = Owners(given["organisation"], given["owner"], prefix)
    there = [name for name in ("argocd", "flux", "tekton") if (root / name).is_dir()]
    engines = sorted({*there, *filter(None, given.homes.values())})
    top = root.resolve().parents[prefix.count("/")] if prefix else root
    asked = {given["forge"], *given.homes}
    recipes = [
        path
        for name, paths in RECIPES.items()
        for path in paths
        if name in asked or (top / path.strip("/")).exists()
    ]
    return codeowners_files(owners, teams, engines, recipes)


def _organisation(given: Given) -> str:
    from gangplan.gitops.codeowners import organisation_of
    from gangplan.tools.git import remote

    return organisation_of(str(given.values.get("repo") or remote(given.request.root)))


ENGINE = Engine(
    "codeowners",
    "Write CODEOWNERS: each team owns its specs, the platform all that decides for others.",
    (
        FORGE,
        Option(
            "organisation",
            "Organisation or group that the teams belong to on the forge (default: as the remote has it).",
            "NAME",
            "acme",
            find=_organisation,
        ),
        Option(
            "owner",
            "Who owns the files of a team, or of platform.",
            "TEAM=OWNER",
            "nlp=@acme/nlp",
            {},
        ),
        PREFIX,
    ),
    _files,
)
