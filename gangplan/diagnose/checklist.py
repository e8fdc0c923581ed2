"""Answer the questions that people go through first: have the pods started, is it the network, the GPUs' memory, the data?"""

from __future__ import annotations

from gangplan.diagnose.verdict import RunDiagnosis
from gangplan.records import dataclass

TROUBLE, NO_SIGN, NOT_KNOWN = "trouble", "no sign of trouble", "not known"


@dataclass(frozen=True, slots=True)
class Check:
    """A question and its answer; `causes` are the causes that mean trouble."""

    question: str
    answer: str
    causes: tuple[str, ...] = ()


# Each question with the causes that mean trouble.
_QUESTIONS = {
    "pods started": (
        "quota-wait quota-never queue-inactive topology-full admission-check not-ready-in-time deactivated "
        "pods-refused object-quota account-missing webhook-down runtime-missing no-gpu no-room no-matching-node "
        "volume-pending volume-zone image-not-found image-pull image-forbidden registry-unreachable image-architecture "
        "image-name image-disk image-root config-missing launch-scripts-missing launch-scripts program-missing "
        "program-not-executable program-architecture folder-missing mount-failed pod-network gpu-allocation"
    ),
    "network": (
        "pod-network worker-unreached hostfile-differs mpi-not-all-workers ssh-refused ssh-name ssh-denied ssh-host-key "
        "ssh-key-permissions sshd-broken mpi-unreachable mpi-timeout daemon-lost nccl-timeout gloo-timeout horovod-stalled "
        "peer-lost nccl-network slow-network locked-memory rendezvous-timeout no-internet preflight-unfinished"
    ),
    "GPU memory": "gpu-memory",
    "data": (
        "volume-pending volume-zone mount-failed path-missing not-permitted read-only disk-full evicted-disk access-denied "
        "checkpoint-mismatch preflight-storage"
    ),
}


def answer_checklist(verdict: RunDiagnosis) -> tuple[Check, ...]:
    """Return the questions with the answers that the evidence about a run gives.

    Without a log, the network, the GPUs and the data are not known; the objects of pods are enough for pods.
    """
    found = [one.cause.id for one in verdict.found if not one.is_minor]
    checks = []
    for question, causes in _QUESTIONS.items():
        named = tuple(one for one in found if one in causes.split())
        is_seen = not all(one.is_described for one in verdict.logs)
        if question == "pods started":
            is_seen = bool(verdict.logs) or verdict.has_pods
        checks.append(Check(question, TROUBLE if named else NO_SIGN if is_seen else NOT_KNOWN, named))
    return tuple(checks)


def list_checked_causes() -> frozenset[str]:
    """Return every cause that answers a question."""
    return frozenset(cause for causes in _QUESTIONS.values() for cause in causes.split())
