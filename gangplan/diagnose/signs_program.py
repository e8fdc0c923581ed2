"""Messages of programs in logs: Python, PyTorch, NCCL, CUDA, UCX and clients of services.

Sources: PyTorch 2.4 to 2.9 (torch/distributed/elastic, c10d/ProcessGroupNCCL.cpp, utils/data), NCCL 2.18 to
2.28 (src/transport, src/misc), UCX 1.15 to 1.19 (src/uct/ib), Open MPI 4.1 (help-mpi-btl-openib.txt), CUDA's
error strings, NVIDIA's Xid catalog, CPython 3.9 to 3.14, glibc's dynamic linker, curl, requests and urllib3,
botocore, huggingface_hub, Horovod 0.28.
"""

from __future__ import annotations

from gangplan.diagnose.signs import Sign

_PYTHON = r"(?P<what>[\w.]+(?:Error|Exception|Interrupt|Exit|Timeout|Failure)\b[^\n]*)"
# The last line of a traceback, after the prefixes of mpirun, torch or kubectl.
_RAISED = rf"^(?:\[[^\]]*\](?:<\w+>)?:? ?|(?:launcher|worker \d+) *\| )*{_PYTHON}"
_HEAP = r"\b(?:free|munmap_chunk|[mr]e?alloc|malloc_consolidate)\(\): (?:invalid|double|corrupt|[um]\w*aligned|mismatch|memory|unsorted|smallbin|largebin|too many)"

PROGRAM_SIGNS = (
    # Memory.
    Sign("gpu-memory", "CUDA out of memory", r"out of memory(?:\. Tried to allocate (?P<more>[\d.]+ \w+))?"),
    Sign("gpu-memory", "HIP out of memory"),
    # cudaErrorMemoryAllocation, where PyTorch's own allocator was not asked.
    Sign("gpu-memory", "CUDA error: out of memory"),
    Sign("gpu-memory", "HIP error: out of memory"),
    Sign("gpu-memory", "CUDA_ERROR_OUT_OF_MEMORY"),
    Sign("gpu-memory", "OOM when allocating tensor", is_sure=True),
    Sign("gpu-memory", "RESOURCE_EXHAUSTED", r"(?i)out of memory|allocat"),
    Sign("gpu-memory", "CUBLAS_STATUS_ALLOC_FAILED"),
    Sign("shared-memory", "is killed by signal: Bus error"),
    Sign("shared-memory", "Unexpected bus error encountered in worker"),
    Sign("shared-memory", "workers are out of shared memory"),
    Sign("shared-memory", "/dev/shm/nccl-", r"(?i)error|fail"),
    Sign("shared-memory", "/dev/shm", r"(?i)No space left|size is too small"),
    Sign("shared-memory", "unable to open shared memory object"),
    Sign("shared-memory", "Bus error (core dumped)"),
    # bash's message without a core dump: "line 1:    41 Bus error               python3 train.py".
    Sign("shared-memory", "Bus error  ", r"line \d+: +\d+ Bus error +\S"),
    Sign("killed", "DataLoader worker", r"is killed by signal: Killed"),
    Sign("out-of-memory", "MemoryError", r"^\s*(?:numpy[\w.]*\.)?_?(?:Array)?MemoryError|MemoryError:"),
    Sign("out-of-memory", "Cannot allocate memory", r"\[Errno 12\]"),
    Sign(
        "out-of-memory",
        "DefaultCPUAllocator: can't allocate memory",
        r"tried to allocate (?P<more>\d+ bytes)",
    ),
    # torchrun's report of the rank that ended first (elastic/multiprocessing/api.py).
    Sign("killed", "Signal 9 (SIGKILL)"),
    Sign("segmentation-fault", "Signal 11 (SIGSEGV)"),
    Sign("illegal-instruction", "Signal 4 (SIGILL)"),
    Sign("shared-memory", "Signal 7 (SIGBUS)"),
    Sign("killed", "Killed", r"(?:line \d+:\s+\d+ Killed\b|^Killed$)"),
    # GPUs.
    # PyTorch warns of a driver, and then raises that there is no GPU.
    Sign("gpu-driver", "CUDA driver version is insufficient for CUDA runtime version", is_sure=True),
    Sign("gpu-driver", "NVIDIA driver on your system is too old", is_sure=True),
    Sign("gpu-driver", "forward compatibility was attempted on non supported HW", is_sure=True),
    Sign("gpu-missing", "No CUDA GPUs are available"),
    Sign("gpu-missing", "Found no NVIDIA driver on your system"),
    Sign("gpu-missing", "no CUDA-capable device is detected"),
    Sign("gpu-missing", "only supported with GPUs, no GPUs found"),
    Sign("gpu-missing", "Torch not compiled with CUDA enabled"),
    Sign("gpu-missing", "Distributed package doesn't have NCCL built in"),
    Sign("gpu-missing", "CUDA_ERROR_NO_DEVICE"),
    Sign("gpu-missing", "CUDA error: invalid device ordinal"),
    Sign("gpu-missing", "torch.cuda.is_available() is False"),
    Sign("gpu-kernels", "no kernel image is available for execution on the device"),
    Sign("gpu-broken", "NVRM: Xid", r"Xid \([^)]*\): (?P<code>\d+)"),
    Sign("gpu-broken", "uncorrectable ECC error", r"(?<!\b0 )uncorrectable ECC"),
    Sign("gpu-broken", "fallen off the bus"),
    Sign("gpu-broken", "CUDA_ERROR_ECC_UNCORRECTABLE"),
    Sign("gpu-broken", "CUDA error: unspecified launch failure"),
    Sign("gpu-assert", "device-side assert triggered"),
    Sign("gpu-assert", "an illegal memory access was encountered"),
    # NCCL and fast networks.
    Sign(
        "nccl-timeout",
        "collective operation timeout",
        r"(?:\[Rank (?P<rank>\d+)\].*?)?collective operation timeout(?:.*OpType=(?P<what>\w+))?",
    ),
    Sign("nccl-timeout", "Some NCCL operations have failed or timed out"),
    Sign("nccl-timeout", "Timeout(ms)=", r"before timing out"),
    Sign("slow-network", "NET/IB : No device found"),
    Sign("slow-network", "provider verbs not found", r"(?i)\btcp\b"),
    Sign("slow-network", "NET/OFI", r"(?i)no eligible providers|unable to find a protocol|failed"),
    Sign("slow-network", "error initializing an OpenFabrics device"),
    Sign("slow-network", "No OpenFabrics connection schemes reported"),
    Sign("slow-network", "there are no active ports detected"),
    Sign("slow-network", "network device '", r"network device '(?P<what>[^']+)' is not available"),
    Sign("slow-network", "transport '", r"transport '(?P<what>[^']+)' is not available"),
    Sign("locked-memory", "RLIMIT_MEMLOCK is", r"is (?P<limit>\d+) bytes"),
    Sign("locked-memory", "trying to allocate some locked memory"),
    Sign("locked-memory", "max locked memory"),
    Sign("locked-memory", "ibv_reg_mr", r"(?i)cannot allocate memory"),
    Sign("locked-memory", "ibv_create_cq", r"(?i)cannot allocate memory"),
    Sign("nccl-network", "socketStartConnect: Connect to", r"Connect to (?P<host>\S+) failed"),
    Sign("nccl-network", "NCCL WARN Net", r"(?i)connection (?:reset|closed|refused)|timed out"),
    Sign("nccl-network", "NCCL WARN socket", r"(?i)connection (?:reset|closed|refused)|timed out|no route"),
    Sign(
        "nccl-network",
        "Call to connect",
        r"(?i)^(?!.*retrying).*(?:refused|reset|timed out|no route|unreachable)",
    ),
    Sign("nccl-network", "no socket interface found"),
    Sign("nccl-network", "ncclRemoteError"),
    # The exception of PyTorch, whose next line names the result.
    Sign("nccl-network", "NCCL error in", r"remote process exited or there was a network error"),
    Sign("nccl-system", "NCCL error in", r"unhandled (?:system|cuda) error|internal error|invalid usage"),
    Sign("nccl-system", "ncclSystemError"),
    Sign("nccl-system", "ncclUnhandledCudaError"),
    Sign("nccl-system", "ncclInternalError"),
    Sign("nccl-system", "ncclInvalidUsage"),
    # Gloo (third_party/gloo: transport/tcp/unbound_buffer.cc, pair.cc).
    Sign("gloo-timeout", "Timed out waiting ", r"Timed out waiting \d+ms for (?:recv|send) operation"),
    Sign("gloo-timeout", "failed to pass monitoredBarrier", r"Ranks? (?P<what>[\d, ]+\d|\d+) failed to pass"),
    # horovod/common/stall_inspector.cc, 0.28: a warning, until HOROVOD_STALL_SHUTDOWN_TIME_SECONDS.
    Sign(
        "horovod-stalled",
        "waiting for remainder of ranks",
        "",
        r"^(?:\[[^\]]*\](?:<\w+>)?: ?)*(?P<rank>\d+)!?: \[",
        is_sure=True,
    ),
    Sign("horovod-stalled", '(marked by "!") is stalled'),
    Sign("peer-lost", "Connection closed by peer [", r"closed by peer \[(?P<host>[^\]]+)\]"),
    Sign("peer-lost", "Connection reset by peer", r"gloo/transport/tcp"),
    # torchrun.
    Sign("rendezvous-timeout", "RendezvousTimeoutError"),
    Sign("rendezvous-timeout", "The client socket has timed out after", r"connect to \((?P<host>[^)]+)\)"),
    Sign("rendezvous-timeout", "waiting for clients.", r"(?P<what>\d+/\d+) clients joined"),
    Sign("rendezvous-timeout", "RendezvousConnectionError"),
    Sign("rendezvous-timeout", "coordination service", r"(?i)DEADLINE_EXCEEDED"),
    Sign("address-in-use", "ddress already in use"),
    Sign("address-in-use", "EADDRINUSE"),
    Sign("worker-process-failed", "ChildFailedError"),
    Sign(
        "worker-process-failed",
        "Root Cause (first observed failure)",
        "",
        r"(?:^ *rank +: (?P<rank>\d+)|^ *host +: (?P<host>\S+)|^ *exitcode +: (?P<code>-?\d+))",
    ),
    Sign("worker-process-failed", "failed (exitcode: ", r"exitcode: (?P<code>-?\d+)\) local_rank: \d+"),
    # Images that lack something.
    Sign("module-missing", "ModuleNotFoundError: No module named", r"named '?(?P<what>[\w.]+)"),
    Sign("module-missing", "No module named ", r"^\S*python\S*: No module named '?(?P<what>[\w.]+)"),
    Sign("library-missing", "cannot open shared object file", r"(?P<what>[\w.+-]+\.so[\w.]*): cannot"),
    Sign("library-missing", "undefined symbol: ", r"undefined symbol: (?P<what>\w+)"),
    Sign("library-missing", "version `", r"version `(?P<what>[^']+)' not found"),
    Sign("program-not-executable", "bad interpreter", r"(?P<what>\S+): bad interpreter"),
    # bash 5.2, for a script whose interpreter is missing.
    Sign(
        "program-not-executable",
        "cannot execute: required file",
        r"(?P<what>[^\s:]+): cannot execute: required file",
    ),
    Sign("program-architecture", "Exec format error"),
    # deepspeed/launcher/runner.py, 0.17: it reaches other hosts with pdsh by default.
    Sign("program-missing", "' not installed.", r"RuntimeError: launcher '(?P<what>\w+)' not installed"),
    # A shell goes on after a command that it does not find; where that was the last one, the exit code is 127.
    Sign(
        "program-missing",
        "command not found",
        r"(?:line \d+: )?(?P<what>[\w./-]+): command not found",
        is_mild=True,
    ),
    Sign(
        "program-missing",
        ": not found",
        r"sh: (?:line )?\d+: (?P<what>[\w./-]+): not found",
        is_mild=True,
    ),
    Sign("path-missing", "can't open file", r"can't open file '(?P<what>[^']+)'"),
    Sign(
        "illegal-instruction",
        "Illegal instruction",
        r"(?i)illegal instruction(?:\s+\(core dumped\)|\s*$)|line \d+: +\d+ Illegal instruction +\S",
    ),
    Sign(
        "segmentation-fault",
        "Segmentation fault",
        r"Segmentation fault(?:\s+\(core dumped\)|\s*$|: | \(11\)$)|line \d+: +\d+ Segmentation fault +\S",
    ),
    Sign("shared-memory", "Signal: Bus error (7)"),
    Sign("illegal-instruction", "Signal: Illegal instruction (4)"),
    Sign("segmentation-fault", "Fatal Python error: Segmentation fault"),
    # libstdc++; malloc and the checks of glibc 2.31 to 2.41; Open MPI's and Python's handlers of signals; bash; torchrun.
    Sign(
        "aborted",
        "terminate called ",
        r"terminate called (?:after throwing an instance of '(?P<what>[^']+)'|without an active exception|recursively)",
        r"^\s*what\(\): +(?P<more>.+)",
        1,
    ),
    *(
        Sign("aborted", needle, _HEAP)
        for needle in ("free(): ", "_chunk(): ", "lloc(): ", "_consolidate(): ")
    ),
    *(
        Sign("aborted", needle)
        for needle in (
            "double free or corruption (",
            "corrupted size vs. prev_size",
            "corrupted double-linked list",
            "*** stack smashing detected ***",
            "*** buffer overflow detected ***",
            "Signal: Aborted (6)",
            "Fatal Python error: Aborted",
            "Aborted (core dumped)",
            "Signal 6 (SIGABRT)",
        )
    ),
    Sign("aborted", "Assertion ", r": Assertion [`'].+ failed\.|Assertion failed in file \S+"),
    Sign("aborted", "Aborted  ", r"line \d+: +\d+ Aborted +\S"),
    # Services come before files, since their errors are OSErrors too.
    Sign("certificate", "CERTIFICATE_VERIFY_FAILED"),
    Sign("certificate", "self-signed certificate in certificate chain"),
    Sign("certificate", "x509: certificate signed by unknown authority"),
    Sign("certificate", "SSL certificate problem"),
    Sign("access-denied", "NoCredentialsError"),
    Sign("access-denied", "Unable to locate credentials"),
    Sign("access-denied", "DefaultCredentialsError"),
    Sign("access-denied", "GatedRepoError"),
    Sign(
        "access-denied",
        "An error occurred (",
        r"\((?:AccessDenied|403|401|InvalidAccessKeyId|ExpiredToken|SignatureDoesNotMatch|UnrecognizedClientException)[^)]*\)",
    ),
    Sign("access-denied", " Client Error: ", r"\b40[13] Client Error"),
    Sign("no-internet", "Max retries exceeded with url", r"host='(?P<host>[^']+)'"),
    Sign("no-internet", "NameResolutionError"),
    Sign("no-internet", "Failed to establish a new connection"),
    Sign("no-internet", "Could not resolve host: ", r"host: (?P<host>\S+)"),
    Sign("no-internet", "We couldn't connect to 'https://", r"'https://(?P<host>[^/']+)"),
    Sign("no-internet", "curl: (", r"curl: \((?:5|6|7|28)\)"),
    Sign("no-internet", "EndpointConnectionError", r'URL: "https?://(?P<host>[^/"]+)'),
    Sign("no-internet", "Temporary failure in name resolution"),
    # Files.
    Sign("disk-full", "No space left on device"),
    Sign("disk-full", "Disk quota exceeded"),
    Sign("read-only", "Read-only file system", r"file system(?:: '(?P<what>[^']+)')?"),
    Sign("not-permitted", "PermissionError: [Errno 13]", r"denied: '(?P<what>[^']+)'"),
    Sign(
        "not-permitted",
        "Permission denied",
        r"(?:cannot \w+ (?:directory|regular file)? ?|open |touch: |line \d+: )['‘]?(?P<what>/[^'’:\s]+)",
    ),
    Sign("path-missing", "FileNotFoundError", r"directory: '(?P<what>[^']+)'"),
    Sign("path-missing", "NotADirectoryError", r"'(?P<what>[^']+)'"),
    Sign("checkpoint-mismatch", "Error(s) in loading state_dict"),
    Sign("checkpoint-mismatch", "failed finding central directory"),
    # torch.load opened the file, but it is not a complete archive: cut off, or something else (torch 2.9).
    Sign("checkpoint-mismatch", "torch._C.PyTorchFileReader("),
    Sign("checkpoint-mismatch", "UnpicklingError"),
    Sign("checkpoint-mismatch", "size mismatch for ", r"size mismatch for (?P<what>\S+?):"),
    Sign("checkpoint-mismatch", "safetensors_rust.SafetensorError"),
    Sign("arguments", "error: unrecognized arguments: ", r"arguments: (?P<what>.+)"),
    Sign("arguments", "error: the following arguments are required: ", r"required: (?P<what>.+)"),
    Sign("arguments", "Error: No such option", r"option:? '?(?P<what>-[\w-]+)"),
    # Not only the letters, which are in many words.
    *(
        Sign(
            "not-a-number",
            f"{before}{word}",
            r"(?i)\bloss\b\W{0,12}nan\b|loss is nan|nan (?:loss|detected)|nan or inf found",
        )
        for before in (" ", ":", "=", "(")
        for word in ("nan", "NaN")
    ),
    Sign("exception", "Traceback (most recent call last)", "", _RAISED, 150),
    # The last line of a traceback whose beginning is not in the log.
    Sign(
        "exception",
        "Error: ",
        _RAISED.replace(_PYTHON, r"(?P<what>(?:[a-z_]\w*\.)*[A-Z]\w+Error: .+)"),
        is_mild=True,
    ),
)
