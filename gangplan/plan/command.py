"""The final command: a plain program is wrapped so that every rank runs; an explicit launcher is checked."""

from __future__ import annotations

import os.path
import re
from dataclasses import dataclass

from gangplan.model.job import Family, Job

# Programs that start ranks themselves (C-56).
MPI_LAUNCHERS = frozenset({"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"})
OTHER_LAUNCHERS = frozenset({"horovodrun", "deepspeed", "torchrun"})
HOSTFILE = "/etc/mpi/hostfile"  # written by Trainer (plugins/mpi), one `host slots=N` a line
HYDRA_HOSTFILE = "/tmp/gangplan-hostfile"  # the same hosts as Hydra reads them, `host:N`

_COUNT_OPTIONS = {
    "mpirun": ("-np", "-n", "-c", "--n", "--np"),
    "mpiexec": ("-np", "-n", "-c", "--n", "--np"),
    "mpiexec.hydra": ("-np", "-n"),
    "orterun": ("-np", "-n", "-c", "--n", "--np"),
    "prterun": ("-np", "-n", "-c", "--n", "--np"),
    "horovodrun": ("-np", "--num-proc"),
}


# Launcher options, without their dashes, that take two words, and common ones that take none; any other is
# taken to have one.
_TWO_WORDS = frozenset(["mca", "gmca", "prtemca", "pmixmca", "env", "genv"])
_NO_WORD = frozenset(
    (
        *("allow-run-as-root", "bynode", "byslot", "disable-cache", "display-allocation", "display-map"),
        *("genvall", "genvnone", "gloo", "l", "mpi", "nolocal", "nooversubscribe", "oversubscribe"),
        *("prepend-rank", "print-all-exitcodes", "q", "quiet", "report-bindings", "tag-output"),
        *("timestamp-output", "use-gloo", "use-hwthread-cpus", "use-mpi", "v", "verbose"),
    )
)
_INTERPRETER = re.compile(r"python[0-9.]*|bash|sh|env|\./.*")


@dataclass(frozen=True, slots=True)
class Count:
    """A number of ranks that the command names, the word it stands in, and the number that is right."""

    option: str
    written: str
    expected: int
    word: int


@dataclass(frozen=True, slots=True)
class Final:
    """The argument vector that the launcher runs, who starts the ranks, and counts that disagree."""

    argv: tuple[str, ...]
    launcher: str
    is_wrapped: bool
    wrong: tuple[Count, ...] = ()


def final_command(job: Job) -> Final:
    """The command of the launcher (of every worker for torch)."""
    words = tuple(_fill(word, job) for word in job.command)
    program = os.path.basename(words[0])
    if job.image.framework == "torch":
        return _torch(job, words, program)
    if program in MPI_LAUNCHERS:
        return Final(_forwarding(job, words), program, False, _wrong_counts(job, program, words))
    if program == "horovodrun":
        return Final(_horovodrun(job, words), program, False, _wrong_counts(job, program, words))
    if program == "deepspeed":
        return Final(_deepspeed(words), program, False, _wrong_deepspeed(job, words))
    return Final(_wrapped(job, words), "mpirun", True)


def _fill(word: str, job: Job) -> str:
    """{ranks}, {workers} and {slots} in a word; other braces stay."""
    for name, value in (("{ranks}", job.ranks), ("{workers}", job.workers), ("{slots}", job.slots)):
        word = word.replace(name, str(value))
    return word


def forwarded(job: Job) -> tuple[str, ...]:
    """Names that Open MPI must be told to carry to the workers: sshd passes none of the container's own.

    MPICH and Intel MPI carry the launcher's environment by themselves.
    """
    return ("PATH", "LD_LIBRARY_PATH", *(variable.name for variable in job.env))


def _wrapped(job: Job, words: tuple[str, ...]) -> tuple[str, ...]:
    family: Family = job.image.mpi.family if job.image.mpi else "OpenMPI"
    if family == "OpenMPI":
        carried = tuple(part for name in forwarded(job) for part in ("-x", name))
        # Pods of one node see the same cores, so binding would put their ranks on top of each other.
        placing = ("--bind-to", job.bind_to, "--map-by", job.map_by)
        return ("mpirun", "-np", str(job.ranks), *placing, *carried, *job.mpi_flags, *words)
    binding = () if job.bind_to == "none" else ("-bind-to", job.bind_to)
    return ("mpirun", "-n", str(job.ranks), "-ppn", str(job.slots), *binding, *job.mpi_flags, *words)


def _forwarding(job: Job, words: tuple[str, ...]) -> tuple[str, ...]:
    """The user's own mpirun, with -x for each variable that it does not carry yet (Open MPI only)."""
    if job.image.mpi is None or job.image.mpi.family != "OpenMPI":
        return words
    own = words[: _program_at(words)]
    carried = {own[index + 1].split("=")[0] for index, word in enumerate(own[:-1]) if word == "-x"}
    added = tuple(part for name in forwarded(job) if name not in carried for part in ("-x", name))
    return (words[0], *added, *words[1:])


def _horovodrun(job: Job, words: tuple[str, ...]) -> tuple[str, ...]:
    """horovodrun runs on its own host only unless it is given hosts, and asks port 22 unless told."""
    options = set(words)
    added: tuple[str, ...] = ()
    if not options & {"-H", "--hosts", "-hostfile", "--hostfile"}:
        added += ("--hostfile", HOSTFILE)
    if not options & {"-p", "--ssh-port"}:
        added += ("--ssh-port", str(job.image.ssh.port))
    return (words[0], *added, *words[1:])


def _deepspeed(words: tuple[str, ...]) -> tuple[str, ...]:
    if {"-H", "--hostfile"} & set(words):
        return words
    return (words[0], "--hostfile", HOSTFILE, *words[1:])


def _torch(job: Job, words: tuple[str, ...], program: str) -> Final:
    """torchrun reads node count, rank and address from the PET_* variables that Trainer sets."""
    if program == "torchrun":
        return Final(words, "torchrun", False, _wrong_torchrun(job, words))
    if re.fullmatch(r"python(3(\.[0-9]+)?)?", program):
        return Final(("torchrun", *words[1:]), "torchrun", True)
    return Final(("torchrun", "--no-python", *words), "torchrun", True)


def _wrong_counts(job: Job, program: str, words: tuple[str, ...]) -> tuple[Count, ...]:
    """Rank counts that are not workers times slots. Words after the first program are not options."""
    wrong = []
    for index, word in enumerate(words[1 : _program_at(words) - 1], start=1):
        if word in _COUNT_OPTIONS[program] and words[index + 1] != str(job.ranks):
            wrong.append(Count(word, words[index + 1], job.ranks, index + 1))
        if word in _COUNT_OPTIONS[program]:
            break
    return tuple(wrong)


def _program_at(words: tuple[str, ...]) -> int:
    """Where the launcher's own options end and the program begins."""
    index = 1
    while index < len(words) and words[index].startswith("-"):
        option, following = words[index], words[index + 1 : index + 2]
        has_none = option.lstrip("-") in _NO_WORD or "=" in option
        if has_none or (following and _INTERPRETER.fullmatch(following[0])):
            index += 1
        else:
            index += 3 if option.lstrip("-") in _TWO_WORDS else 2
    return min(index, len(words))


def _wrong_deepspeed(job: Job, words: tuple[str, ...]) -> tuple[Count, ...]:
    return _wrong_options(words, {"--num_nodes": job.workers, "--num_gpus": job.slots})


def _wrong_torchrun(job: Job, words: tuple[str, ...]) -> tuple[Count, ...]:
    counts = {"--nnodes": job.workers, "--nproc-per-node": job.slots, "--nproc_per_node": job.slots}
    return _wrong_options(words, counts)


def _wrong_options(words: tuple[str, ...], expected: dict[str, int]) -> tuple[Count, ...]:
    wrong = []
    for index, word in enumerate(words[1:], start=1):
        option, equals, attached = word.partition("=")
        if option not in expected:
            continue
        value, place = (
            (attached, index) if equals else (words[index + 1] if index + 1 < len(words) else "", index + 1)
        )
        if value != str(expected[option]) and value not in ("auto", "gpu", "cpu"):
            wrong.append(Count(option, value, expected[option], min(place, len(words) - 1)))
    return tuple(wrong)
