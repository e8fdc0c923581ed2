"""The name of a run, its hash, and its longest legal length."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from gangplan.model.backend import BACKEND_BY_HOLDER, BACKEND_BY_KIND, TRAINJOB, Backend
from gangplan.model.backend import SCHEDULE_LABEL as SCHEDULE_LABEL
from gangplan.model.job import HASH_LENGTH as HASH_LENGTH
from gangplan.model.job import HASH_PLACEHOLDER as HASH_PLACEHOLDER
from gangplan.model.job import ResolvedRole
from gangplan.model.kinds import CLAIM_TEMPLATE_KIND
from gangplan.objects import Body, dump_object_as_block_yaml
from gangplan.plan.layout import RunLayout

# A stand-in for the suffix of a name that a schedule creates: the UTC time of its start.
DATED_SUFFIX = "20001231-2359"

# Fields of an object that must not change.
FIXED_FIELDS = ("spec", "data", "binaryData")
_SPEC = re.compile(r"\nspec:(?=[ \n])")
# The start of an object's next field; list entries are indented no further than their field's name.
_TOP = re.compile(r"\n(?!- )[^ \n]")

# Pod names are host names, which have at most 63 characters (DNS-1035 labels).
_LONGEST = 63


def compute_run_name_budget(
    layout: RunLayout, roles: Sequence[ResolvedRole] = (), backend: Backend = TRAINJOB
) -> int:
    """Return the length of the longest run name that yields legal pod names.

    44 for MPI and 46 to 48 for torch as a TrainJob, 52 to 54 as an MPIJob.
    """
    beside, longest = dict(backend.beside), 0
    if layout.launcher_pods:
        longest = len(beside["launcher"])
    if layout.node_pods:
        longest = max(longest, len(beside["worker"].format(last=layout.node_pods - 1)))
    for role in roles:
        longest = max(longest, len(f"-{role.name}-0-{role.workers - 1}-abcde"))
    return _LONGEST - longest


def format_run_name(job: str, digest: str) -> str:
    """Return <job>-<first eight hexadecimal digits of the content's hash>."""
    return f"{job}-{digest[:HASH_LENGTH]}"


def is_hashed_kind(kind: str | None) -> bool:
    """Return whether the content of a run's objects of this kind must not change while the run exists."""
    is_made = kind in BACKEND_BY_HOLDER or kind in BACKEND_BY_KIND
    return is_made or kind in ("ConfigMap", CLAIM_TEMPLATE_KIND)


def hash_content_for_run_name(bodies: Sequence[Body], run: int, texts: Sequence[str] = ()) -> str:
    """Return the hash in a run's name, of the run number and everything that must not change during the run.

    It covers the whole runtime, the files and claims that come with the run, and what Trainer makes immutable
    in the TrainJob (2.2 and later: runtimeRef, trainer, activeDeadlineSeconds). Metadata and network policies
    may change without a new run. `texts` are the objects as `dump_object_as_block_yaml` writes them, if they are written already.
    """
    digest = hashlib.sha256(f"run {run}\n".encode())
    for index, body in enumerate(bodies):
        if is_hashed_kind(body["kind"]):
            if body["kind"] == CLAIM_TEMPLATE_KIND:  # a run may have several, which only names distinguish
                digest.update(f"name: {body['metadata']['name']}\n".encode())
            has_text = texts and "spec" in body
            digest.update(
                (
                    _extract_text_for_run_name_hash(body, texts[index])
                    if has_text
                    else _dump_fixed_fields(body)
                ).encode()
            )
    return digest.hexdigest()


def _dump_fixed_fields(body: Body) -> str:
    """Return the fields of an object that must not change, as text."""
    return dump_object_as_block_yaml(
        {"kind": body["kind"], **{name: body[name] for name in FIXED_FIELDS if name in body}}
    )


def _extract_text_for_run_name_hash(body: Body, text: str) -> str:
    """Return the same for an object with a spec, cut out of its text, which has the same lines."""
    begin = _SPEC.search(text)
    if begin is None:
        return _dump_fixed_fields(body)
    is_last = next(reversed(body)) == "spec"  # in the body as in the text, which begins with other fields
    end = None if is_last else _TOP.search(text, begin.end())
    start, stop = begin.start() + 1, end.start() + 1 if end else len(text)
    return f"kind: {body['kind']}\n{text[start:stop]}"


HOSTFILE_PATH = "/etc/mpi/hostfile"  # written by Trainer (plugins/mpi), one `host slots=N` per line
HYDRA_HOSTFILE_PATH = "/tmp/gangplan-hostfile"  # the same hosts as Hydra reads them, `host:N`
