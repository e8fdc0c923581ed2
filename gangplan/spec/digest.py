"""What tells a spec from another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from gangplan.spec.job import TrainingJob

# What may change on a run.
_NOT_HASHED = {"after", "description", "keep", "retired", "schedule", "state"}


def digest_of(spec: TrainingJob, files: Mapping[str, bytes] | None = None) -> str:
    """A hash of what the user wrote, without what may change on a run (description, state, keep, retired), and
    without its schedule and the jobs that it comes after, which decide when runs start and not what they are.

    `files` are the files beside the spec that it mounts.
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
