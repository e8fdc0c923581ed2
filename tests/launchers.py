"""Random command lines over the table of launchers, and how a real MPI runs them.

For Hypothesis: `command_lines(family, ranks, slots)` draws a command of the user, right or wrong, for an
image of that family. Ask gangplan (tests.plan.asking.decided, or a spec): where it has an error, nothing is
promised; where it has none, the rendered run must start every planned rank once on the planned hosts. The
last word of every command is the program, MARK; a caller puts its own program there::

    @given(command_lines("OpenMPI5", ranks=4, slots=2))
    def test_law(words):
        final = decided(root, "openmpi", [program if word == MARK else word for word in words], ...)
        if not any(fault.severity is Severity.ERROR for fault in final.faults):
            assert started(final.argv) == planned

`right_lines` draws only commands that gangplan must not refuse.
"""

from __future__ import annotations

from hypothesis import strategies as st

from gangplan.plan.launchers import MPI_LAUNCHERS, LauncherOption, MpiGeneration

MARK = "MARK"
IMAGES: dict[MpiGeneration, str] = {
    "OpenMPI4": "openmpi4",
    "OpenMPI5": "openmpi",
    "MPICH": "mpich",
    "IntelMPI": "intel",
}
PROGRAMS: dict[MpiGeneration, tuple[str, ...]] = {
    "OpenMPI4": ("mpirun", "mpiexec", "orterun"),
    "OpenMPI5": ("mpirun", "mpiexec", "prterun"),
    "MPICH": ("mpirun", "mpiexec", "mpiexec.hydra"),
    "IntelMPI": ("mpirun", "mpiexec", "mpiexec.hydra"),
}
# Options that work on any machine and change nothing about ranks and hosts, each as its words.
HARMLESS: dict[MpiGeneration, tuple[tuple[str, ...], ...]] = {
    "OpenMPI4": (
        ("--report-bindings",), ("--tag-output",), ("-x", "A=1"), ("--mca", "btl_base_verbose", "0"),
        ("--oversubscribe",), ("--display-map",), ("-wdir", "/"), ("--bind-to", "none"), ("-bind-to", "none"),
        ("--merge-stderr-to-stdout",), ("-q",), ("--rank-by", "slot"),
    ),
    "OpenMPI5": (
        ("--report-bindings",), ("--tag-output",), ("-x", "A=1"), ("--mca", "btl_base_verbose", "0"),
        ("--oversubscribe",), ("--display-map",), ("--wdir", "/"), ("--bind-to", "none"), ("--output", "tag"),
        ("--prtemca", "ras_base_verbose", "0"), ("--wdir=/",),
    ),
    "MPICH": (
        ("-l",), ("-genv", "A", "1"), ("-env", "B", "2"), ("-genvall",), ("-wdir", "/"), ("-bind-to", "none"),
        ("-launcher", "ssh"), ("-print-all-exitcodes",), ("-verbose",),
    ),
    "IntelMPI": (
        ("-l",), ("-genv", "A", "1"), ("-env", "B", "2"), ("-genvall",), ("-wdir", "/"), ("-print-rank-map",),
        ("-bootstrap", "ssh"), ("-genv", "I_MPI_DEBUG", "0"), ("-wdir=/",),
    ),
}  # fmt: skip
PREFIXES = (("env", "C=3"), ("time",), ("timeout", "60"), ("nice", "-n", "0"), ("nohup",), ("stdbuf", "-oL"))
INNER = ((), ("env", "D=4"), ("bash", "-c", 'exec "$0"'), ("nice",))


def _counts(family: MpiGeneration, ranks: int, slots: int) -> list[tuple[str, ...]]:
    """Return every spelling of the right number of ranks, and no number at all."""
    spelled = [
        ("-np", str(ranks)),
        ("-n", str(ranks)),
        ("--np" if family.startswith("Open") else "-np", str(ranks)),
    ]
    if family != "OpenMPI4":
        spelled.append((f"-n={ranks}",) if family != "OpenMPI5" else (f"--np={ranks}",))
    if family.startswith("Open"):
        layouts = [("--map-by", f"ppr:{slots}:node"), ("--npernode", str(slots)), ("-N", str(slots))]
        spelled += [(*count, *layout) for count in (("-np", str(ranks)), ()) for layout in layouts]
    else:
        spelled += [("-ppn", str(slots)), ("-n", str(ranks), "-ppn", "1")]
    return [*spelled, ()]


def _in_shell(words: list[str]) -> list[str]:
    import shlex

    return ["bash", "-c", f"cd / && {shlex.join(words)}"]


@st.composite
def right_lines(draw: st.DrawFn, family: MpiGeneration, ranks: int, slots: int) -> list[str]:
    """Draw a launcher with the planned numbers and harmless options, after prefixes or in a shell."""
    options = draw(
        st.lists(
            st.sampled_from(HARMLESS[family]),
            max_size=4,
            unique_by=lambda one: one[0].lstrip("-").split("=")[0],
        )
    )
    count = draw(st.sampled_from(_counts(family, ranks, slots)))
    parts = draw(st.permutations([*options, count]))
    prefix = draw(st.sampled_from([(), (), *PREFIXES]))
    inner = draw(st.sampled_from(INNER))
    program = draw(st.sampled_from(PROGRAMS[family]))
    words = [*prefix, program, *(word for part in parts for word in part), *inner, MARK]
    return _in_shell(words) if draw(st.integers(0, 4)) == 0 else words


def _value(option: LauncherOption, ranks: int, slots: int) -> st.SearchStrategy[str]:
    numbers = [str(ranks), str(slots), "1", "3", str(ranks + 1)]
    return st.sampled_from(
        [
            *numbers,
            "none",
            "core",
            "slot",
            "node",
            "a,b",
            "/etc/mpi/hostfile",
            f"ppr:{slots}:node",
            "A=1",
            "x",
        ]
    )


@st.composite
def command_lines(draw: st.DrawFn, family: MpiGeneration, ranks: int, slots: int) -> list[str]:
    """Draw any command from the tables: options of this family and others, any values, nested launchers."""
    table = MPI_LAUNCHERS[draw(st.sampled_from([family, family, family, *MPI_LAUNCHERS]))]
    words = [draw(st.sampled_from([*PROGRAMS[family], "mpirun", "torchrun", "srun", "horovodrun"]))]
    for option in draw(
        st.lists(st.sampled_from(sorted(table.options.values(), key=lambda one: one.name)), max_size=4)
    ):
        dashes = draw(st.sampled_from(["-", "--"]))
        words.append(dashes + option.name)
        words += [draw(_value(option, ranks, slots)) for _ in range(option.words)]
    words += draw(st.sampled_from([("-np", str(ranks)), ("-n", str(ranks)), (), ("-np", "3")]))
    words += draw(st.sampled_from([*INNER, ("mpirun",), ("torchrun",), ("--",), (":",)]))
    words.append(MARK)
    words = [*draw(st.sampled_from([(), *PREFIXES])), *words]
    return _in_shell(words) if draw(st.booleans()) and draw(st.booleans()) else words


# Any words, and words that are likely to confuse a reader of commands and scripts.
junk = st.sampled_from(
    ["mpirun", "torchrun", "srun", "bash", "-c", "-lc", "env", "-i", "-u", "A=1", "python", "-m", "torch.distributed.run",
     "-np", "-np=", "--", "-", ":", "=", "$(", "`", "'", '"', "<<E", "${", "&&", ";", "|", "(", ")", "\n", "case x in",
     "for", "do", "done", "eval", "exec", "timeout", "setsid", "-x", "--mca", "", " ", "\\", "#", "$'", "é", "-H", "accelerate",
     "launch", "time", "-o", "-ppn", "2", "numactl", "taskset", "nice", "conda", "run", "{ranks}", "{{", "<x>"]
) | st.text(max_size=8)  # fmt: skip
