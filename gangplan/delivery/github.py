"""GitHub: a workflow and its composite action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.delivery.checks import check_python_version
from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import BRANCH_OPTION, PREFIX_OPTION


def _build_github_files(given: EngineInput) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, render_github_files

    options = CiOptions(given["branch"], given["prefix"] or ".", python=given["python"])
    return render_github_files(options, given["pin"])


def _check_github_action_pins(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_action_pins

    return check_action_pins(value)


ENGINE = GitopsEngine(
    "github",
    "Write a GitHub workflow and its composite action: findings, alerts, and the plan as a comment.",
    (
        BRANCH_OPTION,
        PREFIX_OPTION,
        EngineOption("python", "Version of Python.", "VERSION", "3.12", "3.13", check=check_python_version),
        EngineOption(
            "pin",
            "Another commit of an action.",
            "ACTION=COMMIT",
            "actions/cache=cdf6c1fa76f9f475f3d7449005a359c84ca0f306",
            {},
            check=_check_github_action_pins,
        ),
    ),
    _build_github_files,
)
