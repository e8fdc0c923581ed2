"""Lines that healthy programs print, too, never come before a failure."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.diagnose.levels import is_quoted, is_warning
from tests.diagnose.test_causes import judged
from tests.workspaces import gangplan

RAISED = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: no labels'
LIBRARY = "cannot open shared object file: No such file or directory"
RETRYING = (
    "Retrying (Retry(total=2, connect=None)) after connection broken by 'NewConnectionError(\"Failed to establish a "
    "new connection: [Errno 111] Connection refused\")': /simple/wandb/"
)
#: A line, and the cause that it would name on its own; None if it names none.
HARMLESS = {
    "TensorFlow without TensorRT": (
        (
            f"2026-01-01 10:00:00.123456: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] "
            f"Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: {LIBRARY}"
        ),
        "library-missing",
    ),
    "TensorFlow without TensorRT, cut": (
        f"Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: {LIBRARY}",
        "library-missing",
    ),
    "TensorFlow on CPUs": (
        (
            "2026-01-01 10:00:00.1: E tensorflow/compiler/xla/stream_executor/cuda/cuda_driver.cc:268] failed call to "
            "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
        ),
        "gpu-missing",
    ),
    "torch on CPUs": (
        (
            "/usr/lib/python3/torch/cuda/__init__.py:118: UserWarning: CUDA initialization: Found no NVIDIA driver on "
            "your system."
        ),
        "gpu-missing",
    ),
    "Open MPI does not know a device": (
        "WARNING: No preset parameters were found for the device that Open MPI\ndetected:",
        None,
    ),
    "Open MPI has a component for what is not there": (
        (
            "[h:1] mca_base_component_repository_open: unable to open mca_btl_openib: librdmacm.so.1: "
            f"{LIBRARY} (ignored)"
        ),
        "mpi-versions",
    ),
    "NCCL without InfiniBand": ("h:1:1 [0] NCCL INFO NET/IB : No device found.", "slow-network"),
    "UCX without a device": (
        "[1767261600.1] [h:1:0] ucp_context.c:1077 UCX  WARN  network device 'mlx5_0:1' is not available",
        "slow-network",
    ),
    "libibverbs, which nothing uses": (
        "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes.",
        "locked-memory",
    ),
    "urllib3 tries again": (f"WARNING {RETRYING}", "no-internet"),
    "pip tries again": (f"\x1b[33mWARNING: {RETRYING}\x1b[0m", "no-internet"),
    "logging's own form": (f"WARNING:urllib3.connectionpool:{RETRYING}", "no-internet"),
    "a level in brackets": ("2026-01-01 10:00:00 [warning] OSError: No space left on device", "disk-full"),
    "a level in JSON": ('{"message": "CUDA out of memory", "level": "WARNING"}', "gpu-memory"),
    "a level in logfmt": ("time=1 level=info msg=\"saw 'CUDA out of memory', smaller batch\"", "gpu-memory"),
    "torch's own level": ("[W socket.cpp:663] [c10d] address already in use", "address-in-use"),
    "a step that is skipped": ("INFO: loss is nan, step skipped", "not-a-number"),
    "a tool that the script can do without": (
        "/app/start.sh: line 3: nvidia-smi: command not found",
        "program-missing",
    ),
    "sshd without one of its keys": (
        "Unable to load host key: /etc/ssh/ssh_host_dsa_key",
        "sshd-broken",
    ),
    "sshd and a probe": (
        "kex_exchange_identification: Connection closed by remote host\nConnection closed by 10.0.0.1 port 45120",
        None,
    ),
    "what nothing could catch": (
        "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\nOSError: no",
        "exception",
    ),
    "a program's own arguments": ("Namespace(lr=0.1, msg='No space left on device handled')", None),
    "a command of set -x": ("+ grep -c OOMKilled events.txt", None),
    "a count of errors": ("GPU 0: 0 uncorrectable ECC errors", None),
    "something else is insufficient": ("Insufficient samples of class 3, oversampling", None),
}
FAILURES = {
    "exception": RAISED,
    "nccl-timeout": "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)",
    "gpu-assert": "RuntimeError: CUDA error: an illegal memory access was encountered",
    "segmentation-fault": "Fatal Python error: Segmentation fault",
}


def found_in(folder: Path, log: str) -> list[tuple[str, bool]]:
    """Return the causes that are found in a log, and whether each is a minor one."""
    (folder / "run.log").write_text(f"{log}\n")
    (verdict,) = judged(folder)
    return [(one.cause.id, one.is_minor) for one in verdict.found]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_line_comes_after_the_failure(name: str, failure: str, tmp_path: Path) -> None:
    line, cause = HARMLESS[name]
    found = found_in(tmp_path, f"{line}\nstep 1\n{FAILURES[failure]}")
    assert found[0] == (failure, False)
    if cause is None:
        assert [one for one in found if one[0] not in (failure, "exception")] == []
    elif cause != failure:
        assert (cause, True) in found


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_line_alone_names_at_most_its_own_cause(name: str, tmp_path: Path) -> None:
    line, cause = HARMLESS[name]
    assert [one for one, _ in found_in(tmp_path, f"{line}\nall done")] == ([cause] if cause else [])


def test_a_note_does_not_explain_why_a_rank_failed(tmp_path: Path) -> None:
    ended = "prterun detected that one or more processes exited with non-zero status\n  Exit code: 3"
    found = found_in(tmp_path, f"{HARMLESS['NCCL without InfiniBand'][0]}\n{ended}")
    assert found == [("rank-failed", False), ("slow-network", True)]
    outcome = gangplan("diagnose", tmp_path)
    assert "cause: not known" in outcome.out
    assert "also seen, and mostly harmless:\n    - it does not use the fast network" in outcome.out


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @", "ssh-key-permissions"),
        ("@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @", "ssh-host-key"),
        ("UserWarning: CUDA initialization: The NVIDIA driver on your system is too old", "gpu-driver"),
        ("INFO Worker 3 OOMKilled", "out-of-memory"),
        ("  Warning  Failed  2m  kubelet  Failed to pull image: manifest unknown", "image-not-found"),
        ("W tensorflow/core/op_kernel.cc:1] OP_REQUIRES failed: OOM when allocating tensor", "gpu-memory"),
        ("Connection closed by 10.0.0.7 port 2222", "ssh-refused"),
        ("h:1:1 [0] NCCL WARN Net: connection closed by remote peer", "nccl-network"),
    ],
)
def test_a_failure_that_is_called_a_warning_still_counts(line: str, cause: str, tmp_path: Path) -> None:
    found = dict(found_in(tmp_path, f"{line}\n{RAISED}"))
    assert not found[cause]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NCCL_DEBUG=INFO python: X", False),
        ("ERROR: X", False),
        ("h:1 [0] NCCL WARN X", False),
        ("  Warning  Failed  X", False),
        ("/data/INFO/file: X", False),
        ("| INFO | X", True),
        ("W1030 12:00:00.123000 41 torch/distributed/run.py:1] X", True),
        ("[W1030 12:00:00.123 socket.cpp:663] X", True),
        ("E1030 12:00:00.123000 41 torch/distributed/run.py:1] X", False),
        ("X WARNING", False),
    ],
)
def test_the_level_of_a_line(line: str, expected: bool) -> None:
    assert is_warning(line, line.index("X")) == expected


def test_arguments_are_not_what_a_program_says() -> None:
    assert is_quoted("TrainingArguments(output_dir='x', note='X')", 40)
    assert not is_quoted("ValueError in load(x): X", 23)


def test_the_last_line_of_a_traceback_alone_is_an_exception(tmp_path: Path) -> None:
    """`kubectl logs --tail` cuts off the lines before it."""
    found = found_in(tmp_path, f"{HARMLESS['NCCL without InfiniBand'][0]}\nValueError: no labels")
    assert found == [("exception", False), ("slow-network", True)]
    assert found_in(tmp_path, "[rank1]: KeyError: 'x'")[0] == ("exception", False)
    assert found_in(tmp_path, "saw ValueError: 3 times; Error: 2.1") == []
    assert found_in(tmp_path, f"{RAISED}")[0] == ("exception", False)
    library = HARMLESS["TensorFlow without TensorRT"][0]
    assert found_in(tmp_path, f"{library}\nValueError: no labels")[0] == ("exception", False)
