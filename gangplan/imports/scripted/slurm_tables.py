"""The options of sbatch and srun in their manuals (Slurm 25.05), and those that are useless to a run."""

from __future__ import annotations

SLURM_SHORT_OPTIONS = dict(
    pair.split("=")
    for pair in str.split(
        "a=array A=account b=begin B=extra-node-info c=cpus-per-task C=constraint d=dependency D=chdir "
        "e=error F=nodefile G=gpus H=hold i=input I=immediate J=job-name k=no-kill K=kill-on-bad-exit "
        "l=label L=licenses m=distribution M=clusters n=ntasks N=nodes o=output O=overcommit p=partition "
        "q=qos Q=quiet r=relative s=oversubscribe S=core-spec t=time T=threads u=unbuffered v=verbose "
        "V=version w=nodelist W=wait x=exclude X=disable-status E=preserve-env Z=no-allocate"
    )
)
# Options without a value, or with one only after an equals sign.
SLURM_FLAGS = frozenset(
    str.split(
        "hold immediate no-kill kill-on-bad-exit label overcommit quiet oversubscribe unbuffered verbose "
        "version disable-status preserve-env no-allocate exclusive exact overlap contiguous requeue "
        "no-requeue parsable test-only spread-job use-min-nodes reboot propagate get-user-env pty "
        "multi-prog ignore-pbs usage help whole nice container-mount-home no-container-mount-home "
        "container-writable container-readonly container-remap-root no-container-remap-root "
        "container-entrypoint no-container-entrypoint mpi-combine bcast share resv-ports no-shell "
        "kill-on-invalid-dep-yes enforce-binding disable-binding stepmgr hetjob container-workdir-none"
    )
)
TEAM_QUEUE_REASON = "the team's queue and quota take the place of accounts, partitions and limits"
_LOG = "the log of a run is what its pods print (gangplan logs)"
_MAIL = "alerts are the platform's (docs/observability.md)"
NODE_CHOICE_REASON = "which cores and devices a rank gets is the node's to choose; mpi.bindTo binds ranks"
_STEP = "it is about steps of a batch job; a run is one launch"
_ACCOUNTING = "it is for Slurm's accounting"
_HOSTS = "it names machines of the old cluster; pools and placement choose nodes"
SLURM_DROPPED: dict[str, str] = {
    **dict.fromkeys(["account", "partition", "clusters", "wckey", "reservation", "priority", "nice", "bb", "bbf", "power", "delay-boot"], TEAM_QUEUE_REASON),
    **dict.fromkeys(["output", "error", "open-mode", "input", "label", "unbuffered", "quiet", "verbose", "parsable"], _LOG),
    **dict.fromkeys(["mail-type", "mail-user"], _MAIL),
    **dict.fromkeys(
        ["cpu-bind", "mem-bind", "gpu-bind", "gres-flags", "distribution", "hint", "threads-per-core", "ntasks-per-core", "ntasks-per-socket", "cores-per-socket", "extra-node-info", "core-spec", "thread-spec", "cpu-freq", "gpu-freq", "accel-bind", "tres-bind", "threads", "contiguous", "spread-job", "use-min-nodes"],
        NODE_CHOICE_REASON,
    ),
    **dict.fromkeys(
        ["mpi", "jobid", "exact", "overlap", "overcommit", "wait", "kill-on-bad-exit", "no-kill", "immediate", "relative", "pty", "propagate", "bcast", "disable-status", "epilog", "prolog", "task-epilog", "task-prolog", "resv-ports", "preserve-env", "het-group", "whole", "wait-all-nodes", "slurmd-debug", "msg-timeout", "test-only", "no-shell", "send-libs", "x11", "oversubscribe", "share", "export-file", "get-user-env", "kill-on-invalid-dep", "ignore-pbs", "container-env", "container-name", "container-remap-root", "no-container-remap-root", "container-writable", "container-readonly", "no-container-mount-home", "container-save", "container", "container-id", "no-container-entrypoint", "interactive", "external"],
        _STEP,
    ),
    **dict.fromkeys(["acctg-freq", "profile", "comment", "admin-comment", "container-token"], _ACCOUNTING),
    **dict.fromkeys(["nodelist", "exclude", "nodefile", "reboot", "hold"], _HOSTS),
}  # fmt: skip
SLURM_ASKED = {
    "multi-prog": "ranks of one run start one program",
    "begin": "a run starts when its queue admits it",
    "deadline": "timeout is how long a run may take, not until when",
    "licenses": "no field of a spec asks for licences",
    "network": "network.rdma and the pool's fabric say how workers reach each other",
    "switches": "placement.topology keeps workers close together",
    "container-mount-home": "a run has no home folder; put what it needs on a claim",
}
