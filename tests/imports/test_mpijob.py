"""`gangplan import mpijob`: the spec, what the workspace must gain, and the run compared with the source."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gangplan.imports.batch import read_import_batch
from gangplan.imports.draft import ImportAnswers, ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.rules.imports import (
    IMPORT_ASKED,
    IMPORT_ENTRYPOINT,
    IMPORT_SCRIPT,
    IMPORT_SOURCE,
    IMPORT_TEMPLATE,
)
from gangplan.workspace import load_workspace
from tests.imports.sources import MPIJOB, imported
from tests.workspaces import STOCK, WIDE_CLUSTER, write

HEAT = """\
# Solves the heat equation; ask the physics group.
apiVersion: gangplan.dev/v1
kind: TrainingJob
description: "Imported from MPIJob heat (job.yaml)"
image: heat
command: [/opt/heat/solve, --steps, "1000"]
# a quarter of the furnace each
workers: 4
gpus: 2
cpu: 8
memory: 64Gi
data: {furnace-cases: /cases}
env: {NCCL_DEBUG: WARN, HEAT_CASE: oven-7}
secrets:
  env: {HEAT_KEY: heat-license/key}
mpi: {bindTo: core, flags: ["-mca", pml, ob1]}
launcher: {cpu: 2, memory: 4Gi}
timeout: 2h
retries: 1
labels: {migrated-from: mpijob, project: furnace}
"""


def test_the_spec_is_short_and_keeps_comments(tmp_path: Path) -> None:
    batch = imported(tmp_path, "mpijob", MPIJOB)
    (one,) = batch.imported
    assert one.text == HEAT
    assert one.draft.file == "specs/nlp/migrated-heat.yaml"


@pytest.mark.parametrize(("count", "asked"), [(15, 0), (16, 1)])
def test_a_label_too_many_is_asked_about(tmp_path: Path, count: int, asked: int) -> None:
    """A spec may have sixteen, of which one says where the job came from."""
    labels = ", ".join(f"l{number}: a" for number in range(count))
    source = re.sub(r"labels: \{.*?\}", f"labels: {{{labels}}}", MPIJOB, count=1)
    assert labels in source
    batch = imported(tmp_path, "mpijob", source)
    (one,) = batch.imported
    assert len(one.draft.values["labels"]) == 16
    assert sum(entry.why == "a spec has up to 16 labels" for entry in one.draft.work.entries()) == asked
    assert one.is_right, one.findings


def test_a_command_is_expanded_like_by_the_kubelet(tmp_path: Path) -> None:
    steps = '--steps, "1000"'
    assert steps in MPIJOB
    source = MPIJOB.replace(steps, "--case, $(HEAT_CASE), $$, a$$, $$(HEAT_CASE)")
    (one,) = imported(tmp_path, "mpijob", source).imported
    wanted = ("/opt/heat/solve", "--case", "oven-7", "$", "a$", "$(HEAT_CASE)")
    assert tuple(one.draft.values["command"]) == wanted


def test_a_command_of_setup_is_expanded_like_by_the_kubelet(tmp_path: Path) -> None:
    box = "initContainers: [{name: first, image: busybox, command: [echo, $$, $(A), $$(A)], env: [{name: A, value: b}]}]"
    source = re.sub(r"^( +)containers:", rf"\1{box}\n\1containers:", MPIJOB, flags=re.MULTILINE)
    (one,) = imported(tmp_path, "mpijob", source).imported
    assert one.draft.values["setup"][0]["command"] == ["echo", "$", "b", "$(A)"]


def test_the_run_has_what_the_source_says(tmp_path: Path) -> None:
    (one,) = imported(tmp_path, "mpijob", MPIJOB).imported
    same = one.runs["lab"]
    assert same.percent == 100, same.differences
    rows = {row.what: row for row in same.rows}
    assert rows["ranks"].run == "8"
    assert rows["worker"].run == "4"
    assert rows["nvidia.com/gpu of a worker"].run == "2"


def test_the_workspace_gains_image_claim_and_secret(tmp_path: Path) -> None:
    batch = imported(tmp_path, "mpijob", MPIJOB)
    assert [(one.file, one.path) for one in batch.suggestions] == [
        ("images/catalog.yaml", ("images", "heat")),
        ("specs/nlp/team.yaml", ("secrets",)),
        ("specs/nlp/team.yaml", ("claims", "furnace-cases")),
    ]
    assert (
        batch.after["specs/nlp/team.yaml"]
        .decode()
        .endswith("secrets: [huggingface, lidar-s3, heat-license]\n")
    )
    assert "  furnace-cases: {accessModes: [ReadWriteMany]}\n" in batch.after["specs/nlp/team.yaml"].decode()


def test_unknown_facts_are_asked_about(tmp_path: Path) -> None:
    batch = imported(tmp_path, "mpijob", MPIJOB)
    asked = [one.message for one in batch.everything if one.rule == IMPORT_ASKED]
    assert len(asked) == 3
    assert any("digest" in one for one in asked)
    assert any("OpenMPI" in one for one in asked)
    assert any("furnace-cases" in one for one in asked)


def test_a_digest_can_be_given(tmp_path: Path) -> None:
    digest = "sha256:" + "ab" * 32
    batch = imported(tmp_path, "mpijob", MPIJOB, digests={"registry.example.com/physics/heat:1.4": digest})
    assert digest in batch.after["images/catalog.yaml"].decode()
    assert not any("digest" in one.message for one in batch.everything)


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('-np, "8"', '-np, "4"', "slots", 1),
        ('-np, "8"', '--npernode, "1"', "slots", 1),
        ('-np, "8"', '-np, "16"', "slots", 4),
        ("slotsPerWorker: 2", "slotsPerWorker: 2\n  runLauncherAsWorker: true", "workers", 5),
        ("memory: 64Gi, nvidia", "memory: 68719476736, nvidia", "memory", "64Gi"),
        ("cpu: 8, memory", "cpu: 7500m, memory", "cpu", "7500m"),
        ("activeDeadlineSeconds: 7200", "activeDeadlineSeconds: 172800", "extendedTimeout", True),
    ],
)
def test_counts_and_amounts_become_those_of_the_spec(
    tmp_path: Path, old: str, new: str, field: str, value: object
) -> None:
    assert old in MPIJOB
    (one,) = imported(tmp_path, "mpijob", MPIJOB.replace(old, new, 1)).imported
    assert one.draft.values[field] == value


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("  mpiReplicaSpecs:", "  other:", IMPORT_SOURCE, 2),
        ("replicas: 4", "replicas: $WORKERS", IMPORT_TEMPLATE, 26),
        ("command: [mpirun, --allow", "args: [--allow", IMPORT_ENTRYPOINT, 20),
        ("command: [mpirun, --allow-run-as-root", 'command: [sh, -c, "mpirun \'a"', IMPORT_SCRIPT, 20),
    ],
)
def test_mpijobs_that_cannot_be_imported_are_refused_at_their_line(
    tmp_path: Path, old: str, new: str, rule: str, line: int
) -> None:
    text = MPIJOB.replace(old, new, 1)
    if rule == IMPORT_ENTRYPOINT:
        text = text.replace('            args: [/opt/heat/solve, --steps, "1000"]\n', "")
    batch = imported(tmp_path, "mpijob", text)
    (error,) = [one for one in batch.everything if one.is_error]
    assert (error.rule, error.where.line) == (rule, line), error
    assert batch.imported == []


def test_a_program_that_ran_only_on_the_launcher_is_asked_about(tmp_path: Path) -> None:
    text = MPIJOB.replace(
        '[mpirun, --allow-run-as-root, -np, "8", -bind-to, core, -x, NCCL_DEBUG=WARN, -mca, pml, ob1]',
        "[python]",
    )
    batch = imported(tmp_path, "mpijob", text)
    assert any("ran once, on the launcher" in one.message for one in batch.everything)


def test_access_to_the_node_is_a_difference_for_the_platform(tmp_path: Path) -> None:
    text = MPIJOB.replace(
        "          containers:\n          - name: worker",
        "          hostNetwork: true\n          containers:\n          - name: worker",
    )
    text = text.replace(
        "            env:\n            - {name: HEAT_CASE, value: oven-7}\n            - name",
        "            securityContext: {capabilities: {add: [IPC_LOCK]}}\n            env:\n            - name",
    )
    (one,) = imported(tmp_path, "mpijob", text).imported
    assert {row.what for row in one.runs["lab"].differences} == {"hostNetwork", "capability IPC_LOCK"}
    assert all("platform" in row.why for row in one.runs["lab"].differences)


def test_a_kept_script_loses_options_that_break_the_way_to_workers(tmp_path: Path) -> None:
    """The shape of oci-hpc-oke manifests/nccl-tests/host-network: another SSH port, a script that waits."""
    script = (
        "while ! ssh $(head -1 /etc/mpi/hostfile) true; do sleep 1; done\\n"
        'mpirun \\\\\\n -np 8 \\\\\\n --hostfile /etc/mpi/hostfile -mca plm_rsh_args \\"-p 2222\\" \\\\\\n -mca coll ^hcoll -x A=1 ./a'
    )
    begin, end = MPIJOB.index("            command: [mpirun"), MPIJOB.index("            env:")
    text = f'{MPIJOB[:begin]}            command: [bash, -c, "{script}"]\n{MPIJOB[end:]}'
    (one,) = imported(tmp_path, "mpijob", text).imported
    kept = one.draft.values["command"][2]
    assert "plm_rsh_args" not in kept
    assert kept.endswith("mpirun \\\n -mca coll ^hcoll -x A=1 ./a")
    assert one.is_right


def test_a_pull_secret_without_a_name_is_asked_about(tmp_path: Path) -> None:
    text = MPIJOB.replace(
        "          volumes:\n", "          imagePullSecrets: [{name: None}]\n          volumes:\n"
    )
    batch = imported(tmp_path, "mpijob", text)
    (one,) = batch.imported
    assert one.is_right
    assert not [each for each in batch.suggestions if each.path == ("pullSecrets",)]
    assert any(
        entry.state == "asked" and "'None' is not a name" in entry.why for entry in one.draft.work.entries()
    )


# What mpirun of a source is given -> whether the run has it; RUN is the rest of its command.
INTERFACES = {
    "-x NCCL_SOCKET_IFNAME=ens9np0": False,
    "-x NCCL_SOCKET_IFNAME=^docker,lo": True,
    "-mca btl_tcp_if_include ens9np0": False,
    "-mca btl_tcp_if_include eth0": True,
    "-mca btl_tcp_if_include 10.0.0.0/8": True,
    "-x UCX_NET_DEVICES=ens9np0": False,
    "-x UCX_NET_DEVICES=mlx5_0:1": True,
}


@pytest.mark.parametrize("is_script", [True, False])
@pytest.mark.parametrize("given", INTERFACES)
def test_interfaces_of_nodes_stay_with_the_nodes(given: str, is_script: bool, tmp_path: Path) -> None:
    start = MPIJOB[MPIJOB.index("            command: [mpirun") : MPIJOB.index("            env:")]
    words = f"mpirun -np 8 {given} -mca pml ob1 /opt/heat/solve"
    script = f"            command:\n            - bash\n            - -c\n            - |\n              cd /opt\n              {words} \\\n                --steps 9\n"
    batch = imported(
        tmp_path,
        "mpijob",
        MPIJOB.replace(start, script if is_script else f"            command: {json.dumps(words.split())}\n"),
    )
    (one,) = batch.imported
    assert one.is_right, one.findings
    value = given.split()[-1].partition("=")[2] or given.split()[-1]
    assert (value in one.text) == INTERFACES[given]
    told = [each for each in batch.everything if "not the node's interfaces" in each.message]
    assert bool(told) != INTERFACES[given]
    assert all(given in each.message or given.split()[1] in each.message for each in told)
    assert "ob1" in one.text


def test_interfaces_of_nodes_in_the_variables_of_pods(tmp_path: Path) -> None:
    source = MPIJOB.replace("{name: HEAT_CASE, value: oven-7}", "{name: GLOO_SOCKET_IFNAME, value: ens5}")
    (one,) = imported(tmp_path, "mpijob", source).imported
    assert one.is_right, one.findings
    assert "ens5" not in one.text
    (row,) = [each for each in one.runs["lab"].differences if each.what == "GLOO_SOCKET_IFNAME"]
    assert (row.source, row.run) == ("ens5", None)
    assert "interfaces" in row.why


@pytest.mark.parametrize(
    "stated", ["fabrics:\n  rail: {hostNetwork: true, nodeAddresses: [10.0.0.0/24]}\n", ""]
)
def test_interfaces_stay_where_a_fabric_may_give_them(stated: str, tmp_path: Path) -> None:
    write(tmp_path / "workspace", {**STOCK, "overlays/lab/cluster.yaml": WIDE_CLUSTER + stated})
    source = MPIJOB.replace("{name: HEAT_CASE, value: oven-7}", "{name: GLOO_SOCKET_IFNAME, value: ens5}")
    write(tmp_path / "sources", {"heat.yaml": source})
    target = ImportTarget(load_workspace(tmp_path / "workspace"), "nlp", ImportAnswers())
    batch = read_import_batch(SOURCE_KINDS["mpijob"], [tmp_path / "sources/heat.yaml"], target, {})
    assert ("GLOO_SOCKET_IFNAME" in batch.imported[0].draft.values.get("env", {})) == bool(stated)


@pytest.mark.parametrize(
    ("words", "counts", "asked"),
    [
        ("mpirun -np 1 ./a : -np 7 ./b", (4, None, "mpirun -np 1 ./a : -np 7 ./b"), ""),
        ("mpirun -n 8 -x A=1 ./a : -n 8 ./b", (4, 4, "mpirun -n 8 -x A=1 ./a : -n 8 ./b"), ""),
        ("mpirun --host a -np 1 ./a : --host b -np 7 ./b", (4, None, "mpirun -np 1 ./a : -np 7 ./b"), "hosts of its own"),
        ("mpirun ./a : -np 7 ./b", (4, None, "mpirun ./a : -np 7 ./b"), "does not say how many ranks each has"),
    ],
)  # fmt: skip
def test_programs_of_one_launch_keep_their_ranks(
    words: str, counts: tuple[object, ...], asked: str, tmp_path: Path
) -> None:
    given = '[mpirun, --allow-run-as-root, -np, "8", -bind-to, core, -x, NCCL_DEBUG=WARN, -mca, pml, ob1]\n            args: [/opt/heat/solve, --steps, "1000"]'
    assert given in MPIJOB
    (one,) = imported(tmp_path, "mpijob", MPIJOB.replace(given, json.dumps(words.split()))).imported
    values = one.draft.values
    assert (values["workers"], values.get("slots"), " ".join(values["command"])) == counts
    found = [each.message for each in one.findings if each.rule == IMPORT_ASKED and "each" in each.message]
    assert [asked in message for message in found] == [True] * bool(asked), found
