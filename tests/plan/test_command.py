"""The final command: what is wrapped, what is kept, and which rank counts are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request, Result
from gangplan.rules.model import Severity
from tests import workspaces
from tests.plan.asking import decided

MPI = "mpirun -np 8 --bind-to none --map-by slot -x PATH -x LD_LIBRARY_PATH"


def planned(root: Path, image: str, command: str, more: str = "") -> Result:
    """Return the plan of a spec with 4 workers of 2 GPUs."""
    spec = workspaces.SPEC.replace("image: openmpi", f"image: {image}")
    spec = spec.replace("[python, train.py]", command) + (f"{more}\n" if more else "")
    workspaces.write(root, {"specs/nlp/filings.yaml": spec})
    return preview_render(Request(root, engine="serial"))


def final(root: Path, image: str, command: str, more: str = "") -> str:
    """Return the final command."""
    result = planned(root, image, command, more)
    assert [one.message for one in result.findings if one.severity is Severity.ERROR] == []
    # What every run carries has its own tests (tests/generators/test_laws.py).
    return " ".join(result.runs[0].unit.launch.argv).replace(" -x OMP_NUM_THREADS", "")


@pytest.mark.parametrize(
    ("image", "command", "more", "expected"),
    [
        ("openmpi", "[python, a.py]", "", f"{MPI} python a.py"),
        ("openmpi4", "[./solver]", "", f"{MPI} ./solver"),
        ("horovod", "[python, a.py]", "", f"{MPI} python a.py"),
        ("deepspeed", "[python, a.py]", "", f"{MPI} python a.py"),
        ("openmpi", "python a.py --name 'x y'", "", f"{MPI} python a.py --name x y"),
        ("openmpi", "[python, a.py]", "env: {B: 1, A: 2}", f"{MPI} -x A -x B python a.py"),
        ("openmpi", "[p]", "mpi: {bindTo: core, mapBy: numa, flags: [--report-bindings]}",
         "mpirun -np 8 --bind-to core --map-by numa -x PATH -x LD_LIBRARY_PATH --report-bindings p"),
        ("openmpi", "[p]", "slots: 4", MPI.replace("-np 8", "-np 16") + " p"),
        ("mpich", "[p, x]", "env: {A: 1}", "mpirun -n 8 -ppn 2 p x"),
        ("mpich", "[p]", "mpi: {bindTo: core}", "mpirun -n 8 -ppn 2 -bind-to core p"),
        ("mpich", "[p]", "mpi: {bindTo: core, mapBy: numa}", "mpirun -n 8 -ppn 2 -bind-to core -map-by numa p"),
        ("mpich", "[p]", "mpi: {mapBy: node}", "mpirun -n 8 -ppn 1 p"),
        ("mpich", "[p]", "mpi: {flags: [-ppn, 1, -bind-to, socket]}", "mpirun -n 8 -ppn 1 -bind-to socket p"),
        ("intel", "[p]", "mpi: {licenseAcknowledged: true, bindTo: numa}",
         "mpirun -n 8 -ppn 2 -genv I_MPI_PIN_DOMAIN numa p"),
        ("openmpi", "[p]", "mpi: {flags: [--bind-to, core]}",
         "mpirun -np 8 --map-by slot -x PATH -x LD_LIBRARY_PATH --bind-to core p"),
        ("openmpi", "[p]", "mpi: {flags: ['--map-by', 'ppr:2:node:PE=4']}",
         "mpirun -np 8 -x PATH -x LD_LIBRARY_PATH --map-by ppr:2:node:PE=4 p"),
        ("openmpi4", "[p]", "mpi: {flags: [-np, 8, -x, PATH, --npernode, 2]}",
         "mpirun --bind-to none -x LD_LIBRARY_PATH -np 8 -x PATH --npernode 2 p"),
        ("openmpi", "[env, B=1, mpirun, p]", "", "env B=1 mpirun -x PATH -x LD_LIBRARY_PATH -x B p"),
        ("openmpi", "[bash, -c, 'cd /a && mpirun -np 8 p; exec mpirun q']", "",
         "bash -c cd /a && mpirun -x PATH -x LD_LIBRARY_PATH -np 8 p; exec mpirun -x PATH -x LD_LIBRARY_PATH q"),
        ("mpich", "[bash, -c, 'cd /a && mpiexec -n 8 p']", "", "bash -c cd /a && mpiexec -n 8 p"),
        ("pytorch", "[python, -u, a.py]", "", "torchrun --no-python python -u a.py"),
        ("pytorch", "[/opt/venv/bin/python, a.py]", "", "torchrun --no-python /opt/venv/bin/python a.py"),
        ("pytorch", "[bash, -c, 'torchrun a.py']", "", "bash -c torchrun a.py"),
        ("openmpi", "[mpirun, -np, '{ranks}', p]", "", "mpirun -x PATH -x LD_LIBRARY_PATH -np 8 p"),
        ("openmpi", "[mpirun, p]", "", "mpirun -x PATH -x LD_LIBRARY_PATH p"),
        ("openmpi", "[/opt/mpi/bin/mpirun, -x, PATH, p]", "env: {A: 1}",
         "/opt/mpi/bin/mpirun -x LD_LIBRARY_PATH -x A -x PATH p"),
        ("mpich", "[mpiexec, -n, 8, p]", "env: {A: 1}", "mpiexec -n 8 p"),
        ("horovod", "[horovodrun, -np, 8, p]", "",
         "horovodrun --hostfile /etc/mpi/hostfile --ssh-port 2222 -np 8 p"),
        ("horovod", "[horovodrun, -np, 8, -p, 2222, p]", "",
         "horovodrun --hostfile /etc/mpi/hostfile -np 8 -p 2222 p"),
        ("deepspeed", "[deepspeed, a.py]", "", "deepspeed --hostfile /etc/mpi/hostfile a.py"),
        ("pytorch", "[python, a.py, --x]", "", "torchrun a.py --x"),
        ("pytorch", "[python3.12, -m, pkg]", "", "torchrun -m pkg"),
        ("pytorch", "[./program]", "", "torchrun --no-python ./program"),
        ("pytorch", "[torchrun, --nproc-per-node, 2, a.py]", "", "torchrun --nproc-per-node 2 a.py"),
        ("openmpi", "[p, '{workers}x{slots}={ranks}', '{other}']", "", f"{MPI} p 4x2=8 {{other}}"),
        ("pytorch", "python a.py \\\n  --lr 1e-4 \\\n  --x", "", "torchrun a.py --lr 1e-4 --x"),
        ("pytorch", ">-\n  python a.py \\\n  --lr 1e-4 \\\n  --x \\", "", "torchrun a.py --lr 1e-4 --x"),
        ("pytorch", "|\n  python a.py \\\n    --lr 1e-4", "", "torchrun a.py --lr 1e-4"),
        ("pytorch", "python a.py x\\ y \"c \\ d\" 'e \\ f' \\\\ g", "", r"torchrun a.py x y c \ d e \ f \ g"),
        ("pytorch", "python a.py --by \\  --x", "", "torchrun a.py --by   --x"),
    ],
)  # fmt: skip
def test_the_final_command_is_as_expected(
    image: str, command: str, more: str, expected: str, root: Path
) -> None:
    assert final(root, image, command, more) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('bash -c "cd /app && python a.py"', ["bash", "-c", "cd /app && python a.py"]),
        ("bash -ec 'for i in 1 2; do p $i; done'", ["bash", "-ec", "for i in 1 2; do p $i; done"]),
        ('bash -ec "for i in 1 2; do p \\$i; done"', ["bash", "-ec", "for i in 1 2; do p $i; done"]),
        ("|\n  bash -c 'cd /app\n  p \\\n  --x'", ["bash", "-c", "cd /app\np \\\n--x"]),
        ("./p --regex \"a|b\" --expr 'x>3' --url a\\&b", ["./p", "--regex", "a|b", "--expr", "x>3", "--url", "a&b"]),
        ('python -c "import a; print(a)"', ["python", "-c", "import a; print(a)"]),
    ],
)  # fmt: skip
def test_operators_in_quotes_need_no_further_shell(line: str, words: list[str], root: Path) -> None:
    result = planned(root, "pytorch", line)
    assert [one.message for one in result.findings] == []
    assert list(result.runs[0].unit.launch.argv) == ["torchrun", "--no-python", *words]


@pytest.mark.parametrize(
    "line",
    [
        "bash -c 'cd /app' && python a.py",
        "python a.py 'a|b' | tee log",
        'python a.py "don\'t" > log',
        "|\n  # don't\n  cd /app && python a.py\n  # won't",
        "|\n  python a.py\n  # don't",
        "|\n  cat <<EOF\n  don't\n  EOF",
        "python a.py \\\\; b",
    ],
)
def test_operators_outside_of_quotes_need_a_shell(line: str, root: Path) -> None:
    assert [one.rule for one in planned(root, "pytorch", line).findings] == ["command-shell"]


@pytest.mark.parametrize(
    ("script", "rules"),
    [
        ("bash <<EOF\ntorchrun --standalone a.py\nEOF", ["command-rendezvous"]),
        ("bash -s <<'EOF'\ncd /data\ntorchrun --standalone a.py\nEOF\necho done", ["command-rendezvous"]),
        ("cat <<-EOF | bash -ex\n\ttorchrun --standalone a.py\n\tEOF", ["command-rendezvous"]),
        ("cat >run.sh <<EOF\ntorchrun --standalone a.py\nEOF\npython a.py", []),
        ("bash prepare.sh <<EOF\ntorchrun --standalone a.py\nEOF\npython a.py", []),
        ("python - <<EOF\ntorchrun\nEOF\npython a.py", []),
        ("bash <<EOF\ncd /data; echo don't\nEOF\npython a.py", []),
    ],
)
def test_a_launcher_in_a_here_document_of_a_shell_is_seen(script: str, rules: list[str], root: Path) -> None:
    found = decided(root, "pytorch", ["bash", "-c", script]).problems
    assert [str(one.rule) for one in found if one.severity is Severity.ERROR] == rules


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("openmpi", "[mpirun, python, train.py, -c, config.yaml]"),
        ("openmpi", "[mpirun, --oversubscribe, python, train.py, -n, 100]"),
        ("openmpi", "[mpirun, --allow-run-as-root, python, -c, 'print(1)']"),
        ("openmpi", "[mpirun, --mca, btl, 'tcp,self', -np, 8, ./solver, -np, 3]"),
        ("openmpi", "[mpirun, -np, 8, bash, -c, 'exec ./solver']"),
        ("openmpi", "[mpirun, --map-by, 'ppr:2:node', --report-bindings, ./solver, -n, 3]"),
        ("mpich", "[mpiexec, -genv, A, b, -n, 8, ./solver, -n, 3]"),
        ("mpich", "[mpiexec, -ppn, 2, ./solver, -n, 3]"),
        ("horovod", "[horovodrun, --gloo, -np, 8, python, train.py, -np, 3]"),
        ("horovod", "[horovodrun, --verbose, -np, 8, python, train.py, --num-proc, 3]"),
        ("openmpi", "[python, -c, 'print(1)', -np, 3]"),
    ],
)
def test_counts_after_the_program_are_not_rank_counts(image: str, command: str, root: Path) -> None:
    result = planned(root, image, command)
    assert [one for one in result.findings if one.rule == "ranks-mismatch"] == []


@pytest.mark.parametrize(
    ("image", "command", "column"),
    [
        ("openmpi", "[mpirun, -np, 4, python, train.py]", 24),
        ("openmpi", "[mpirun, --oversubscribe, -np, 4, python, train.py]", 41),
        ("openmpi", "[mpirun, --mca, btl, self, -n, 4, python, train.py]", 41),
        ("openmpi", "[mpirun, -x, A, --bind-to, core, -c, 4, ./solver]", 47),
        ("openmpi", "[mpirun, --np, four, ./solver]", 25),
        ("openmpi", "[mpirun, -np=48, ./solver]", 19),
        ("openmpi", "[bash, -c, mpirun -np 3 ./solver]", 21),
        ("openmpi", "[mpirun, -np, 4, ./a, ':', -np, 3, ./b]", 24),
        ("openmpi", "[mpirun, -N, 4, ./solver]", 23),
        ("openmpi4", "[mpirun, --map-by, 'ppr:4:node', ./solver]", 29),
        ("mpich", "[mpiexec, -ppn, 3, ./solver]", 26),
        ("horovod", "[horovodrun, --num-proc=48, python, x.py]", 23),
        ("horovod", "[horovodrun, --autotune, -np, 48, python, x.py]", 40),
        ("horovod", "[horovodrun, --num-p, 48, python, x.py]", 32),
        ("horovod", "[horovodrun, python, x.py]", 11),
        ("mpich", "[mpiexec.hydra, -genv, A, b, -np, 4, ./solver]", 44),
        ("horovod", "[horovodrun, --gloo, --num-proc, 4, python, x.py]", 43),
        ("pytorch", "[torchrun, --nnodes=2, x.py]", 21),
        ("pytorch", "[torchrun, --nproc_per_node, 4, x.py]", 39),
        ("deepspeed", "[deepspeed, --num_gpus=4, x.py]", 22),
    ],
)
def test_wrong_rank_counts_are_reported_at_their_word(
    image: str, command: str, column: int, root: Path
) -> None:
    result = planned(root, image, command)
    found = [str(one.where) for one in result.findings if one.rule == "ranks-mismatch"]
    assert found == [f"specs/nlp/filings.yaml:4:{column}"]


@pytest.mark.parametrize(
    ("script", "help"),
    [
        (
            "mpirun -np 1 ./prep && mpirun -np 8 ./a",
            "Start the program without mpirun: it then runs once, on the launcher.",
        ),
        (
            "mpirun -np 4 ./prep && mpirun -np {ranks} ./a",
            "Write -np 8 if the program can use all ranks; if it cannot, run it as a job of its own.",
        ),
        (
            "mpirun -np 1 ./prep && mpirun ./a",
            "Start the program without mpirun: it then runs once, on the launcher.",
        ),
        ("mpirun -np 4 ./a", "[bash, -c, 'mpirun -np 8 ./a']."),
    ],
)
def test_no_command_with_more_ranks_is_proposed_for_the_smaller_of_two_launches(
    script: str, help: str, root: Path
) -> None:
    (found,) = [one for one in planned(root, "openmpi", f"[bash, -c, '{script}']").findings if one.is_error]
    assert found.rule == "ranks-mismatch"
    assert found.help.endswith(help)
    assert ("Write command" in found.help) is ("[" in help)


@pytest.mark.parametrize(
    "script",
    [
        "A=x; " + 'A="$A $A"; ' * 60 + "mpirun $A ./a",
        "A=(x); " + 'A+=("${A[@]}"); ' * 60 + "mpirun ${A[@]} ./a",
        "A='" + "x " * 8000 + "'; mpirun " + "$A " * 8000 + "./a",
        "A='" + "x " * 8000 + "'; bash -c \"mpirun " + "$A " * 8000 + './a"',
    ],
    ids=["a text", "an array", "words", "a script"],
)
def test_values_that_grow_faster_than_their_script_are_not_read(script: str, root: Path) -> None:
    final = decided(root, "openmpi", ["bash", "-c", script])
    assert not final.is_wrapped
    assert sum(map(len, final.argv)) < len(script) + 1000
