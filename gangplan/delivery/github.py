"""GitHub: a workflow and its composite action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.delivery.checks import version
from gangplan.delivery.engine import Engine, Given, Option
from gangplan.delivery.options import BRANCH, PREFIX


def _files(given: Given) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, github_files

    options = CiOptions(given["branch"], given["prefix"] or ".", python=given["python"])
    return github_files(options, given["pin"])


def _pins(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_pins

    return check_pins(value)


ENGINE = Engine(
    "github",
    "Write a GitHub workflow and its composite action: findings, alerts, and the plan as a comment.",
    (
        BRANCH,
        PREFIX,
        Option("python", "Version of Python.", "VERSION", "3.12", "3.13", check=version),
        Option(
            "pin",
            "Another commit of an action.",
            "ACTION=COMMIT",
            "actions/cache=cdf6c1fa76f9f475f3d7449005a359c84ca0f306",
            {},
            check=_pins,
        ),
    ),
    _files,
)
