"""Rules about commands and options for mpirun (docs/job-commands.md)."""

from __future__ import annotations

from gangplan.rules.model import ERROR, WARNING, Rule

COMMAND_LAUNCHER = Rule(
    "command-launcher",
    ERROR,
    "The command starts ranks with a launcher that cannot work here.",
    why=(
        "An image starts its ranks in one of two ways: MPI over SSH, or torchrun. A launcher of the "
        "other kind, of another MPI, or of a scheduler such as Slurm finds no hosts, or starts a "
        "separate training on every rank."
    ),
    fix=(
        "Write only the program, and gangplan starts it on every rank; or choose an image for that launcher."
    ),
)

COMMAND_HOSTS = Rule(
    "command-hosts",
    ERROR,
    "The command names hosts.",
    why=(
        "The pods of a run get their names when it starts, so hosts named in a command belong to "
        "something else or do not exist. gangplan passes the run's own hosts to every launcher that it "
        "knows. Options for parameter servers (--ps_hosts, --job_name ps) give hosts different tasks, but all ranks "
        "of a run get the same command."
    ),
    fix="Remove the option.",
)

COMMAND_RENDEZVOUS = Rule(
    "command-rendezvous",
    ERROR,
    "The command sets where torch workers meet, or makes each worker train alone.",
    why=(
        "All workers get the same command, so an address or a node number in it is wrong on all but one, "
        "and --standalone trains separately on each. Trainer passes all of this to torchrun in each "
        "worker's PET_* variables. With framework: plain, a launcher only knows what its own options say (a warning)."
    ),
    fix=("Remove the options, or take their values from the PET_* variables in a shell script."),
)

COMMAND_PREFIX = Rule(
    "command-prefix",
    ERROR,
    "A program before the command keeps it from starting.",
    why=(
        "A container of a run has one user and may not gain privileges, so sudo, su, gosu and the like "
        "fail. Nor can it start another container: docker and podman have no daemon or rights, and the seccomp profile "
        "mostly denies apptainer and singularity their namespace (a warning). A launcher in a container of its own "
        "would find neither the run's hosts nor its SSH."
    ),
    fix="Remove the prefix. If it names an image, make that the run's image.",
)

COMMAND_BEHIND = Rule(
    "command-behind",
    WARNING,
    ("The launcher is started by a program that sees only part of the run, or that gangplan does not know."),
    why=(
        "A profiler before mpirun sees mpirun and the ranks on its own host, not those of other workers. "
        "If gangplan does not know a program, it can only assume that the program starts what "
        "follows it, as most do."
    ),
    fix=(
        "Put a profiler before the program instead of before the launcher; if the other program is not "
        "needed, start the launcher directly."
    ),
)

COMMAND_OPTION = Rule(
    "command-option",
    ERROR,
    "A launcher does not know an option, or lacks its value.",
    why=(
        "Open MPI, MPICH and Intel MPI have different options, and fail on one that they do not know. "
        "gangplan has a table of the options of each (Open MPI 4.1.8 and 5.0.11, MPICH 5.0.2, Intel MPI "
        "2021.18.1, Horovod, DeepSpeed, torchrun, Accelerate)."
    ),
    fix="Write the option of the image's MPI, as the help shows it.",
)

COMMAND_RESERVED = Rule(
    "command-reserved",
    ERROR,
    "An option, a prefix or a script changes what the launch depends on.",
    why=(
        "gangplan sets how the launcher reaches the workers and where it reads their names, in variables "
        "that env may not set either. Changing the same setting with an option of mpirun, with -x "
        "NAME=VALUE or in a script, or removing it with unset or env -i, would break the launch, or let every "
        "worker train alone. A script may keep what it is given: NAME=${NAME:-VALUE}."
    ),
    fix="Remove the option, the prefix or the line; the launch is the same for every run.",
)

COMMAND_ROOT = Rule(
    "command-root",
    WARNING,
    "The command asks for root, which no run has.",
    why=(
        "Pods of a run have a user of their own and may not become root: --allow-run-as-root changes nothing, and "
        "`apt-get install` fails."
    ),
    fix="Remove the option; put packages of the system into the image.",
)

PACKAGES_LOST = Rule(
    "packages-lost",
    WARNING,
    "Packages or files are made where the program does not run.",
    why=(
        "A setup container and a step have a file system of their own, of which nothing but mounted volumes is left "
        "when the program starts. What `pip install` puts into the image of the one, the other does not find. A "
        "script that starts mpirun, horovodrun or deepspeed itself runs on the launcher, and the ranks run on the "
        "workers, where nothing is of what it installed, compiled or cloned."
    ),
    fix="Put them into the image, or make them in a folder of a claim: pip install --target.",
)

COMMAND_REPEATED = Rule(
    "command-repeated",
    WARNING,
    "All ranks of a worker make the same files at the same time.",
    why=(
        "A script without a launcher of its own runs in every rank. With 8 ranks on a worker, `git clone` fails in 7 of "
        "them, and `pip install`, `make`, `tar` and `wget` write the same files at once: some ranks read what others have "
        "half written. The run fails, though not every time. On a volume, the ranks of all workers meet."
    ),
    fix=(
        "Put it into the image, make it in a step, or let the script start the ranks: `git clone ... && torchrun "
        "train.py` runs once on each worker. A script that looks at its rank (LOCAL_RANK) is left alone."
    ),
)

COMMAND_FOLDER = Rule(
    "command-folder",
    ERROR,
    "The launcher and the ranks do not have the same folders.",
    why=(
        "A script that starts mpirun itself runs on the launcher, and the ranks run on the workers. Scratch, and volumes "
        "that one pod at a time can mount, are there for ranks alone; what is below /tmp, each pod has for itself. "
        "`cd $SCRATCH_DIR && mpirun` fails on the launcher. mpirun starts ranks in the folder in which it was started; "
        "where a worker has no such folder, Open MPI starts them in HOME without a word, and Hydra fails."
    ),
    fix=(
        "Let every rank do it: mpirun bash -c 'cd $SCRATCH_DIR && exec PROGRAM'. Use setup to fill scratch, and a claim for "
        "what launcher and ranks share."
    ),
)

COMMAND_STARTED_BY_PYTHON = Rule(
    "command-started-by-python",
    ERROR,
    "The launcher would run its program as a Python script.",
    why=(
        "torchrun, deepspeed and accelerate start `python -u PROGRAM`. With `torchrun python train.py`, every rank "
        "ends at once: there is no script of the name python. A shell's script and a binary need an option that "
        "says so, and -m takes the name of a module, not of a file."
    ),
    fix="Leave python out, or write --no-python (--no_python) before another program.",
)

COMMAND_NO_PROGRAM = Rule(
    "command-no-program",
    ERROR,
    "The launcher has no program to start.",
    why=(
        "A launcher without a program exits with an error, and one that only prints its version or its "
        "help starts no ranks."
    ),
    fix="Add the program, or remove the option.",
)

COMMAND_NOT_EXECUTABLE = Rule(
    "command-not-executable",
    ERROR,
    "The command starts a file of files: as a program.",
    why=(
        "Files of a ConfigMap are mounted for reading, with the mode 0644 and on a read-only volume, whatever modes "
        "they have in Git. Starting one ends with Permission denied (exit code 126), and so does chmod."
    ),
    fix="Start the file with its interpreter: bash FILE, python FILE.",
)

COMMAND_ONE_WORD = Rule(
    "command-one-word",
    ERROR,
    "One entry of a list contains several words.",
    why=(
        "Each entry of a list is one word; nothing splits it at its spaces. The first entry would be "
        "taken as the name of a file with spaces in it."
    ),
    fix="Give each word an entry of its own, or write the command as one line.",
)

COMMAND_VARIABLE = Rule(
    "command-variable",
    ERROR,
    "A variable in the command is never expanded.",
    why=("No shell reads a command, so $HOME, $(date) and ~ reach the program as written."),
    fix='Write the value, or run a shell: [bash, -c, "..."].',
)

COMMAND_PLACEHOLDER = Rule(
    "command-placeholder",
    WARNING,
    "A placeholder in the command is never filled in.",
    why=(
        "gangplan fills in {ranks}, {workers} and {slots} only. Other names in braces, templates and "
        "names in angle brackets reach the program as written, which some programs want and most do not."
    ),
    fix="Write the value, or one of the three names.",
)

COMMAND_SHELL = Rule(
    "command-shell",
    ERROR,
    "The command contains a word that only a shell understands.",
    why=(
        "A command begins with a program. cd, export, source and NAME=value belong to the shell; there "
        "is no program of that name to start. Only a shell interprets &&, | and >; the program would "
        "receive them as arguments."
    ),
    fix="Use env for variables, or run a shell.",
)

COMMAND_SCRIPT = Rule(
    "command-script",
    ERROR,
    "A script cannot be read.",
    why=("A quote, a substitution or a here-document is not closed; a shell would refuse the script, too."),
    fix="Close it where the message says.",
)

COMMAND_UNREADABLE = Rule(
    "command-unreadable",
    ERROR,
    "What the launcher would start cannot be known before the run.",
    why=(
        "A number that a script computes, options in a file or a script inside a script hide what "
        "gangplan must compare with the plan. It makes no promise about what it cannot read."
    ),
    fix="Write the number or the options in the command.",
)

COMMAND_OPTIONS_UNKNOWN = Rule(
    "command-options-unknown",
    WARNING,
    "A variable may hold options of a launcher.",
    why=(
        "A shell splits $OPTIONS into words, and the launcher takes those before its program for options. gangplan "
        "compares them with the plan where the script or env sets the variable for sure. What an image, a branch or a "
        "program sets is not known before the run: hosts and counts there may contradict it."
    ),
    fix="Write the options in the command, or set the variable once, before the launcher and outside of branches.",
)

COMMAND_DETACHED = Rule(
    "command-detached",
    ERROR,
    "The run would end before its ranks do.",
    why=(
        "The run ends when the command ends. A launcher that runs in the background with nothing waiting "
        "for it, or that is started by setsid (which may return at once), is killed with its pod."
    ),
    fix="Make the command wait for its launcher.",
)

COMMAND_LINES_JOINED = Rule(
    "command-lines-joined",
    ERROR,
    "The lines of a script are not its commands.",
    why=(
        "YAML joins the lines of a text after > and of one without a mark: `set -e` and `torchrun train.py` become "
        "`set -e torchrun train.py`, which starts nothing and succeeds. Where the backslash at the end of a line is "
        "missing, or a blank or a comment comes after it, the options of the next line are a command of their own."
    ),
    fix="Write | before the script, and end continued lines with a backslash and nothing behind it.",
)

COMMAND_BASH = Rule(
    "command-bash",
    WARNING,
    "A script for bash is run by sh.",
    why=(
        "In images of Debian and Ubuntu, sh is dash. It ends at `set -o pipefail` and at arrays, does not find `source`, "
        "and takes `[[` for a program. Only where sh is bash itself, as in images of Red Hat, such a script works."
    ),
    fix="Write bash in place of sh.",
)

COMMAND_MODULE = Rule(
    "command-module",
    WARNING,
    "The script loads modules, which images seldom have.",
    why=(
        "module and ml are functions that the login shells of an HPC cluster define. In most images there is no such "
        "command: the script goes on without the software, or ends with code 127. Images bring their software and its PATH."
    ),
    fix=(
        "Remove the line, and choose an image with the software. Where an image has modules, let the script source their "
        "init file first, or run it in a login shell (bash -l)."
    ),
)

COMMAND_AFTER_EXEC = Rule(
    "command-after-exec",
    WARNING,
    "What comes after exec never runs.",
    why=(
        "exec puts a program in the place of the shell: signals reach it directly, and nothing is left that could go on "
        "with the script. Results that the next line was to copy are lost, and the run counts as complete."
    ),
    fix="Start the program without exec, after set -e.",
)

EXIT_CODE_LOST = Rule(
    "exit-code-lost",
    WARNING,
    "The script ends with the exit code of another program.",
    why=(
        "A shell ends a pipeline with the exit code of its last program: with `python train.py | tee log`, that of "
        "tee. It ends a script likewise: with `python train.py; echo done`, that of echo. A training that fails then "
        "counts as complete: it is not retried, and runs that come after it start."
    ),
    fix="Begin the script with set -e, and before pipelines with set -o pipefail (bash).",
)

COMMAND_WAITS = Rule(
    "command-waits",
    WARNING,
    "The command ends with a program that only waits.",
    why=(
        "A run keeps what it asked for until its program ends. `sleep infinity`, `tail -f /dev/null` and servers such as "
        "Jupyter's do not end: the run keeps its GPUs until its timeout, and then counts as failed. Others wait in the queue."
    ),
    fix=(
        "Write the program of the run. `gangplan run` tries it on this machine, `debug` keeps the pods of a failed run "
        "for a look."
    ),
    waivable=True,
)

ENVIRONMENT_LOST = Rule(
    "environment-lost",
    WARNING,
    "A script sets up its launcher, and the ranks get nothing of it.",
    why=(
        "SSH starts the ranks on other pods, with the limits of those pods and without the launcher's variables. MPICH, "
        "Intel MPI and horovodrun hand on all variables. Open MPI hands on those that -x names (mpirun(1)); gangplan "
        "names those of the spec and those that the script exports, but cannot know what a file sets. DeepSpeed hands "
        "on what gangplan writes into .deepspeed_env, the variables of the spec, and by itself those that begin with "
        "NCCL, PYTHON, UCX, MLFLOW, MV2, PATH or LD_LIBRARY (deepspeed/launcher/runner.py, 0.17). WRF with a big "
        "domain ends with SIGSEGV where a limit of the stack is lost, OpenFOAM without its variables with FOAM FATAL ERROR."
    ),
    fix=(
        "Let every rank do it: mpirun bash -c 'ulimit -s unlimited; exec ./program'. Write variables under env, or name "
        "them with -x. Waive the rule where no rank needs it."
    ),
    waivable=True,
)

COMMAND_TOO_LONG = Rule(
    "command-too-long",
    ERROR,
    "A word of the command is longer than Linux allows.",
    why=(
        "Linux passes no argument above 128 KiB, terminator included, to a program (MAX_ARG_STRLEN), and "
        'no more than about 2 MiB in total. The container would fail with "argument list too long".'
    ),
    fix="Put the text into a file and give its path.",
    untested="tests/plan/test_words.py builds a word of that size.",
)

MPI_WITHOUT_EFFECT = Rule(
    "mpi-without-effect",
    ERROR,
    "An option under mpi has no effect on this run.",
    why=(
        "flags, bindTo and mapBy go to the mpirun that gangplan starts. They have nothing to act on when "
        "the command starts its own launcher, when the image is for torch, and with layouts that Hydra "
        "cannot express."
    ),
    fix="Remove it, or write the option where it takes effect.",
)

MPI_TWICE = Rule(
    "mpi-twice",
    ERROR,
    "mpi.flags repeats what another field already sets.",
    why=("Open MPI 5 and Hydra fail on an option that is given twice; Open MPI 4 takes one of the two."),
    fix="Keep one of them.",
)

COMMAND_DOWNLOADS = Rule(
    "command-downloads",
    WARNING,
    "The command downloads something, but the run cannot reach its source.",
    why=(
        "A run reaches only what network.egress names: NetworkPolicy drops all other packets, so "
        "pip, git and curl wait and give up, after the run has waited in the queue. Tomorrow, the download may also "
        "be a different version."
    ),
    fix=(
        "Put it into the image. Where the cluster offers an endpoint for it, name that in network.egress; fetch "
        "models and data sets as a step."
    ),
    waivable=True,
)

COMMAND_NEEDS_FIELD = Rule(
    "command-needs-field",
    WARNING,
    "The command reads a variable that only a field of the spec sets.",
    why=(
        "checkpoint sets CHECKPOINT_DIR, CHECKPOINT_INTERVAL and CHECKPOINT_RESUME, scratch sets SCRATCH_DIR, "
        "and model sets GANGPLAN_MODEL_NAME and GANGPLAN_MODEL_VERSION. Without the field, a shell replaces the "
        "variable by nothing, and the program saves in another folder or fails, unless its image sets it."
    ),
    fix="Add the field, or give the variable a value under env.",
)

SCRIPT_VARIABLE_UNSET = Rule(
    "script-variable-unset",
    WARNING,
    "A script reads a variable that only another system sets.",
    why=(
        "Nothing sets SLURM_*, PBS_* and the like in a run, and a launcher's variables for ranks are not there before "
        "it has started them. The shell makes an empty text of each: `rm -rf $SLURM_TMPDIR/*` then begins at /."
    ),
    fix="Read what the run has, or write the value itself.",
)

COMMAND_UNSET = Rule(
    "command-unset",
    ERROR,
    "An option takes its value from a variable that nothing sets.",
    why=(
        "The operator of Kubeflow's v1 jobs set MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE in each pod, and "
        "Slurm sets SLURM_*. Trainer v2 sets PET_* instead. A variable that is not set leaves an empty value, "
        "and the launcher ends: invalid int value: ''."
    ),
    fix="Remove the option, or take the value from a PET_* variable.",
)
