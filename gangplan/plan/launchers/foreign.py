"""Programs that start ranks through another scheduler or by their own means; none of them can work here."""

from __future__ import annotations

from gangplan.plan.launchers.table import LauncherOption, LauncherProgram, build_option_table

# Options that take a word, as the manuals list them: Slurm 25.05, and the common ones of jsrun (IBM Job Step
# Manager 10.3), aprun (Cray ALPS 6), lrun (LLNL) and flux (flux-core 0.75). They only serve to find the
# program after them; gangplan never starts these launchers.
_SLURM = build_option_table(
    ("count", 1, "n ntasks"),
    ("workers", 1, "N nodes"),
    ("per-host", 1, "ntasks-per-node"),
    ("", 1, "A account C constraint D chdir G gpus J job-name L licenses c cpus-per-task d dependency"),
    ("", 1, "e error export F nodefile i input M clusters m distribution mem mem-per-cpu mem-per-gpu"),
    ("", 1, "o output p partition q qos t time w nodelist x exclude W wait b begin r relative"),
    ("", 1, "comment container cpu-bind gpu-bind gpus-per-node gpus-per-task gres gres-flags hint jobid"),
    ("", 1, "kill-on-bad-exit mail-type mail-user mem-bind mpi network nice ntasks-per-core"),
    ("", 1, "ntasks-per-gpu ntasks-per-socket cores-per-socket sockets-per-node threads-per-core"),
    ("", 1, "priority prolog epilog reservation switches tmp container-image container-mounts"),
    ("", 1, "container-name container-workdir het-group core-spec signal task-epilog task-prolog a array"),
    ("", 1, "open-mode requeue-exit wrap wckey acctg-freq bcast"),
    ("", 0, "E preserve-env H hold I immediate K k no-kill l label O overcommit Q quiet X u unbuffered"),
    ("", 0, "s oversubscribe v verbose V version exact exclusive exclude overlap whole pty contiguous"),
    ("", 0, "ignore-pbs parsable test-only multi-prog container-mount-home no-container-mount-home"),
    ("", 0, "disable-status spread-job use-min-nodes reboot propagate no-shell no-requeue requeue help"),
)
_OTHERS = build_option_table(
    ("", 1, "n np a c g r p N d S j L cc nrs rs_per_host tasks_per_rs cpu_per_rs gpu_per_rs b bind"),
    ("", 1, "launch_distribution E env stdio_mode l T nodes ntasks cores gpus-per-task cores-per-task o M"),
    ("", 1, "setopt setattr t time-limit q queue W P J hosts tasks-per-node D e F B machinefile hostfile"),
    ("", 0, "smpiargs v verbose help"),
)

_SCHEDULERS = {
    **dict.fromkeys(("srun", "sbatch", "salloc"), _SLURM),
    **dict.fromkeys(("jsrun", "aprun", "lrun", "flux", "qsub", "bsub", "ibrun", "ccc_mprun"), _OTHERS),
}
# MPI launchers of families that gangplan does not support, and local ones.
_OTHER_MPI = (
    "mpirun_rsh",
    "mpiexec.gforker",
    "mpiexec_mpt",
    "mpiexec.slurm",
    "mpispawn",
    "poe",
    "mpiexec.lsf",
    *("mpirun.lsf", "mpirun.slurm", "charmrun", "upcxx-run", "upcrun", "prun", "prte"),
    *("likwid-mpirun", "pbsdsh", "foamJob", "runParallel"),
)
# Those of OpenFOAM (bin/foamJob, bin/tools/RunFunctions), which call mpirun for a program with the option -parallel.
OPENFOAM_STARTERS = frozenset({"foamJob", "runParallel"})
# Launchers of frameworks that start processes by themselves.
_OTHER_TRAINING = (
    "composer",
    "colossalai",
    "torchx",
    "bfrun",
    "ibfrun",
    "ray",
    "dsub",
    "pdsh",
    "parallel-ssh",
    *("axolotl", "fabric", "lightning", "modal", "sky", "tune", "trl", "llamafactory-cli", "lmf", "oumi"),
)


# Options that decide what the ranks get and how they start, by the launcher's name; without them, the program alone
# is another job. The others count, place, bind, or name outputs.
_SLURM_MEANING = frozenset(
    {
        *("D", "chdir", "export", "export-file", "i", "input", "multi-prog", "bcast"),
        *("task-prolog", "task-epilog", "container", "container-image", "container-mounts"),
        *("container-name", "container-workdir", "container-mount-home"),
    }
)
MEANINGFUL_OPTIONS = {
    **dict.fromkeys(("srun", "salloc"), _SLURM_MEANING),
    "aprun": frozenset({"e", "environment-override"}),
    "jsrun": frozenset({"E", "env", "h", "chdir"}),
    "lrun": frozenset({"E", "env"}),
    "flux": frozenset({"env", "env-remove", "env-file", "cwd", "input"}),
    "mpirun_rsh": frozenset(),
    "prun": frozenset({"x", "wdir", "wd"}),
}


def _build_foreign_launcher(name: str, table: dict[str, LauncherOption]) -> LauncherProgram:
    return LauncherProgram(name, "foreign", "argparse", "", table, joined=frozenset("nNcgpra"))


OTHER_LAUNCHERS = {
    **{name: _build_foreign_launcher(name, table) for name, table in _SCHEDULERS.items()},
    **{name: _build_foreign_launcher(name, _OTHERS) for name in (*_OTHER_MPI, *_OTHER_TRAINING)},
}
# Launchers whose words name no program that could be started alone: they read a configuration or a platform.
OPAQUE_LAUNCHERS = frozenset(
    # poe's own options follow the program; a program of likwid-mpirun is also measured
    {
        *(
            "axolotl",
            "fabric",
            "lightning",
            "likwid-mpirun",
            "llamafactory-cli",
            "lmf",
            "modal",
            "oumi",
            "poe",
        ),
        *("prte", "ray", "sky", "torchx", "trl", "tune"),
        *OPENFOAM_STARTERS,
    }
)
# Launchers that start torch's ranks, with torchrun or by themselves.
TORCH_STARTERS = frozenset(
    {"fabric", "lightning", "tune", "trl", "llamafactory-cli", "lmf", "oumi", "axolotl"}
)
# Subcommands of these programs (`flux run`, `ray job submit`). Only these launch anything; `ray status` or
# `composer --version` do not train, but do not start ranks either.
LAUNCHER_SUBCOMMANDS = {
    "flux": ("run", "submit", "alloc", "batch", "mini"),
    "colossalai": ("run",),
    "torchx": ("run",),
    "ray": ("job", "submit", "start", "exec", "up"),
    "axolotl": ("train", "finetune"),
    "fabric": ("run",),
    "lightning": ("run",),
    "modal": ("run",),
    # torchtune, TRL, LLaMA-Factory and Oumi start torchrun or Accelerate in turn.
    "tune": ("run",),
    "trl": ("sft", "dpo", "grpo", "kto", "reward", "rloo"),
    **dict.fromkeys(("llamafactory-cli", "lmf"), ("train",)),
    "oumi": ("distributed",),
    "sky": ("launch", "exec", "jobs"),
}
