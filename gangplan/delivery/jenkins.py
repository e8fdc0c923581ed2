"""Jenkins: a declarative pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.delivery.engine import EngineInput, GitopsEngine
from gangplan.delivery.options import IMAGE_OPTION, PREFIX_OPTION


def _build_jenkins_files(given: EngineInput) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, render_jenkins_files

    return render_jenkins_files(CiOptions(workspace=given["prefix"] or ".", image=given["image"]))


ENGINE = GitopsEngine(
    "jenkins", "Write a declarative Jenkins pipeline.", (PREFIX_OPTION, IMAGE_OPTION), _build_jenkins_files
)
