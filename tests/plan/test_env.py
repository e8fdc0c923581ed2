"""Values of env that break the start, or that do not mean what they seem to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces

CASES = {
    # what is written: the rule, or nothing
    "PATH: /opt/bin": "env-reserved",
    "PATH: '$PATH:/opt/bin'": "env-reserved",
    "PATH: '/opt/bin:/usr/bin'": "",
    "PATH: '/opt/bin:$PATH:/bin'": "env-literal",
    "PYTHONPATH: '$PYTHONPATH:/app'": "env-literal",
    "PYTHONPATH: '${PYTHONPATH}:/app'": "env-literal",
    "CONFIG: '${model.size}'": "",
    "COST: '5$'": "",
    "OUT: '$(HOME)/out'": "env-literal",
    "PRTE_MCA_plm: slurm": "env-reserved",
    "PRTE_MCA_plm: ssh": "",
    "PRTE_MCA_plm_ssh_agent: qrsh": "env-reserved",
    "OMPI_MCA_btl: 'tcp,self'": "",
    "SLURM_JOBID: '1'": "env-reserved",
    "SLURM_JOBID: ''": "env-reserved",
    "SLURM_JOBID: {field: metadata.name}": "env-reserved",
    "SLURM_JOB_ID: '1'": "",
    "SLURM_NTASKS: '8'": "",
    "PBS_JOBID: '1'": "",
    "PBS_JOBID: '1', PBS_ENVIRONMENT: PBS_BATCH": "env-reserved",
    "MASTER_ADDR: localhost": "command-rendezvous",
    "MASTER_ADDR: 127.0.0.1": "command-rendezvous",
    "MASTER_ADDR: tracker.example.com": "",
}


@pytest.mark.parametrize("line", CASES)
def test_each_value_of_env_breaks_the_rule_listed_or_none(line: str, root: Path) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + f"env: {{{line}}}\n"})
    outcome = workspaces.gangplan("validate", "-C", root)
    found = {
        rule for rule in ("env-reserved", "env-literal", "command-rendezvous") if f"[{rule}]" in outcome.err
    }
    assert found == ({CASES[line]} - {""}), outcome.err
    assert "filings.yaml:9:" in outcome.err or not CASES[line]


def test_one_worker_may_use_localhost_as_its_rendezvous(root: Path) -> None:
    text = workspaces.SPEC.replace("workers: 4", "workers: 1") + "env: {MASTER_ADDR: localhost}\n"
    workspaces.write(root, {"specs/nlp/filings.yaml": text})
    assert "command-rendezvous" not in workspaces.gangplan("validate", "-C", root).err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("[./a, ':', -n, 6, ./b]", "Write command: [mpirun, -np, 2, ./a, ':', -np, 6, ./b]."),
        ("[./a, ':', ./b]", "so that all N add up to 8"),
        ("[./a, ':', -n, 8, ./b]", "so that all N add up to 8"),
        ("[bash, -c, './a \"$1\"', x, ':']", "so that all N add up to 8"),
        ("[bash, -c, './a : b']", ""),
        ("[mpirun, -np, 2, ./a, ':', -np, 6, ./b]", ""),
    ],
)
def test_a_colon_that_begins_another_program_of_gangplans_mpirun_is_refused(
    command: str, says: str, root: Path
) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("[python, train.py]", command)})
    outcome = workspaces.gangplan("validate", "-C", root)
    assert outcome.err.count("error[") == bool(says), outcome.err
    assert says in outcome.err


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ('[":"]', "begins another program"),
        ("[--mca, btl=tcp]", "Write --mca btl tcp."),
        ("[--mca, btl]", "takes a name and a value"),
    ],
)
def test_flags_that_mpirun_would_misread_are_refused(flags: str, says: str, root: Path) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + f"mpi: {{flags: {flags}}}\n"})
    outcome = workspaces.gangplan("validate", "-C", root)
    assert says in outcome.err
    assert outcome.err.count("error[") == 1
