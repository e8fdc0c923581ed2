"""Messages of SSH, Open MPI, MPICH, Intel MPI and gangplan's launch script in logs.

Sources: OpenSSH 9 (sshconnect.c, authfile.c, auth.c, sshd.c, misc.c); help texts of Open MPI 4.1.8 and of
PRRTE 3 in Open MPI 5.0 (help-*.txt), Hydra 4.2 and 5.0 of MPICH and Intel MPI 2021; templates/launch/.
tests/reality/test_diagnose.py checks what real MPIs print.
"""

from __future__ import annotations

from gangplan.diagnose.signs import Sign

_PROCESS = r"(?:Process name: +\[(?:\[[^\]]*\]|[^\[\]]*?),(?P<rank>\d+)\]|Exit code: +(?P<code>\d+))"
_FATAL = r"Fatal error in "

MPI_SIGNS = (
    # gangplan's own scripts.
    Sign("launch-scripts", "gangplan: ", r"gangplan: \S+ does not hold the launch scripts"),
    Sign("hostfile-differs", "gangplan: the hostfile names "),
    Sign("worker-unreached", "gangplan: ", r"gangplan: (?P<host>\S+) does not (?:resolve|answer)"),
    Sign("mpi-not-all-workers", "gangplan: MPI reached ", r"reached (?P<what>\d+ of \d+) workers"),
    Sign("mpi-setup-missing", "gangplan: ", r"gangplan: (?P<what>\S+) is not in the image"),
    Sign("preflight-unfinished", "gangplan: preflight did not end within"),
    Sign("preflight-unstarted", "gangplan: preflight did not run"),
    *(
        Sign(f"preflight-{name}", f"gangplan: preflight failed: {name}:", r"failed: \w+: (?P<what>.+)")
        for name in ("ranks", "hosts", "versions", "allreduce", "gpus", "memlock", "storage", "clock")
    ),
    Sign("node-lost", "to end before the command ended", r"gangplan: (?P<host>\S+) "),
    # SSH.
    Sign("ssh-name", "Could not resolve hostname", r"hostname (?P<host>\S+?):"),
    Sign(
        "ssh-refused",
        "ssh: connect to host",
        r"host (?P<host>\S+) port \d+: (?:Connection refused|Connection timed out|No route to host|Network is unreachable|Operation timed out)",
    ),
    Sign("ssh-refused", "Connection refused on ", r"on (?P<host>\S+?):(?:22|2222)\b"),
    # Not kex_exchange_identification, which sshd prints at each TCP probe of the kubelet, nor the line after it there.
    Sign("ssh-refused", "Connection ", r"^Connection (?:closed|reset) by (?P<host>\S+) port (?:22|2222)\s*$"),
    Sign("ssh-host-key", "Host key verification failed"),
    Sign("ssh-host-key", "REMOTE HOST IDENTIFICATION HAS CHANGED", is_sure=True),
    Sign(
        "ssh-denied",
        "Permission denied (",
        r"(?:(?P<host>\S+): )?Permission denied \((?:publickey|gssapi|password|keyboard)",
    ),
    Sign("ssh-denied", "Authentication refused: bad ownership or modes"),
    Sign("ssh-denied", "Too many authentication failures"),
    Sign("ssh-key-permissions", "UNPROTECTED PRIVATE KEY FILE", is_sure=True),
    Sign("ssh-key-permissions", "are too open.", r"Permissions \d+ for '(?P<what>[^']+)'"),
    Sign("ssh-key-permissions", "bad permissions", r"(?i)load key \"?(?P<what>[^\":]+)\"?: bad permissions"),
    Sign("ssh-key-permissions", "Bad owner or permissions on ", r"permissions on (?P<what>\S+)"),
    Sign("ssh-denied", "error in libcrypto", r"Load key \"(?P<what>[^\"]+)\""),
    Sign("sshd-broken", "no hostkeys available"),
    Sign("sshd-broken", "Missing privilege separation directory"),
    Sign("sshd-broken", "Privilege separation user "),
    # One kind of key that is missing among others does not stop sshd, and neither does one address of two.
    Sign("sshd-broken", "Unable to load host key", is_mild=True),
    Sign("sshd-broken", "Could not load host key", is_mild=True),
    Sign("sshd-broken", "bad configuration options", r"terminating, \d+ bad"),
    Sign("sshd-broken", "Bind to port ", r"Bind to port \d+ on \S+ failed", is_mild=True),
    Sign("sshd-broken", "Cannot bind any address"),
    Sign("user-unknown", "No user exists for uid ", r"uid (?P<what>\d+)"),
    Sign("user-unknown", "is unknown to the system", r"The user \((?P<what>\d+)\)"),
    Sign("user-unknown", "was unable to obtain the username in order to create a path"),
    # Starting daemons and ranks.
    Sign("mpi-root", "has detected an attempt to run as root"),
    Sign(
        "mpi-not-on-workers",
        "orted",
        r"(?:orted|orted-wrapper): (?:command )?not found|/orted: No such file|orted: error while loading",
    ),
    Sign(
        "mpi-not-on-workers",
        "prted",
        r"prted: (?:command )?not found|/prted: No such file|prted: error while loading",
    ),
    Sign(
        "mpi-not-on-workers",
        "hydra_",
        r"hydra_(?:pmi|bstrap)_proxy: (?:command )?not found|/hydra_(?:pmi|bstrap)_proxy: No such file|hydra_(?:pmi|bstrap)_proxy: error while loading",
    ),
    Sign("mpi-not-on-workers", "unable to find all the needed shared"),
    Sign("mpi-not-on-workers", 'was not able to find the executable "orted"'),
    Sign("too-few-slots", "There are not enough slots available", r"satisfy the (?P<what>\d+)"),
    Sign("too-few-slots", "available slots", r"(?i)more than the (?:number of )?available slots"),
    Sign("mpi-option", "unrecognized option was included", "", r"Option: +(?P<what>\S+)"),
    Sign("mpi-option", "unrecognized argument ", r"\[mpiexec@|unrecognized argument (?P<what>\S+)$"),
    Sign("mpi-option", "Error: unknown option", r"unknown option \"?(?P<what>[^\"\s]+)"),
    Sign(
        "mpi-option",
        "unrecognized option",
        r"(?i)(?:mpirun|prterun|mpiexec|prun).*unrecognized option|unrecognized option:? '?\"?(?P<what>-[\w-]+)",
    ),
    Sign("mpi-option", "mapping directive is not recognized"),
    Sign("mpi-option", "An invalid value was given for the number of processes"),
    Sign("mpi-option", "was called with an option that is not recognized"),
    Sign("mpi-binding", "binding more processes than cpus"),
    Sign("mpi-binding", "in binding more"),
    Sign("mpi-binding", "no available cpus on"),
    Sign("mpi-binding", "require binding", r"(?i)more cpus than are available|require binding"),
    Sign("program-missing", "was unable to find the specified executable file"),
    Sign(
        "program-not-executable",
        "unable to launch the specified application as it could not",
        "",
        r"Executable: +(?P<what>\S+)",
    ),
    Sign("program-missing", "execvp error on file", r"on file (?P<what>\S+) \(No such file"),
    Sign("program-not-executable", "execvp error on file", r"on file (?P<what>\S+) \(Permission denied"),
    Sign("program-architecture", "execvp error on file", r"on file (?P<what>\S+) \(Exec format"),
    # --display map and --report-bindings of Open MPI 5.0.11: a launcher of gangplan has no ranks.
    Sign("mpi-one-host", "Data for node: ", r"node: (?P<host>\S+-launcher(?:-0-0)?)[.\s]"),
    Sign(
        "mpi-one-host",
        "] Rank ",
        r"\[(?P<host>\S+-launcher(?:-0-0)?)(?:\.\S*)?:\d+\] Rank (?P<rank>\d+) (?:is |bound )",
    ),
    # Ranks that do not find each other.
    Sign("mpi-unreachable", "at least one MPI process is unreachable"),
    Sign("mpi-unreachable", "Open MPI failed to TCP connect to a peer", is_sure=True),
    Sign("mpi-unreachable", "connect() to ", r"connect\(\) to (?P<host>\S+)(?::\d+)? failed"),
    Sign("mpi-unreachable", "no active messages transport to"),
    Sign("mpi-unreachable", "no am bcopy transport to"),
    Sign("mpi-timeout", "timed out waiting for a daemon"),
    Sign("mpi-timeout", "imeout waiting for workers"),
    Sign("mpi-timeout", "PMI_Init", r"(?i)PMI_Init.*(?:timeout|failed)|PMIX.*TIMEOUT"),
    # --timeout and MPIEXEC_TIMEOUT (help-prun.txt, help-orterun.txt).
    Sign("deadline", "time limit for job execution has been reached"),
    # Open MPI 4 also prints it when it ends a job for another reason.
    Sign("mpi-versions", "PMIX ERROR: UNREACH", is_mild=True),
    Sign("mpi-versions", "PMI server not found"),
    # A program of MPICH 5 under Open MPI's mpirun (src/util/mpir_pmi.c).
    Sign("mpi-versions", "Runtime environment uses unsupported PMI version"),
    Sign("mpi-versions", "mca_base_component_repository_open: unable to open", is_mild=True),
    Sign(
        "mpi-versions",
        "undefined symbol: ",
        r"undefined symbol: (?P<what>(?:ompi|opal|orte|MPI|PMPI|mca|MPIR)_\w+)",
    ),
    Sign("mpi-versions", "libmpi", r"(?P<what>libmpi\S*\.so\S*): cannot open shared object"),
    # Calls of MPI (ompi/errhandler/help-mpi-errors.txt, help-mpi-runtime.txt; src/mpi/errhan of MPICH).
    Sign("mpi-sizes", "MPI_ERR_TRUNCATE"),
    Sign("mpi-sizes", ": Message truncated", _FATAL + r"(?:P?MPI_|internal_)(?P<what>\w+)"),
    Sign("mpi-sizes", "MPI.Exception: Message truncated"),
    Sign("mpi-init", "Fatal error in ", _FATAL + r"(?:P?MPI_|internal_)Init(?:_thread)?:"),
    Sign("mpi-init", "An error occurred in MPI_Init"),
    Sign("mpi-init", "It looks like MPI_I", r"MPI_(?:INIT|Init|init) failed for some reason"),
    Sign(
        "mpi-init",
        "No components were able to be opened in the ",
        r"in the (?P<what>pml|btl|mtl|pmix) framework",
    ),
    Sign("mpi-init", "PML ", r"PML (?P<what>\S+) cannot be selected"),
    # The classes of errors in arguments all begin so (ompi/errhandler/errcode.c; src/mpi/errhan/errnames.txt of MPICH).
    Sign("mpi-misuse", ": Invalid ", _FATAL + r"(?:P?MPI_|internal_)(?P<what>\w+: Invalid [^,]+)"),
    Sign("mpi-misuse", ": invalid ", r"MPI_ERR_(?P<what>\w+: invalid .+)"),
    Sign("mpi-misuse", "MPI.Exception: Invalid ", r"(?P<what>Invalid [^,]+)"),
    Sign(
        "mpi-misuse",
        "function was called ",
        r"(?P<what>MPI_\w+)\(\) function was called (?:before MPI_INIT|after MPI_FINALIZE)",
    ),
    Sign("mpi-misuse", "Attempting to use an MPI routine", r"routine(?: \((?:internal_)?(?P<what>\w+)\))?"),
    Sign("mpi-call", "Fatal error in ", _FATAL + r"(?P<what>P?MPI_\w+|internal_\w+):"),
    Sign("mpi-call", "*** An error occurred in MPI_", r"in (?P<what>MPI_\w+)"),
    # How it ended.
    Sign(
        "daemon-lost",
        "lost communication with a remote daemon",
        "",
        r"Remote daemon: \S+ on node (?P<host>\S+)",
    ),
    Sign("daemon-lost", "unable to reliably start one or more daemons"),
    # Intel MPI's mpirun, which says no more when SSH or the other host fails without a word.
    Sign(
        "daemon-lost", "unable to run bstrap_proxy", r"unable to run bstrap_proxy(?: on (?P<host>[\w.-]+))?"
    ),
    Sign("daemon-lost", "error setting up the bootstrap proxies"),
    Sign("daemon-lost", "A daemon (pid ", r"died unexpectedly"),
    Sign("daemon-lost", "An MPI communication peer process has unexpectedly disconnected"),
    Sign(
        "rank-aborted", "MPI_ABORT was invoked on rank ", r"rank (?P<rank>\d+)", r"errorcode (?P<code>-?\d+)"
    ),
    Sign(
        "rank-aborted",
        "application called MPI_Abort",
        r"MPI_Abort\([^)]*, (?P<code>-?\d+)\)(?: - process (?P<rank>\d+))?",
    ),
    *(
        Sign(
            cause,
            f"exited on signal {number}",
            rf"rank (?P<rank>\d+) .*on node (?P<host>\S+) exited on signal {number}\b",
        )
        for cause, number in (
            ("segmentation-fault", 11),
            ("illegal-instruction", 4),
            ("aborted", 6),
            ("shared-memory", 7),
            ("killed", 9),
            ("told-to-end", 15),
        )
    ),
    Sign("rank-failed", "exited on signal ", r"rank (?P<rank>\d+) .*on node (?P<host>\S+)"),
    # Open MPI 5 breaks the line before the signal; MPICH writes it as a string.
    Sign("killed", "signal 9 (Killed)", r"^signal 9|\bKilled \(signal 9"),
    Sign("killed", "Killed (signal 9)"),
    Sign("segmentation-fault", "signal 11 (Segmentation fault)", r"^signal 11"),
    Sign("segmentation-fault", "Segmentation fault (signal 11)"),
    Sign("shared-memory", "Bus error (signal 7)"),
    Sign("shared-memory", "signal 7 (Bus error)", r"^signal 7"),
    Sign("illegal-instruction", "Illegal instruction (signal 4)"),
    Sign("aborted", "signal 6 (Aborted)", r"^signal 6"),
    Sign("aborted", "Aborted (signal 6)"),
    Sign("rank-failed", "noticed that process rank ", r"rank (?P<rank>\d+) .*on node (?P<host>\S+)"),
    Sign("rank-failed", "Per user-direction, the job has been aborted"),
    Sign("killed", "EXIT CODE: 9", r"= +EXIT CODE: 9\s*$"),
    Sign("segmentation-fault", "EXIT CODE: 11", r"= +EXIT CODE: 11\s*$"),
    Sign("aborted", "EXIT CODE: 6", r"= +EXIT CODE: 6\s*$"),
    Sign("aborted", "KILLED BY SIGNAL: 6"),
    # Intel MPI kills the other ranks itself, and lists them first.
    Sign("killed", "KILLED BY SIGNAL: 9", is_mild=True),
    Sign("segmentation-fault", "KILLED BY SIGNAL: 11"),
    Sign("rank-failed", "one or more processes exited with non-zero status", "", _PROCESS),
    Sign(
        "rank-failed",
        "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "",
        r"(?:PID \d+ RUNNING AT (?P<host>\S+)|EXIT CODE: (?P<code>\d+)|RANK (?P<rank>\d+))",
    ),
    Sign("rank-failed", "exiting improperly", r"on node|node (?P<host>\S+) exiting"),
)
