"""Words that cannot mean what they say, and words that look like them but are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.plan.problems import format_flow_list
from gangplan.plan.words import LONGEST_COMMAND, LONGEST_WORD
from tests.plan.asking import job_of, problems

RULES = {
    "command-one-word": (
        [["python train.py --lr 1"], ["env", "A=1", "python a.py"], ["mpirun", "-np", "8", "python a.py"],
         ["./run.sh --fast"], ["uv", "run", "train.sh"], ["python", "train.py", "--lr 1e-4"], ["python", "train.py --lr 1"], ["./a", "--lr=1", "--batch-size 32 --amp"]],
        [["./a", "-n 10"], ["./a", "--args", "--lr 1"], ["./a", "--text=a b"], ["python", "-c", "--lr 1"],
         ["./a", "--"], ["./a", "--it's fine"], ["uv", "run", "--no-sync", "train.py"], ["bash", "-c", "./a", "--lr 1"],
         ["python", "my train.py"], ["python", "train.py 1"], ["/opt/my app/run"], ["bash", "-c", "python train.py"], ["python"]],
    ),
    "command-variable": (
        [["python", "$HOME/a.py"], ["python", "a.py", "--out=${RUN_DIR}/x"], ["./a", "$(date)"], ["./a", "~/x"],
         ["mpirun", "-np", "$NP", "./a"], ["./a", "${DATA:-/data}"]],
        [["bash", "-c", "python $HOME/a.py"], ["./a", "$"], ["./a", "cost$"], ["./a", "${model.size}"],
         ["./a", "^x$|^y$"], ["python", "-c", "print('$HOME')"], ["awk", "{print $NF}"], ["./a", "a~/b"],
         ["mpirun", "bash", "-c", "echo $HOSTNAME"], ["./a", "$lower"], ["./a", "US$5"], ["./a", "${oc.env:USER}"]],
    ),
    "command-placeholder": (
        [["./a", "{rank}"], ["./a", "--np={nproc}"], ["./a", "{{ x }}"], ["./a", "<path>"], ["./a", "--data=<data dir>"],
         ["./a", "{% if x %}"]],
        [["./a", "{ranks}"], ["./a", "{epoch}-{val_loss:.2f}"], ["./a", "<pad>"], ["./a", "{}"], ["./a", "{0000..0100}.tar"],
         ["./a", '{"rank": 3}'], ["./a", "a<b>c"], ["./a", "<s>"]],
    ),
    "command-shell": (
        [["cd", "/app"], ["A=1", "python", "a.py"], ["exec", "./a"], ["source", "x.sh"], ["export", "A=1"]],
        [["/usr/bin/cd"], ["./cd"], ["env", "A=1", "./a"], ["time", "./a"], ["bash", "-c", "cd /app && ./a"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "words"), [(rule, words) for rule, (wrong, _) in RULES.items() for words in wrong], ids=str
)
def test_wrong_words_break_the_rule(rule: str, words: list[str], root: Path) -> None:
    assert rule in {one.rule for one in problems(root, "openmpi", words)}


@pytest.mark.parametrize(
    ("rule", "words"), [(rule, words) for rule, (_, right) in RULES.items() for words in right], ids=str
)
def test_right_words_do_not_break_the_rule(rule: str, words: list[str], root: Path) -> None:
    assert rule not in {one.rule for one in problems(root, "openmpi", words)}


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["./a", "--rank", "$(RANK)"], './a --rank "$RANK"'),
        (["./a", "$(MASTER_ADDR):23456", "$(A)$(B)"], './a "$MASTER_ADDR:23456" "$A$B"'),
        (["./a", "$(RANK)_x", "$(RANK)0"], './a "${RANK}_x" "${RANK}0"'),
        (["./a", "$(date)", "$(hostname -f)"], './a "$(date)" "$(hostname -f)"'),
        (["./a", "`hostname`"], './a "$(hostname)"'),
        (["./a", "$RANK", "~/x"], "./a \"$RANK\" '~/x'"),
    ],
)
def test_a_variable_in_the_form_of_kubernetes_becomes_one_of_the_shell(
    words: list[str], script: str, root: Path
) -> None:
    """A shell takes $(RANK) for a command of that name."""
    helps = [one.help for one in problems(root, "openmpi", words) if one.rule == "command-variable"]
    assert script in helps[0].replace("''", "'")


@pytest.mark.parametrize(
    ("words", "script"),
    [
        (["mpirun", "$(which app)", "x.yml"], 'mpirun "$(which app)" x.yml'),
        (["mpirun", "`which app`", "x.yml"], 'mpirun "$(which app)" x.yml'),
        (["$(which app)", "x.yml"], '"$(which app)" x.yml'),
        (["$(which app) x.yml"], '"$(which app)" x.yml'),
        (["mpirun", "$(python -c 'print(a)')"], "mpirun \"$(python -c 'print(a)')\""),
    ],
)
def test_a_substitution_is_not_split_at_its_blanks(words: list[str], script: str, root: Path) -> None:
    found = problems(root, "openmpi", words)
    help = next(one.help for one in found if one.rule == "command-variable")
    assert help == f"Write command: {format_flow_list(['bash', '-c', script])}."
    assert ("command-one-word" in [one.rule for one in found]) is words[0].endswith("yml")
    assert not problems(root, "openmpi", ["bash", "-c", script])


def test_a_shell_that_is_needed_anyway_reads_variables_in_its_own_form(root: Path) -> None:
    helps = [one.help for one in problems(root, "openmpi", ["./a", "--rank", "$(RANK)", ">", "log"])]
    assert any('"$RANK"' in help for help in helps)
    assert not any("$(RANK)" in help for help in helps)


@pytest.mark.parametrize(
    ("size", "rules"), [(LONGEST_WORD, set[str]()), (LONGEST_WORD + 1, {"command-too-long"})]
)
def test_a_word_longer_than_linux_takes_is_refused(size: int, rules: set[str], root: Path) -> None:
    """MAX_ARG_STRLEN counts bytes and the ending zero."""
    assert {
        one.rule for one in problems(root, "openmpi", ["./a", "é" * (size // 2) + "x" * (size % 2)])
    } == rules


def test_a_command_longer_than_linux_takes_is_refused(root: Path) -> None:
    words = ["./a", *["x" * 100_000] * (LONGEST_COMMAND // 100_000 + 1)]
    assert [one.rule for one in problems(root, "openmpi", words)] == ["command-too-long"]
    assert problems(root, "openmpi", words[:-2]) == ()


def test_the_limit_of_one_word_is_that_of_the_kernel() -> None:
    """Tries the limit on the kernel of this machine."""
    import subprocess

    subprocess.run(["/bin/true", "x" * LONGEST_WORD], check=True)
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true", "x" * (LONGEST_WORD + 1)], check=True)


def test_the_test_job_has_four_workers_and_two_slots(root: Path) -> None:
    assert (job_of(root, "openmpi").workers, job_of(root, "openmpi").slots) == (4, 2)
