"""The versions of the servers that a cluster runs, by which schemas and rules are chosen."""

from __future__ import annotations

from gangplan.model.job import Platform
from gangplan.validate.apiserver.crdrules.registry import read_imported_crds
from gangplan.validate.apiserver.schema import SchemaVersions


def choose_schema_versions_of(platform: Platform) -> SchemaVersions:
    """Return the minors by which schemas and rules are chosen."""
    return SchemaVersions(
        kubernetes=platform.kubernetes.line,
        trainer=platform.trainer.line if platform.has_trainer else None,
        kueue=platform.kueue.line if platform.kueue else None,
        jobset=platform.jobset.line if platform.has_trainer else None,
        mpi=platform.mpi_operator.line if platform.mpi_operator else None,
        crds=read_imported_crds(platform.crds),
    )
