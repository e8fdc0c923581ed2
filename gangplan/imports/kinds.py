"""The kinds of sources: the objects that each takes, and the function that reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gangplan.findings import Finding, Location
from gangplan.imports.account import Account
from gangplan.imports.jobset import read_imported_jobset
from gangplan.imports.managed.azureml import is_azureml_command_job, read_azureml
from gangplan.imports.managed.azureml_pipeline import find_azureml_jobs
from gangplan.imports.managed.sagemaker import is_training_job, read_sagemaker
from gangplan.imports.mpijob import read_imported_mpijob
from gangplan.imports.plainjob import read_imported_plain_job
from gangplan.imports.scripted.kinds import (
    SCRIPT_SUFFIXES,
    find_pbs_scripts,
    find_slurm_scripts,
    read_pbs_script,
    read_slurm_script,
)
from gangplan.imports.sources import OtherObject, SourceObject, read_importable_objects_from_files
from gangplan.imports.trainingjobs import (
    JAXJOB,
    PADDLEJOB,
    PYTORCHJOB,
    TFJOB,
    XGBOOSTJOB,
    JobKind,
    read_imported_training_job,
)
from gangplan.imports.trainjob import read_imported_trainjob
from gangplan.imports.volcano import read_volcano
from gangplan.imports.workload import SourceJob
from gangplan.model.backend import MPIJOB, TRAINJOB
from gangplan.records import dataclass

Finder = Callable[[Sequence[Path], Mapping[str, str]], tuple[list[SourceObject], list[Finding]]]


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A kind of source.

    `takes` returns whether an object of a file is of the kind; `read` may raise ValueError.
    """

    name: str
    label: str
    takes: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Account, Sequence[OtherObject]], SourceJob]
    suffixes: tuple[str, ...] = (".yaml", ".yml", ".json")
    has_templates: bool = True
    finder: Finder | None = None
    is_script: bool = False

    def find(
        self, files: Sequence[Path], filled: Mapping[str, str]
    ) -> tuple[list[SourceObject], list[Finding]]:
        """Return the sources of the kind in files."""
        if self.finder is not None:
            return self.finder(files, filled)
        return read_importable_objects_from_files(files, self.takes, filled)

    def place(self, path: Path) -> Location:
        """Return the location of a whole file."""
        return Location(path.as_posix())


def _build_batch_script_kind(
    name: str, label: str, read: Callable[[Account, Sequence[OtherObject]], SourceJob], find: Finder
) -> SourceKind:
    """Return a kind of batch script, whose variables are the shell's."""
    return SourceKind(name, label, lambda value: True, read, SCRIPT_SUFFIXES, False, find, True)


def _build_object_kind_check(kind: str, *groups: str) -> Callable[[Mapping[str, Any]], bool]:
    def takes(value: Mapping[str, Any]) -> bool:
        return value.get("kind") == kind and str(value.get("apiVersion", "")).partition("/")[0] in groups

    return takes


def _build_training_job_source_kind(kind: JobKind) -> SourceKind:
    """Return a kind of the training operator."""
    return SourceKind(
        kind.label.lower(),
        kind.label,
        _build_object_kind_check(kind.label, "kubeflow.org"),
        partial(read_imported_training_job, kind),
    )


SOURCE_KINDS: dict[str, SourceKind] = {
    "mpijob": SourceKind(
        "mpijob", MPIJOB.kind, _build_object_kind_check(MPIJOB.kind, MPIJOB.group), read_imported_mpijob
    ),
    "pytorchjob": _build_training_job_source_kind(PYTORCHJOB),
    "trainjob": SourceKind(
        "trainjob",
        TRAINJOB.kind,
        _build_object_kind_check(TRAINJOB.kind, TRAINJOB.group),
        read_imported_trainjob,
    ),
    "jobset": SourceKind(
        "jobset", "JobSet", _build_object_kind_check("JobSet", "jobset.x-k8s.io"), read_imported_jobset
    ),
    "job": SourceKind("job", "Job", _build_object_kind_check("Job", "batch"), read_imported_plain_job),
    "volcano": SourceKind(
        "volcano", "Job of Volcano", _build_object_kind_check("Job", "batch.volcano.sh"), read_volcano
    ),
    **{
        one.label.lower(): _build_training_job_source_kind(one)
        for one in (TFJOB, XGBOOSTJOB, JAXJOB, PADDLEJOB)
    },
    "slurm": _build_batch_script_kind("slurm", "Slurm batch script", read_slurm_script, find_slurm_scripts),
    "pbs": _build_batch_script_kind("pbs", "PBS batch script", read_pbs_script, find_pbs_scripts),
    "sagemaker": SourceKind(
        "sagemaker", "training job of SageMaker", is_training_job, read_sagemaker, has_templates=False
    ),
    "azureml": SourceKind(
        "azureml",
        "job of Azure ML",
        is_azureml_command_job,
        read_azureml,
        has_templates=False,
        finder=find_azureml_jobs,
    ),
}
