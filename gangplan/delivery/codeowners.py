"""CODEOWNERS: each team owns its specs; the platform owns all that decides for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.delivery.checks import organisation, owners
from gangplan.delivery.engine import Engine, Given, Option
from gangplan.delivery.options import PREFIX
from gangplan.errors import UserError


def _files(given: Given) -> Mapping[str, str]:
    """Build CODEOWNERS for all teams."""
    from gangplan.gitops.codeowners import Owners, codeowners_files

    named = Owners(given["organisation"], given["owner"], given["prefix"])
    there = [name for name in ("argocd", "flux") if (given.request.root / name).is_dir()]
    engines = sorted({*there, *filter(None, given.homes.values())})
    return codeowners_files(named, _teams(given), engines)


def _teams(given: Given) -> list[str]:
    return sorted(path.parent.name for path in given.request.root.glob("specs/*/team.yaml"))


def _known(given: Given, value: Any) -> None:
    from gangplan.spec.near import nearest

    known = [*_teams(given), "platform"]
    absent = [name for name in value if name not in known]
    if absent:
        names = "; ".join(f"there is no team '{name}'" for name in absent)
        raise UserError(names, nearest(absent[0], known))


def _organisation(given: Given) -> str:
    from gangplan.gitops.codeowners import organisation_of
    from gangplan.tools.git import remote

    return organisation_of(str(given.values.get("repo") or remote(given.request.root)))


ENGINE = Engine(
    "codeowners",
    "Write CODEOWNERS: each team owns its specs, the platform all that decides for others.",
    (
        Option(
            "organisation",
            "Organisation or group that the teams belong to on the forge (default: as the remote has it).",
            "NAME",
            "acme",
            find=_organisation,
            check=organisation,
        ),
        Option(
            "owner",
            "Who owns the files of a team, or of platform.",
            "TEAM=OWNER",
            "nlp=@acme/nlp",
            {},
            check=owners,
            against=_known,
        ),
        PREFIX,
    ),
    _files,
)
