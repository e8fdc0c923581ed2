"""Numbers in the configuration file of accelerate that are not the run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

# The file | the options before that of the file | the help's options; empty: nothing is wrong
CASES = {
    "other numbers": ("num_machines: 4\nnum_processes: 32\n", "", "--num_machines 1 --num_processes 2"),
    "other machines": ("num_machines: 4\nnum_processes: 2\n", "", "--num_machines 1"),
    "other processes, as JSON": ('{"num_machines": 1, "num_processes": 1}', "", "--num_processes 2"),
    "one option overrides": (
        "num_machines: 4\nnum_processes: 32\n",
        "--num_machines 1 ",
        "--num_processes 2",
    ),
    "options override": ("num_machines: 4\nnum_processes: 32\n", "--num_machines 1 --num_processes 2 ", ""),
    "the run's numbers": ("num_machines: 1\nnum_processes: 2\n", "", ""),
    "no numbers": ("mixed_precision: bf16\n", "", ""),
    "a list": ("- 1\n", "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_config_file_agrees_with_the_run(name: str, root: Path) -> None:
    text, before, right = CASES[name]
    outcome = _validate(text, before, root)
    if not right:
        assert outcome == []
        return
    (one,) = outcome
    words = ", ".join(f"{before}{right}".split())
    assert one.rule == "ranks-mismatch"
    assert f"[accelerate, launch, {words}, --config_file, /opt/fsdp.yaml, train.py]" in one.help
    assert _validate(text, f"{before}{right} ", root) == []


def _validate(text: str, before: str, root: Path) -> list[workspaces.Shown]:
    spec = workspaces.SPEC.replace("openmpi", "pytorch").replace("workers: 4", "workers: 1")
    command = f"accelerate launch {before}--config_file /opt/fsdp.yaml train.py"
    spec = spec.replace("[python, train.py]", command) + "files: {./fsdp.cfg: /opt/fsdp.yaml}\n"
    workspaces.write(root, {"specs/nlp/filings.yaml": spec, "specs/nlp/fsdp.cfg": text})
    return workspaces.gangplan("validate", "-C", root).findings
