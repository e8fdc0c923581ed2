"""The digest of a spec, which differs between specs that make different runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from gangplan.spec.job import TrainingJob

# Fields that may change without a new run.
_NOT_HASHED = {"after", "description", "keep", "log_retention", "retired", "schedule", "state"}


def compute_spec_digest(spec: TrainingJob, files: Mapping[str, bytes] | None = None) -> str:
    """Return a hash of what the user wrote, except fields that may change without a new run.

    These are description, logRetention, state, keep, retired, and the schedule and the jobs that it comes after, which
    decide when runs start, not what they are. `files` are the files in the spec's folder that it mounts.
    """
    written = spec.model_dump(mode="json", exclude=_NOT_HASHED, exclude_unset=True)
    if files:
        written["files"] = {
            **written["files"],
            **{
                name: [written["files"][name], hashlib.sha256(data).hexdigest()]
                for name, data in files.items()
            },
        }
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()[:16]
