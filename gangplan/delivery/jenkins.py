"""Jenkins: a declarative pipeline."""

from __future__ import annotations

from collections.abc import Mapping

from gangplan.delivery.engine import Engine, Given
from gangplan.delivery.options import IMAGE, PREFIX


def _files(given: Given) -> Mapping[str, str]:
    from gangplan.gitops.ci import CiOptions, jenkins_files

    return jenkins_files(CiOptions(workspace=given["prefix"] or ".", image=given["image"]))


ENGINE = Engine("jenkins", "Write a declarative Jenkins pipeline.", (PREFIX, IMAGE), _files)
