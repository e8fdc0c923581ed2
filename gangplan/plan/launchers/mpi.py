"""Options of the MPI launchers by family, as the programs list and accept them."""

from __future__ import annotations

from gangplan.plan.launchers.table import LauncherProgram, OptionRow, build_option_table

# `mpirun --help all` of Open MPI 4.1.8 (orte/orted/orted_submit.c). It treats one dash like two, except for
# names in `short`; no option takes its value after an equals sign.
OPEN_MPI_4 = LauncherProgram(
    "mpirun",
    "mpi",
    "openmpi",
    "Open MPI 4.1.8",
    build_option_table(
        ("count", 1, "np n c"),
        ("hosts", 1, "host H"),
        ("hostfile", 1, "hostfile machinefile default-hostfile rankfile rf"),
        ("per-host", 1, "N npernode"),
        ("per-host", 0, "pernode"),
        ("bind", 1, "bind-to"),
        ("bind", 0, "bind-to-core bind-to-socket"),
        ("map", 1, "map-by ppr npersocket cpus-per-proc cpus-per-rank cpu-set cpu-list"),
        ("map", 0, "bynode bycore byslot"),
        ("map-hint", 0, "oversubscribe nooversubscribe use-hwthread-cpus"),
        ("away", 0, "nolocal"),
        ("env", 1, "x"),
        ("parameter", 2, "mca gmca"),
        ("root", 0, "allow-run-as-root"),
        ("agent", 1, "launch-agent hnp"),
        ("file", 1, "app"),
        ("nothing", 0, "version V do-not-launch dvm"),
        ("nothing", 1, "help h"),
        ("", 1, "am cartofile cf debugger max-restarts max-vm-size ompi-server output-filename path"),
        ("", 1, "personality prefix preload-files rank-by report-events report-pid report-uri stdin timeout"),
        ("", 1, "tune wd wdir xml-file xterm"),
        ("", 0, "continuous d debug debug-daemons debug-daemons-file debug-devel disable-recovery"),
        ("", 0, "display-allocation display-devel-allocation display-devel-map display-diffable-map"),
        ("", 0, "display-map display-topo do-not-resolve enable-instant-on-support enable-recovery"),
        ("", 0, "fwd-mpirun-port get-stack-traces index-argv-by-rank leave-session-attached"),
        ("", 0, "merge-stderr-to-stdout noprefix novm output-proctable preload-binary q quiet"),
        ("", 0, "report-bindings report-child-jobs-separately report-state-on-timeout s"),
        ("", 0, "set-cwd-to-session-dir show-progress tag-output timestamp-output tv use-regexp v verbose"),
        ("", 0, "xml"),
    ),
    short=frozenset("NHxcdhqsvV"),
    label="Open MPI 4",
    once=(frozenset({"map-by", "bynode", "bycore", "byslot"}),),
)

# schizo_ompi.c of PRRTE 3.0.9, the table of Open MPI 5's mpirun. Long names also take one dash, and their
# value after an equals sign; names in `double_only` lost the single dash between 5.0.8 and 5.0.11.
OPEN_MPI_5 = LauncherProgram(
    "mpirun",
    "mpi",
    "prrte",
    "Open MPI 5.0.11 (PRRTE 3.0)",
    build_option_table(
        ("count", 1, "np n c"),
        ("hosts", 1, "host H"),
        ("hostfile", 1, "hostfile machinefile default-hostfile rankfile"),
        ("per-host", 1, "N npernode"),
        ("per-host", 0, "pernode"),
        ("bind", 1, "bind-to"),
        ("bind", 0, "bind-to-core"),
        ("map", 1, "map-by ppr npersocket cpu-set cpu-list"),
        ("map", 0, "bynode bycore byslot"),
        ("map-hint", 0, "oversubscribe nooversubscribe use-hwthread-cpus"),
        ("map-hint", 1, "cpus-per-proc cpus-per-rank"),
        ("away", 0, "nolocal"),
        ("env", 1, "x"),
        ("parameter", 2, "mca gmca omca gomca prtemca pmixmca"),
        ("root", 0, "allow-run-as-root"),
        ("agent", 1, "launch-agent dvm"),
        ("file", 1, "app file"),
        ("nothing", 0, "version V help h do-not-launch"),
        ("", 1, "am amca app-pmix-prefix arch display display-topo forward-signals gpu-support"),
        ("", 1, "initial-errhandler max-restarts max-vm-size memory-alloc-kinds output output-directory"),
        ("", 1, "output-filename path personality prefix preload-files pset rank-by report-pid report-uri"),
        ("", 1, "runtime-options spawn-timeout stdin stream-buffering timeout tmpdir tune wd wdir with-ft"),
        ("", 1, "xterm"),
        ("", 0, "continuous debug debug-daemons debug-daemons-file disable-recovery display-allocation"),
        ("", 0, "display-comm display-comm-finalize display-devel-map display-map enable-recovery"),
        ("", 0, "get-stack-traces leave-session-attached merge-stderr-to-stdout no-aggregate-help"),
        ("", 0, "no-app-prefix noprefix output-proctable p parsable parseable preload-binary"),
        ("", 0, "report-bindings report-child-jobs-separately report-state-on-timeout s show-progress soft"),
        ("", 0, "stop-in-app stop-in-init stop-on-exec tag-output timestamp-output v verbose xml"),
    ),
    short=frozenset("NHxchpsvV"),
    double_only=frozenset({"bind-to", "map-by", "rank-by"}),
    label="Open MPI 5",
    once=(
        frozenset(
            [
                "map-by",
                "N",
                "npernode",
                "pernode",
                "ppr",
                "npersocket",
                "bynode",
                "bycore",
                "byslot",
                "rankfile",
            ]
        )
        | {"cpu-set", "cpu-list"},
        frozenset({"bind-to", "bind-to-core"}),
        frozenset({"rank-by"}),
        frozenset({"display"}),
    ),
)

_HYDRA: tuple[OptionRow, ...] = (
    ("count", 1, "np n"),
    ("hosts", 1, "host hosts hostlist machines machinelist"),
    ("hostfile", 1, "f hostfile machinefile"),
    ("per-host", 1, "ppn"),
    ("bind", 1, "bind-to binding"),
    ("env", 2, "env genv"),
    ("", 1, "envlist genvlist"),
    ("", 0, "envall genvall envnone genvnone"),
    ("agent", 1, "launcher launcher-exec bootstrap bootstrap-exec rmk localhost"),
    ("file", 1, "configfile"),
    ("nothing", 0, "help h info version"),
    ("", 0, "disable-auto-cleanup disable-x enable-auto-cleanup enable-x l prepend-rank"),
    ("", 0, "print-all-exitcodes v verbose"),
    ("", 1, "demux errfile errfile-pattern iface membind nameserver outfile outfile-pattern"),
    ("", 1, "prepend-pattern usize wdir"),
)

# Names of one setting, which MPICH's Hydra accepts only once ("duplicate setting").
_SYNONYMS = (
    "n np",
    "f hostfile machinefile",
    "bind-to binding",
    "l prepend-rank",
    "launcher bootstrap",
    "enable-auto-cleanup disable-auto-cleanup",
    "launcher-exec bootstrap-exec",
    "outfile outfile-pattern",
    "errfile errfile-pattern",
)

# The match table of MPICH 5.0.2 (src/pm/hydra/mpiexec/options.c). Any number of dashes; `-n=4` works.
MPICH = LauncherProgram(
    "mpiexec",
    "mpi",
    "hydra",
    "MPICH 5.0.2 (Hydra)",
    build_option_table(
        *_HYDRA,
        ("hosts", 1, "machine"),
        ("map", 1, "map-by rankmap"),
        ("away", 0, "skip-launch-node"),
        ("", 1, "g gpus-per-proc gpu-subdevs-per-proc memory-alloc-kinds order-nodes output-from"),
        ("", 1, "topolib"),
        ("", 0, "disable-hostname-propagation enable-hostname-propagation"),
        ("", 0, "V debug hybrid-hosts pmi-port profile report-bindings"),
    ),
    label="MPICH",
    once=(
        *(frozenset(names.split()) for names in _SYNONYMS),
        *(
            frozenset({name})
            for name in ["ppn", "iface", "wdir", "usize", "demux", "map-by", "membind", "rankmap", "topolib"]
        ),
    ),
)

# `mpiexec.hydra -help` of Intel MPI 2021.18.1, and names that it accepts without listing them.
INTEL_MPI = LauncherProgram(
    "mpiexec.hydra",
    "mpi",
    "hydra",
    "Intel MPI 2021.18.1 (Hydra)",
    build_option_table(
        *_HYDRA,
        ("per-host", 1, "perhost"),
        ("per-host", 0, "rr"),
        ("per-host", 1, "grr"),
        ("hosts", 1, "hosts-group"),
        ("hostfile", 1, "machine"),
        ("map", 1, "map-by"),
        ("bind", 1, "cpu-bind"),
        ("away", 0, "nolocal"),
        ("", 0, "aps mps gdb silent-abort print-rank-map prepend-timestamp prot trace check_mpi"),
        ("agent", 1, "branch-count bootstrap-exec-args"),
        ("", 0, "cleanup debug idb ilp64 noconf ordered-output pmi-aggregate pmi-noaggregate"),
        ("", 0, "trace-collectives trace-imbalance trace-pt2pt tv"),
        ("", 1, "envexcl gdb-args genvexcl gpath gtool gtoolfile gwdir path s tmpdir tune"),
        ("", 1, "use-app-topology"),
    ),
    label="Intel MPI",
    once=(
        frozenset({"n", "np"}),
        frozenset({"ppn", "perhost"}),
        frozenset({"l", "prepend-rank"}),
        frozenset({"enable-auto-cleanup", "disable-auto-cleanup"}),
    ),
)
