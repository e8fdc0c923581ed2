"""GitLab: a CI/CD component and a pipeline that includes it."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.delivery.engine import Engine, Given
from gangplan.delivery.options import IMAGE, PREFIX


def _files(given: Given) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, gitlab_files

    return gitlab_files(CiOptions(workspace=given["prefix"] or ".", image=given["image"]))


ENGINE = Engine(
    "gitlab",
    "Write a GitLab CI/CD component and a pipeline that includes it: code quality, JUnit, plan.",
    (PREFIX, IMAGE),
    _files,
)
