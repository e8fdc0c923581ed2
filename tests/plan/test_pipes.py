"""Scripts whose exit code, and so that of the run, is not that of their program."""

from __future__ import annotations

import pytest

from tests import plain, workspaces
from tests.workspaces import gangplan


@pytest.mark.parametrize(
    ("command", "is_lost"),
    [
        ("[bash, -c, 'torchrun train.py | tee /tmp/log']", True),
        ("[bash, -c, 'cd /src; python train.py | grep loss | tee /tmp/log']", True),
        ("[sh, -c, 'python train.py |& tee /tmp/log']", True),
        ("[bash, -c, 'set -eo pipefail; python train.py | tee /tmp/log']", False),
        ("[bash, -o, pipefail, -c, 'python train.py | tee /tmp/log']", False),
        ("[bash, -c, 'python train.py | tee /tmp/log; exit ${PIPESTATUS[0]}']", False),
        ("[bash, -c, 'cat /data/list | sort | python train.py']", False),
        ("[bash, -c, 'python prepare.py | tee /tmp/log; python train.py']", False),
        ("[bash, -c, 'python train.py > /tmp/log']", False),
        ("[bash, -c, 'python train.py --sep \"|\"']", False),
        ("[bash, -c, 'python train.py | tee /tmp/log && echo done']", True),
        ("[bash, -c, 'python train.py | tee /tmp/log; echo done; date']", True),
        ("[bash, -c, 'set -o pipefail; python train.py | tee /tmp/log && echo done']", False),
        ("[bash, -c, 'cat /data/list | sort && echo done']", False),
        ("[bash, -c, 'python train.py; echo done']", True),
        ('[bash, -c, "cd /src\\npython train.py\\necho done\\n"]', True),
        ("[bash, -c, 'python train.py && echo done']", False),
        ("[bash, -c, 'set -e; python train.py; echo done']", False),
        ("[bash, -ec, 'python train.py; echo done']", False),
        ("[bash, -c, 'python train.py; code=$?; echo done; exit $code']", False),
        ("[bash, -c, 'if true; then python train.py; fi; echo done']", True),
        ("[bash, -c, 'if python train.py; then echo ok; else echo failed; fi']", True),
        ("[bash, -c, 'if python train.py; then echo ok; else echo failed; exit 1; fi']", False),
        ("[bash, -c, 'if [ -d /data ]; then echo there; fi']", False),
        ("[bash, -c, 'if python check.py; then python train.py; fi']", False),
        ("[bash, -c, 'for f in 0 1; do python train.py --fold $f; done; echo ok']", True),
        ("[bash, -c, 'until python train.py; do echo again; done; echo ok']", False),
        ("[bash, -c, 'echo waiting for data; python train.py --mode wait; echo done']", True),
        ("[bash, -c, 'set -e; python train.py && cp -r out /tmp; echo done']", True),
        ("[bash, -c, 'set -e; cd /tmp && python train.py; echo done']", False),
        ("[bash, -c, 'set -e; python train.py && cp -r out /tmp']", False),
        ("[bash, -c, 'python train.py & wait']", True),
        ("[bash, -c, 'python train.py & echo started; wait; echo done']", True),
        ("[bash, -c, 'python train.py & wait $!']", False),
        ("[bash, -c, 'nvidia-smi dmon > /tmp/log & python train.py']", False),
        ("[bash, -c, 'mkdir -p /tmp/a; echo done']", False),
        ("[bash, -c, 'python train.py; true']", False),
        ("[bash, -c, 'python train.py || echo failed']", True),
        ("[bash, -ec, 'python train.py || echo failed; date']", True),
        ("[bash, -c, 'set -e; python train.py || echo failed >&2']", True),
        ("[bash, -c, 'python train.py || { echo failed; exit 1; }']", False),
        ("[bash, -c, 'python train.py || (echo failed; exit 1)']", False),
        ("[bash, -c, 'python train.py || true']", False),
        ("[bash, -c, 'mkdir /tmp/a || echo there; python train.py']", False),
        ("[bash, -c, 'python train.py && echo done || echo failed']", True),
        ("[bash, -c, 'ls /data || echo empty']", False),
        ("[bash, -c, 'echo empty ||']", False),
        ("[bash, -c, 'python train.py; python evaluate.py']", False),
        ("[bash, -c, 'mpirun python a.py; mpirun python b.py']", True),
        ("[bash, -c, 'mpirun python a.py && mpirun python b.py']", False),
        ("[bash, -c, 'set -e; mpirun python a.py; mpirun python b.py']", False),
        ("[bash, -c, 'mpirun python a.py || true; mpirun python b.py']", False),
        ("[bash, -c, 'set +e; python train.py; set -e']", True),
        ("[bash, -ec, 'set +e; python train.py; set -e']", True),
        ("[bash, -ec, 'set +o errexit; python train.py; echo done']", True),
        ("[bash, -c, 'set -o errexit; python train.py; echo done']", False),
        ("[bash, -c, 'python train.py; rm -rf /tmp/cache']", True),
        ("[bash, -c, 'python train.py; cp -r out /tmp']", True),
        ("[bash, -c, 'python train.py && rm -rf /tmp/cache']", False),
        ("[bash, -c, 'rm -rf /tmp/cache; python train.py']", False),
        ("[bash, -c, 'set -e; python train.py && echo trained; echo done']", True),
        ("[bash, -c, 'python train.py && rm -rf /tmp/cache; echo done']", True),
        ("[bash, -c, 'mkdir -p /tmp/a; cp -r /data /tmp/a']", False),
        ("[bash, -c, 'for i in 1 2 3; do python train.py --fold $i; done']", True),
        ('[bash, -c, "for i in 1 2 3\\ndo\\n  cd /tmp; python train.py $i\\ndone > /tmp/log\\n"]', True),
        ("[bash, -ec, 'for i in 1 2 3; do python train.py --fold $i; done']", False),
        ("[bash, -c, 'for i in 1 2 3; do python train.py --fold $i || exit 1; done']", False),
        ("[bash, -c, 'for i in 1 2 3; do python train.py && break; done']", False),
        ("[bash, -c, 'for i in 1 2 3; do python train.py && break || sleep 5; done']", False),
        ("[bash, -c, 'for i in 1 2 3; do mkdir /tmp/$i; done']", False),
        ("[bash, -c, 'exec python train.py; echo done']", False),
        ("[bash, -c, 'exec python train.py | tee /tmp/log']", True),
        ("[bash, -c, 'python train.py; if [ $? -ne 0 ]; then echo failed; fi']", True),
        ("[bash, -c, 'python train.py; if [ $? -eq 0 ]; then echo ok; else echo failed; fi']", True),
        ("[bash, -c, 'python train.py; if [ $? -ne 0 ]; then echo failed; exit 1; fi']", False),
        ("[bash, -c, 'python train.py; if [ $? -ne 0 ]; then false; fi']", False),
        ("[bash, -c, 'python train.py; if [ $? -ne 0 ]; then python train.py; fi']", False),
        ("[bash, -c, 'python train.py; [ $? -eq 0 ] && echo ok']", False),
        ("[bash, -c, 'set -e; python train.py; if [ $? -ne 0 ]; then echo failed; fi']", False),
        ("[bash, -c, 'python train.py; rc=$?; cp -r out /tmp; [ $rc -eq 0 ]']", False),
        ("[bash, -c, 'while read name; do python train.py $name; done < /data/list']", False),
    ],
)
def test_a_lost_exit_code_is_reported(command: str, is_lost: bool, tmp_path: object) -> None:
    spec = workspaces.STOCK["specs/nlp/filings.yaml"].replace("[python, train.py]", command)
    assert plain.load(spec)["command"] == plain.load(command)
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    found = [
        one.severity for one in gangplan("validate", "-C", root).findings if one.rule == "exit-code-lost"
    ]
    assert found == ["warning"] * is_lost


@pytest.mark.parametrize(
    ("command", "help"),
    [
        (
            "'python train.py || echo failed'",
            "Write command: [bash, -c, 'python train.py || { echo failed; exit 1; }'].",
        ),
        ("'python train.py; echo done'", "Write command: [bash, -c, 'set -e; python train.py; echo done']."),
        ("'python train.py & wait'", "Write command: [bash, -c, 'python train.py & wait $!']."),
        ("'python a.py & python b.py & wait'", "Start the program of the run without &, as the last one."),
        (
            "'python train.py | grep -q converged'",
            "Write the output to a file, and search that in the next command.",
        ),
        (
            "'mpirun python a.py; mpirun python b.py'",
            "Write command: [bash, -c, 'set -e; mpirun python a.py; mpirun python b.py'].",
        ),
        ("'if python train.py; then echo ok; fi'", "End the branch for its failure with exit 1."),
    ],
)
def test_the_help_keeps_the_exit_code(command: str, help: str, tmp_path: object) -> None:
    spec = workspaces.STOCK["specs/nlp/filings.yaml"].replace("[python, train.py]", f"[bash, -c, {command}]")
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "exit-code-lost"]
    assert [one.help for one in found] == [help]


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        ("[sleep, infinity]", True),
        ("[sleep, 12h]", True),
        ("[sleep, '86400']", True),
        ("[sleep, '30']", False),
        ("[tail, -f, /dev/null]", True),
        ("[tail, -n, '5', /data/log]", False),
        ("[bash, -c, 'python train.py; sleep infinity']", True),
        ("[bash, -c, 'sleep 30; python train.py']", False),
        ("[ray, start, --head, --block]", True),
        (
            "[bash, -c, 'if [ $NODE_RANK = 0 ]; then ray start --head --block; else ray start --block; fi']",
            True,
        ),
        ("[bash, -c, 'ray start --head && python train.py']", False),
        ("[bash, -c, 'ray start --head --block & python train.py']", False),
        ("[bash, -c, 'if [ $NODE_RANK = 0 ]; then python a.py; else ray start --block || true; fi']", False),
        ("[bash, -c, 'sleep infinity & python train.py']", False),
        ("[timeout, 2h, sleep, infinity]", True),
        ("[jupyter, lab, --ip, 0.0.0.0]", True),
        ("[python, -m, jupyterlab]", True),
        ("[python, -m, notebook]", True),
        ("[jupyter, nbconvert, --execute, train.ipynb]", False),
        ("[tensorboard, --logdir, /data]", True),
        ("[bash, -c, 'tensorboard --logdir /data & python train.py']", False),
        ("[python, sleep.py, infinity]", False),
        ("[python, -m, notebooks.train]", False),
    ],
)
def test_a_command_that_only_waits_is_reported(command: str, waits: bool, tmp_path: object) -> None:
    spec = workspaces.STOCK["specs/nlp/filings.yaml"].replace("[python, train.py]", command)
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    found = [one.severity for one in gangplan("validate", "-C", root).findings if one.rule == "command-waits"]
    assert found == ["warning"] * waits


def test_the_program_behind_a_prefix_is_named(tmp_path: object) -> None:
    command = "[bash, -c, '/usr/bin/time -v mpirun ./solve | grep -v warn']"
    spec = workspaces.STOCK["specs/nlp/filings.yaml"].replace("[python, train.py]", command)
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule == "exit-code-lost"]
    assert [one.message.partition(": ")[2] for one in found] == ["if mpirun fails, it counts as complete"]
