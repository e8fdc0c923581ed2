"""GitHub: a workflow and its composite action."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gangplan.delivery.checks import check_python_version
from gangplan.delivery.engine import EngineInput, EngineOption, GitopsEngine
from gangplan.delivery.options import BRANCH_OPTION, PREFIX_OPTION
from gangplan.errors import UserError

# POSIX cron, without the nicknames (@daily) and signs (L, W, #, ?) that some other tools read.
_GITHUB_CRON = re.compile(r"[0-9A-Za-z*/,-]+(?: [0-9A-Za-z*/,-]+){4}", re.ASCII)


def _build_github_delivery_files(given: EngineInput) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, render_github_files

    options = CiOptions(
        given["branch"], given["prefix"] or ".", python=given["python"], schedules=given["schedules"]
    )
    return render_github_files(options, given["pin"])


def _check_github_cron(value: Any, words: str) -> Any:
    if not value:
        return value
    from gangplan.model.cron import parse_cron

    try:
        if not _GITHUB_CRON.fullmatch(value):
            raise ValueError("it has no five fields of numbers and names")
        parse_cron(value)
    except ValueError as wrong:
        message = f"'{value}' is not when a workflow of GitHub can run: {wrong}"
        raise UserError(message, f"Write {words} '*/15 * * * *'.") from None
    return value


def _check_github_action_pins(value: Any, words: str) -> Any:
    from gangplan.gitops.ci import check_github_action_pins

    return check_github_action_pins(value)


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
        EngineOption(
            "schedules",
            "Also write a workflow that commits the runs that are due, at these times.",
            "CRON",
            "*/15 * * * *",
            check=_check_github_cron,
        ),
    ),
    _build_github_delivery_files,
)
