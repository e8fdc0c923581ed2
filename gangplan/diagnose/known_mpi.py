"""Causes in MPI and in SSH, through which it starts its daemons."""

from __future__ import annotations

from gangplan.diagnose.cause import ENDING, SYMPTOM, KnownCause

# MPI ends a program whose call it refused, and a process may crash on its way out (MPICH 5.0.2, 1 of 60 runs).
_CRASHES = ("segmentation-fault",)

CAUSES = (
    KnownCause(
        "worker-unreached",
        "a worker did not answer in time",
        "The launch script waited for every worker's name and SSH, and one did not come.",
        (
            "Look at that worker's pod: is it running, and what does its log say (sshd)?",
            "See whether network policies let the launcher reach port 2222 of the workers: gangplan validate proves it for those in Git.",
        ),
        ("network-unreachable",),
    ),
    KnownCause(
        "hostfile-differs",
        "the hostfile names other workers than planned",
        "Trainer wrote a hostfile that does not have the workers of the plan: somebody changed the run on the cluster, or the runtime is another one.",
        (
            "Sync again, and do not change runs by kubectl.",
            "Compare versions.trainer of the cluster file with the cluster.",
        ),
        ("ranks-mismatch", "plan-broken", "version-untried"),
    ),
    KnownCause(
        "mpi-setup-missing",
        "the setup file of the MPI is not in the image",
        "The catalog names a file that sets up the MPI (setvars.sh, a profile), and the image does not have it.",
        ("Correct the image's entry in the catalog.",),
        unforeseen="Only the files in the image show it; a preflight on the image does.",
    ),
    KnownCause(
        "mpi-not-all-workers",
        "MPI did not reach all workers",
        "mpirun started, and not on all workers. Without the check, all ranks would have run on one of them.",
        (
            "Look at the first error of SSH or MPI above it.",
            "Without an error, and with Open MPI 5, see that its launcher has PRTE_MCA_prte_default_hostfile.",
            "Install the same MPI at the same place in the images of launcher and workers.",
        ),
        ("mpi-launch", "mpi-mismatch", "mpi-hosts-unknown"),
    ),
    KnownCause(
        "mpi-one-host",
        "all ranks started on the launcher's host",
        "mpirun did not read the hostfile, took its own host for the only one, and no error came of it. Open MPI 5 reads none of the variables of Open MPI 4 that Trainer sets. A launcher that is meant to run ranks (runLauncherAsNode) looks the same.",
        (
            "Leave PRTE_MCA_prte_default_hostfile in the launcher's environment, or name the file: mpirun --hostfile /etc/mpi/hostfile.",
            "Compare mpirun --display map with the workers of gangplan plan SPEC.",
        ),
        ("mpi-hosts-unknown",),
    ),
    KnownCause(
        "ssh-refused",
        "a worker's SSH server does not answer",
        "The launcher's connection was refused, timed out or found no route: sshd is not running there, or the network is closed.",
        (
            "Look at the worker's log: sshd says why it does not start.",
            "See whether a network policy or a service mesh stands between them.",
        ),
        ("network-unreachable", "image-without-mpi"),
    ),
    KnownCause(
        "ssh-name",
        "a worker's name is not known",
        "The name of a worker could not be resolved: its pod is not there yet, or DNS does not answer.",
        (
            "See whether all workers were running at that time.",
            "Let pods reach the cluster's DNS (port 53): network policies.",
        ),
        ("network-unreachable",),
    ),
    KnownCause(
        "ssh-denied",
        "a worker refuses the launcher's SSH key",
        "The key is not among those that the worker's sshd accepts, or sshd does not read the file.",
        (
            "Run sshd as the user that the launcher connects as, with the mounted keys: user and ssh of the image in the catalog.",
            "StrictModes refuses keys in folders that others may write: set StrictModes no, or correct the folder.",
        ),
        rules=(
            "containerfile-sshd",
            "mount-hides",
        ),
    ),
    KnownCause(
        "ssh-key-permissions",
        "an SSH key may be read by others",
        "ssh and sshd ignore private keys that others may read. Secrets are mounted with such permissions unless told otherwise.",
        (
            "Mount the key with mode 0400 or 0600 (gangplan does); do not copy it in the image's entrypoint without chmod 600.",
        ),
        ("secret-path",),
    ),
    KnownCause(
        "ssh-host-key",
        "the launcher does not trust a worker's host key",
        "Each worker has new host keys, which no known_hosts file has.",
        (
            "Set StrictHostKeyChecking no for the hosts of the run (gangplan does, unless the image's own ssh_config comes first).",
        ),
        rules=("containerfile-host-keys",),
    ),
    KnownCause(
        "sshd-broken",
        "sshd does not start in the workers",
        "sshd has no host keys, misses its folder, or its configuration has an error.",
        (
            "Generate host keys at start, in a folder that the user may write, and name them in sshd_config.",
            "As another user than root, sshd needs a port above 1023, UsePAM no, and no /run/sshd.",
        ),
        rules=(
            "containerfile-sshd",
            "containerfile-host-keys",
        ),
    ),
    KnownCause(
        "user-unknown",
        "its user id has no name in the image",
        "ssh and Open MPI look up the user's name, and /etc/passwd of the image does not have the id.",
        (
            "Add the user to the image; for arbitrary ids (OpenShift), write the line at start or use nss_wrapper.",
        ),
        rules=(
            "image-user-unknown",
            "containerfile-uid",
        ),
    ),
    KnownCause(
        "mpi-root",
        "Open MPI refuses to run as root",
        "mpirun refuses root unless an option allows it.",
        ("Give the image a user other than root.",),
        ("command-root",),
    ),
    KnownCause(
        "mpi-not-on-workers",
        "the workers do not have the MPI that the launcher starts",
        "The daemon (orted, prted, hydra_pmi_proxy) was not found on a worker, or misses its libraries.",
        (
            "Use one image for launcher and workers.",
            "Install the MPI where a non-interactive SSH session finds it: PATH is not that of a login.",
        ),
        ("mpi-mismatch", "image-without-mpi"),
    ),
    KnownCause(
        "mpi-versions",
        "programs and mpirun are of different MPIs",
        "The library that the program uses, and the mpirun that starts it, do not fit: each rank believes that it is alone, or they cannot talk.",
        (
            "Install one MPI in the image, and build mpi4py or Horovod against it.",
            "Say the MPI and its version in the catalog as they are in the image.",
        ),
        ("mpi-mismatch", "mpi-version"),
    ),
    KnownCause(
        "too-few-slots",
        "mpirun has to start more ranks than there are slots",
        "-np is more than workers times slots.",
        ("Leave -np out: the run has its own number. Or correct workers and slots.",),
        ("ranks-mismatch", "command-launcher"),
    ),
    KnownCause(
        "mpi-option",
        "mpirun does not know one of its options",
        "Options differ among Open MPI 4, Open MPI 5, MPICH and Intel MPI.",
        ("Correct mpi.flags in the spec for the MPI of the image.",),
        ("command-option",),
    ),
    KnownCause(
        "mpi-binding",
        "ranks cannot be bound to cores as asked",
        "There are fewer cores than the binding needs, or the container may not bind.",
        ("Raise cpu to a multiple of slots, or set mpi.bindTo: none.",),
        rules=(
            "binding-shared",
            "mpi-without-effect",
        ),
    ),
    KnownCause(
        "mpi-unreachable",
        "MPI processes cannot reach each other",
        "Connections between ranks were refused or found no way: the wrong network interface, or closed ports.",
        (
            "Exclude interfaces that other pods do not reach (mpi.flags: btl_tcp_if_include eth0).",
            "See whether a network policy closes ports between the run's own pods, or a service mesh is in the way.",
        ),
        ("network-unreachable", "network-open"),
    ),
    KnownCause(
        "mpi-timeout",
        "MPI did not start in time",
        "Ranks waited for others in MPI_Init or for a daemon, and gave up.",
        (
            "Look at the worker that did not come: its pod and its log.",
            "Intel MPI that hangs: set I_MPI_DEBUG=10 in env, and try FI_PROVIDER=tcp; where that helps, the fabric is at fault. With that output, ask the owner of the image in the catalog, then Intel's support.",
        ),
        ("network-unreachable",),
        SYMPTOM,
    ),
    KnownCause(
        "mpi-sizes",
        "ranks call one MPI operation with different sizes",
        "A rank sent more than another one had room for (MPI_ERR_TRUNCATE): counts or types differ, or a rank is at another call.",
        (
            "See whether all ranks call the operation with the same count and type, in the same order: a branch on the rank, a last batch that is smaller.",
            "Print the shape on every rank just before the call that is named above.",
        ),
        unforeseen="It depends on the program and its data.",
        ends_in=_CRASHES,
    ),
    KnownCause(
        "mpi-misuse",
        "the program calls MPI wrongly",
        "MPI refused a call of the program: a rank that does not exist, an invalid communicator, a call before MPI_Init or after MPI_Finalize.",
        (
            "Read the name of the call above; the traceback or the error's stack says which argument is wrong.",
            "A rank that does not exist: see whether the program was written for another number of ranks.",
            "An invalid communicator in the first call: build the program, or mpi4py, against the MPI of the image.",
        ),
        unforeseen="It depends on the program.",
        ends_in=_CRASHES,
    ),
    KnownCause(
        "mpi-call",
        "a call of MPI failed",
        "MPI returned an error, and ends the program on errors unless told otherwise. Another rank that ended shows so, too.",
        (
            "Read the name of the call and of the error above, such as a peer that is gone.",
            "Where it names a connection, look at the rank that ended first.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "mpi-init",
        "MPI could not start in a rank",
        "MPI_Init failed: MPI found no transport that works, or did not reach what had started it.",
        (
            "Read the last line of the error's stack: it names the part that failed, such as a provider of libfabric or a component of Open MPI.",
            "Try network: {transport: tcp} in the spec; where that helps, the libraries of the fabric are missing in the image.",
            "See that the program was built against the MPI whose mpirun starts it.",
        ),
        ("mpi-mismatch", "mpi-version"),
        SYMPTOM,
    ),
    KnownCause(
        "daemon-lost",
        "mpirun lost a worker",
        "The connection to the daemon on a worker broke, or was never made: its pod ended, or its node, or SSH failed.",
        (
            "Look at the pod of that worker: memory, eviction, its node.",
            "At the start of a run: see whether sshd runs there, and whether the image has MPI in the PATH that ssh gives.",
        ),
        (),
        SYMPTOM,
    ),
    KnownCause(
        "rank-failed",
        "a rank ended with an error",
        "mpirun ended all ranks because one did.",
        ("Look at the output of that rank, just before.",),
        (),
        ENDING,
    ),
    KnownCause(
        "rank-aborted",
        "a rank called MPI_Abort",
        "The program, or MPI itself after an error, ended the whole job.",
        ("Look at the output of that rank, just before.",),
        (),
        ENDING,
    ),
)
