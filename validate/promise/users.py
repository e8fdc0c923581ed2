"""Checks of the user of the program: sshd, its keys and the entry in /etc/passwd belong to the image's user.

Trainer mounts the keys root:fsGroup 0640 from 2.3 on; OpenSSH refuses a key that its own user shares, and a
user without a name (Trainer v2.3.0 plugins/mpi; OpenSSH 9 sshkey, observed). Neither matters to plain torch.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.findings import FieldPath
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import ExpandedRole, ExpandedRun
from gangplan.validate.promise.words import report_broken_promise

Found = Iterator[tuple[int, Problem]]


def check_promised_program_user(laid: ExpandedRun) -> Found:
    """Check that the user and group can read the keys."""
    if not laid.uses_mpi:
        return
    for role in laid.present:
        yield from _check_promised_run_as_user(laid, role)
        yield from _check_promised_pod_fs_group(laid, role)


def _check_promised_run_as_user(laid: ExpandedRun, role: ExpandedRole) -> Found:
    image = laid.unit.job.image
    pod, own = role.spec.get("securityContext") or {}, (role.container or {}).get("securityContext") or {}
    built = own.get("runAsUser", pod.get("runAsUser"))
    if built == image.uid:
        return
    at: FieldPath = (*(role.box if "runAsUser" in own else role.pod), "securityContext", "runAsUser")
    who = "the image's default user" if built is None else "root" if built == 0 else f"user {built}"
    message = (
        f"{role.title} would run as {who}; SSH keys and account of the image are those of user {image.uid}"
    )
    uid = built or image.uid
    help = f"Write user: {{uid: {uid}}} for '{image.name}' in images/catalog.yaml, once the image has it."
    yield laid.runtime, report_broken_promise(at, message, help)


def _check_promised_pod_fs_group(laid: ExpandedRun, role: ExpandedRole) -> Found:
    """Check that the pod has a group; from Trainer 2.3 on only the pod's group may read the keys."""
    context = role.spec.get("securityContext") or {}
    job = laid.unit.job
    needs_group = job.backend.by_jobset and job.platform.trainer_line.keys_need_group
    if needs_group and context.get("fsGroup") is None:
        message = f"{role.title} could not read the SSH keys, which belong to root and to the pod's fsGroup"
        help = f"Keep a group: fsGroup: {laid.unit.job.image.gid}."
        yield laid.runtime, report_broken_promise((*role.pod, "securityContext", "fsGroup"), message, help)
