"""GitLab: a CI/CD component and a pipeline that includes it."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.delivery.engine import EngineInput, GitopsEngine
from gangplan.delivery.options import IMAGE_OPTION, PREFIX_OPTION


def _build_gitlab_files(given: EngineInput) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, render_gitlab_files

    return render_gitlab_files(CiOptions(workspace=given["prefix"] or ".", image=given["image"]))


ENGINE = GitopsEngine(
    "gitlab",
    "Write a GitLab CI/CD component and a pipeline that includes it: code quality, JUnit, plan.",
    (PREFIX_OPTION, IMAGE_OPTION),
    _build_gitlab_files,
)
