"""What a batch script starts in the background stays there, and is waited for where the script does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.imports.test_script_meaning import read, refusals, values

HEAD = "#!/bin/bash\n#SBATCH -N 2 -n 8\n"
CASES = {
    "./monitor.sh &\nsrun ./train\nkill %1": "./monitor.sh &\nmpirun ./train\nkill %1",
    "tensorboard --logdir x & P=$!\nsrun ./train\nkill $P": (
        "tensorboard --logdir x &\nP=$!\nmpirun ./train\nkill $P"
    ),
    "nvidia-smi dmon &\nP=$!\nsrun ./train\nkill $P": "./train",  # it ends what no run starts
    "srun ./train &\nP=$!\n./monitor.sh\nwait $P": "mpirun ./train &\nP=$!\n./monitor.sh\nwait $P",
    "srun ./train &\nwait\ncp a b": "mpirun ./train\ncp a b",
    "trap 'kill $P' TERM\nsrun ./train & P=$!\nwait $P": "./train",
    "{ srun ./a; srun ./b; } &\nwait": "mpirun ./a\nmpirun ./b",
    "(while true; do ./m.sh; sleep 6; done) &\nsrun ./train": (
        "(while true; do ./m.sh; sleep 6; done) &\nmpirun ./train"
    ),
    "cd x && ./m &\nsrun ./train": "cd x && ./m &\nmpirun ./train",
    "A=1\nfor i in 1 2; do python t.py $A $i & done\nwait": (
        "A=1\nfor i in 1 2; do python t.py $A $i & done\nwait"
    ),
    "python a.py &\npython b.py &\nwait": "python a.py &\npython b.py\nwait",
}
REFUSED = {
    "a server and its client": ("srun ./server &\nsleep 10\nsrun ./client", 5),
    "a launch and another one before the wait": ("srun ./prep &\nsrun ./train\nwait", 4),
    "a group that goes on while others run": ("{ srun ./a; cp x y; } &\n./monitor.sh\nwait", 3),
    "a subshell while others run": ("( cd x; srun ./a ) &\n./monitor.sh\nwait", 3),
}


@pytest.mark.parametrize("lines", CASES)
def test_the_run_waits_where_the_script_does(tmp_path: Path, lines: str) -> None:
    found = values(tmp_path, f"{HEAD}{lines}\n", "openmpi")["command"]
    assert isinstance(found, list)
    assert found[-1] == CASES[lines]


@pytest.mark.parametrize("case", REFUSED)
def test_launches_at_the_same_time_are_refused(tmp_path: Path, case: str) -> None:
    lines, line = REFUSED[case]
    batch = read(tmp_path, f"{HEAD}{lines}\n", "openmpi")
    assert not batch.imported
    assert [one for one, _ in refusals(batch)] == [line]
