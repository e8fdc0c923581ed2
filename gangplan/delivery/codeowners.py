"""CODEOWNERS: each team owns its specs; the platform owns all that decides for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.delivery.checks import check_forge_organisation, check_owners
from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import PREFIX_OPTION
from gangplan.errors import UserError


def _build_codeowners_for_teams(given: EngineInput) -> Mapping[str, str]:
    """Build CODEOWNERS for all teams."""
    from gangplan.gitops.codeowners import Owners, build_codeowners_files

    named = Owners(given["organisation"], given["owner"], given["prefix"])
    there = [name for name in ("argocd", "flux") if (given.request.root / name).is_dir()]
    engines = sorted({*there, *filter(None, given.homes.values())})
    return build_codeowners_files(named, _list_spec_teams(given), engines)


def _list_spec_teams(given: EngineInput) -> list[str]:
    return sorted(path.parent.name for path in given.request.root.glob("specs/*/team.yaml"))


def _check_delivery_option_teams(given: EngineInput, value: Any) -> None:
    from gangplan.spec.near import suggest_nearest

    known = [*_list_spec_teams(given), "platform"]
    absent = [name for name in value if name not in known]
    if absent:
        names = "; ".join(f"there is no team '{name}'" for name in absent)
        raise UserError(names, suggest_nearest(absent[0], known))


def _find_forge_organisation(given: EngineInput) -> str:
    from gangplan.gitops.codeowners import organisation_of
    from gangplan.tools.git import find_git_origin_url

    return organisation_of(str(given.values.get("repo") or find_git_origin_url(given.request.root)))


ENGINE = GitopsEngine(
    "codeowners",
    "Write CODEOWNERS: each team owns its specs; the platform owns everything that affects other teams.",
    (
        EngineOption(
            "organisation",
            "Organisation or group that the teams belong to on the forge (default: as the remote has it).",
            "NAME",
            "acme",
            find=_find_forge_organisation,
            check=check_forge_organisation,
        ),
        EngineOption(
            "owner",
            "Who owns the files of a team, or of platform.",
            "TEAM=OWNER",
            "nlp=@acme/nlp",
            {},
            check=check_owners,
            against=_check_delivery_option_teams,
        ),
        PREFIX_OPTION,
    ),
    _build_codeowners_for_teams,
)
