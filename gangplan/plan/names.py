"""How long a run's name may be, and the name itself."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from gangplan.model.backend import BY_HOLDER, BY_KIND, TRAINJOB, Backend
from gangplan.model.backend import SCHEDULED as SCHEDULED
from gangplan.model.job import HASH_LENGTH as HASH_LENGTH
from gangplan.model.job import PLACEHOLDER as PLACEHOLDER
from gangplan.model.job import Role
from gangplan.objects import Body, dump
from gangplan.plan.layout import Layout

# What stands for the end of a run's name where a schedule makes it, which is the UTC time of its start.
DATED = "20001231-2359"

# What must not change of an object.
FIXED = ("spec", "data", "binaryData")
_SPEC = re.compile(r"\nspec:(?=[ \n])")
# What begins the next field of an object: entries of a list stand as far left as its name.
_TOP = re.compile(r"\n(?!- )[^ \n]")

# Names of pods are host names, and these have at most 63 characters (DNS-1035 labels).
_LONGEST = 63


def name_budget(
    layout: Layout, uses_mpi: bool, roles: Sequence[Role] = (), backend: Backend = TRAINJOB
) -> int:
    """The longest run name that yields legal pod names.

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


def run_name(job: str, digest: str) -> str:
    """<job>-<first eight hexadecimal digits of the content's hash>."""
    return f"{job}-{digest[:HASH_LENGTH]}"


def is_hashed(kind: str | None) -> bool:
    """Whether what an object of a run holds must not change while the run runs."""
    return kind in BY_HOLDER or kind in BY_KIND or kind == "ConfigMap"


def content_hash(bodies: Sequence[Body], run: int, texts: Sequence[str] = ()) -> str:
    """The hash in a run's name: everything that must not change while it runs, and the run number.

    That is the whole runtime, the files that come with the run, and what Trainer makes immutable in the TrainJob (2.2 and later: runtimeRef,
    trainer, activeDeadlineSeconds). Metadata and network policies may change without a new run. `texts` are the
    objects as `dump` writes them, where they are written already.
    """
    digest = hashlib.sha256(f"run {run}\n".encode())
    for index, body in enumerate(bodies):
        if is_hashed(body["kind"]):
            has_text = texts and "spec" in body
            digest.update((_spec_of(body, texts[index]) if has_text else _fixed(body)).encode())
    return digest.hexdigest()


def _fixed(body: Body) -> str:
    """What must not change of an object."""
    return dump({"kind": body["kind"], **{name: body[name] for name in FIXED if name in body}})


def _spec_of(body: Body, text: str) -> str:
    """The same, cut out of the object's text: its spec stands there in the same lines."""
    begin = _SPEC.search(text)
    if begin is None:
        return _fixed(body)
    is_last = next(reversed(body)) == "spec"  # as in the text, which begins with other fields
    end = None if is_last else _TOP.search(text, begin.end())
    start, stop = begin.start() + 1, end.start() + 1 if end else len(text)
    return f"kind: {body['kind']}\n{text[start:stop]}"


HOSTFILE = "/etc/mpi/hostfile"  # written by Trainer (plugins/mpi), one `host slots=N` a line
HYDRA_HOSTS = "/tmp/gangplan-hosts"  # their names alone
HYDRA_HOSTFILE = "/tmp/gangplan-hostfile"  # the same hosts as Hydra reads them, `host:N`
