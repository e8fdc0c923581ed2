"""The kinds of sources: the objects that each takes, and the function that reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gangplan.findings import Finding, Location
from gangplan.imports.account import Account
from gangplan.imports.jobset import read_jobset
from gangplan.imports.managed.azureml import is_command_job, read_azureml
from gangplan.imports.managed.azureml_pipeline import find_azureml
from gangplan.imports.managed.sagemaker import is_training_job, read_sagemaker
from gangplan.imports.mpijob import read_mpijob
from gangplan.imports.plainjob import read_plain_job
from gangplan.imports.scripted.kinds import SUFFIXES, find_pbs, find_slurm, read_pbs, read_slurm
from gangplan.imports.sources import OtherObject, SourceObject, objects_of
from gangplan.imports.trainingjobs import (
    JAXJOB,
    PADDLEJOB,
    PYTORCHJOB,
    TFJOB,
    XGBOOSTJOB,
    JobKind,
    read_job,
)
from gangplan.imports.trainjob import read_trainjob
from gangplan.imports.volcano import read_volcano
from gangplan.imports.workload import Workload
from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.records import dataclass

Finder = Callable[[Sequence[Path], Mapping[str, str]], tuple[list[SourceObject], list[Finding]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source.

    `takes` returns whether an object of a file is of the kind; `read` may raise ValueError.
    """

    name: str
    label: str
    takes: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Account, Sequence[OtherObject]], Workload]
    suffixes: tuple[str, ...] = (".yaml", ".yml", ".json")
    has_templates: bool = True
    finder: Finder | None = None

    def find(
        self, files: Sequence[Path], filled: Mapping[str, str]
    ) -> tuple[list[SourceObject], list[Finding]]:
        """Return the sources of the kind in files."""
        if self.finder is not None:
            return self.finder(files, filled)
        return objects_of(files, self.takes, filled)

    def place(self, path: Path) -> Location:
        """Return the location of a whole file."""
        return Location(path.as_posix())


def _script(
    name: str, label: str, read: Callable[[Account, Sequence[OtherObject]], Workload], find: Finder
) -> Kind:
    """Return a kind of batch script, whose variables are the shell's."""
    return Kind(name, label, lambda value: True, read, SUFFIXES, False, find)


def _of(kind: str, *groups: str) -> Callable[[Mapping[str, Any]], bool]:
    def takes(value: Mapping[str, Any]) -> bool:
        return value.get("kind") == kind and str(value.get("apiVersion", "")).partition("/")[0] in groups

    return takes


def _job(kind: JobKind) -> Kind:
    """Return a kind of the training operator."""
    return Kind(kind.label.lower(), kind.label, _of(kind.label, "kubeflow.org"), partial(read_job, kind))


KINDS: dict[str, Kind] = {
    "mpijob": Kind("mpijob", MPIJOB.kind, _of(MPIJOB.kind, MPIJOB.group), read_mpijob),
    "pytorchjob": _job(PYTORCHJOB),
    "trainjob": Kind("trainjob", TRAINJOB.kind, _of(TRAINJOB.kind, TRAINJOB.group), read_trainjob),
    "jobset": Kind("jobset", "JobSet", _of("JobSet", "jobset.x-k8s.io"), read_jobset),
    "job": Kind("job", "Job", _of("Job", "batch"), read_plain_job),
    "volcano": Kind("volcano", "Job of Volcano", _of("Job", "batch.volcano.sh"), read_volcano),
    **{one.label.lower(): _job(one) for one in (TFJOB, XGBOOSTJOB, JAXJOB, PADDLEJOB)},
    "slurm": _script("slurm", "Slurm batch script", read_slurm, find_slurm),
    "pbs": _script("pbs", "PBS batch script", read_pbs, find_pbs),
    "sagemaker": Kind(
        "sagemaker", "training job of SageMaker", is_training_job, read_sagemaker, has_templates=False
    ),
    "azureml": Kind(
        "azureml", "job of Azure ML", is_command_job, read_azureml, has_templates=False, finder=find_azureml
    ),
}
