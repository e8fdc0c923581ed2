"""`gangplan import volcano`: what plugins do for pods, and what tasks other than the workers learn."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch
from gangplan.imports.volcano_plugins import read_plugin_flags
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SOURCE, IMPORT_TEMPLATE
from tests.imports.sources import VOLCANO, imported

_TASK = """\
  - replicas: {count}
    name: {name}
    template:
      spec:
        containers:
        - name: {name}
          image: registry.example.com/fire/ash:1
          command: {command}
"""


def job(plugins: str, *tasks: tuple[str, int, str]) -> str:
    """Return a Job of Volcano with these tasks: name, replicas and command."""
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: ash}}\nspec:\n  plugins: {plugins}\n  tasks:\n"
    return text + "".join(
        _TASK.format(name=name, count=count, command=command) for name, count, command in tasks
    )


def asked(batch: Batch) -> str:
    return "\n".join(one.message for one in batch.everything if one.rule == IMPORT_ASKED)


WORKER = ("worker", 3, '[sh, -c, "glow --of $VC_WORKER_NUM --me $VC_TASK_INDEX"]')


def test_every_role_learns_its_own_index(tmp_path: Path) -> None:
    """The plugin `env` numbers the pods of each task from 0, as the Job controller does in each role."""
    store = ("store", 2, '[sh, -c, "keep --me $VK_TASK_INDEX/$(VC_TASK_INDEX) of $VC_STORE_NUM for $VC_WORKER_NUM"]')  # fmt: skip
    batch = imported(tmp_path, "volcano", job("{env: [], svc: []}", store, WORKER))
    (one,) = batch.imported
    assert one.is_right
    exports = 'VC_STORE_NUM="2" VC_WORKER_NUM="$NNODES" VC_TASK_INDEX="$JOB_COMPLETION_INDEX" VK_TASK_INDEX="$JOB_COMPLETION_INDEX"'
    assert one.draft.values["roles"]["store"]["command"][2].splitlines() == [
        f"export {exports}",
        "keep --me $VK_TASK_INDEX/${VC_TASK_INDEX} of $VC_STORE_NUM for $VC_WORKER_NUM",
    ]
    assert one.runs["lab"].percent < 100
    assert not asked(batch).count("do not have")


def test_a_role_without_a_shell_cannot_learn_its_index(tmp_path: Path) -> None:
    store = ("store", 2, "[keep, --me, $(VC_TASK_INDEX)]")
    batch = imported(tmp_path, "volcano", job("{env: [], svc: []}", store, WORKER))
    assert "is given $(VC_TASK_INDEX), which the pods of a run do not have" in asked(batch)


@pytest.mark.parametrize(
    ("command", "question"),
    [
        ("keep --hosts $VC_WORKER_HOSTS", "the command reads $VC_WORKER_HOSTS, which the pods of a run do not have"),
        ("keep --hosts /etc/volcano/worker.host", "the command reads /etc/volcano/worker.host, which"),
        ("keep --peer ash-worker-1.ash", "the command names pods of the source"),
    ],
)  # fmt: skip
def test_what_a_role_cannot_know_is_asked(tmp_path: Path, command: str, question: str) -> None:
    text = job("{env: [], svc: []}", ("store", 2, f'[sh, -c, "{command}"]'), WORKER)
    assert question in asked(imported(tmp_path, "volcano", text))


def test_a_role_finds_the_first_worker(tmp_path: Path) -> None:
    store = ("store", 2, '[sh, -c, "keep --peer ash-worker-0.ash"]')
    (one,) = imported(tmp_path, "volcano", job("{svc: []}", store, WORKER)).imported
    assert one.draft.values["roles"]["store"]["command"][2] == "keep --peer $MASTER_ADDR"


def test_a_blank_in_the_command_of_a_role_is_asked_for(tmp_path: Path) -> None:
    """No shell reads `$SIZE` there, so a template has left it open."""
    text = job("{svc: []}", ("store", 2, "[keep, --size, $SIZE]"), WORKER)
    batch = imported(tmp_path, "volcano", text)
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.rule == IMPORT_TEMPLATE
    assert "--set SIZE=VALUE" in str(error.help)


def test_workers_of_several_tasks_have_no_index_of_their_task(tmp_path: Path) -> None:
    """Tasks that start one program become one, whose pods are numbered through."""
    program = '[sh, -c, "glow --me $VC_TASK_INDEX"]'
    text = job("{env: []}", ("first", 1, program), ("rest", 3, program))
    batch = imported(tmp_path, "volcano", text)
    assert batch.imported[0].draft.values["workers"] == 4
    assert "export" not in batch.imported[0].draft.values["command"][2]
    assert "the command reads $VC_TASK_INDEX, which the pods of a run do not have" in asked(batch)


def test_the_hosts_of_mpi_are_asked_about_outside_mpirun(tmp_path: Path) -> None:
    text = VOLCANO.replace("-np 4 erupt;", '-np 4 erupt; mail "$VC_MPIWORKER_HOSTS";')
    assert text != VOLCANO
    assert "reads $VC_MPIWORKER_HOSTS" in asked(imported(tmp_path, "volcano", text))


def test_a_cluster_of_ray_is_refused(tmp_path: Path) -> None:
    """The plugin starts `ray start` in the pods, in place of a command."""
    text = job("{ray: [], svc: []}", ("head", 1, "[head]"), ("worker", 2, "[work]"))
    (error,) = [one for one in imported(tmp_path, "volcano", text).everything if one.is_error]
    assert error.rule == IMPORT_SOURCE
    assert "the plugin ray starts a Ray cluster" in error.message


@pytest.mark.parametrize(
    ("plugins", "question"),
    [
        ("{hcclrank: []}", "the plugin hcclrank numbers the pods for HCCL"),
        ("{jax: []}", "gangplan does not know the plugin jax of Volcano"),
        ("{ssh: []}", "the plugin ssh lets the pods log in to each other"),
    ],
)
def test_plugins_that_a_run_has_not_are_asked_about(tmp_path: Path, plugins: str, question: str) -> None:
    batch = imported(tmp_path, "volcano", job(plugins, ("worker", 2, "[glow]")))
    assert question in asked(batch)
    (entry,) = [one for one in batch.imported[0].draft.work.entries() if "plugins" in one.name]
    assert entry.state == "asked"


def test_the_plugin_of_tensorflow_says_which_task_is_what(tmp_path: Path) -> None:
    """Servers that start the workers' program are not workers, however many they are."""
    program = "[python, digits.py]"
    text = job(
        "{svc: [], tensorflow: ['--ps=server', --worker, trainer]}",
        ("server", 3, program),
        ("trainer", 2, program),
    )
    (one,) = imported(tmp_path, "volcano", text).imported
    assert one.draft.values["workers"] == 2
    assert one.draft.values["roles"] == {"ps": {"workers": 3}}
    assert one.is_right
    chief = text.replace("--worker, trainer", "--chief, trainer")
    (one,) = imported(tmp_path / "chief", "volcano", chief).imported
    assert (one.draft.values["workers"], one.draft.values["roles"]) == (2, {"ps": {"workers": 3}})


def test_the_plugin_of_mpi_says_which_task_is_what(tmp_path: Path) -> None:
    """Its arguments are Go's flags: one or two dashes, with the value in the next word, too."""
    text = job(
        "{ssh: [], svc: [], mpi: [-master, boss, '--worker=hand']}",
        ("boss", 1, '[sh, -c, "mpirun --host $MPI_HOST -np 4 erupt"]'),
        ("watch", 1, "[watch]"),
        ("hand", 2, "[sleep, infinity]"),
    )
    (one,) = imported(tmp_path, "volcano", text).imported
    assert one.draft.values["workers"] == 2
    assert [role.name for role in one.draft.work.roles] == ["launcher", "hand"]
    assert [role.name for role in one.draft.work.aside] == ["watch"]


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("--master=a", "-port", "23"), {"master": "a", "port": "23"}),
        (("--wait-master-enabled", "--worker=b"), {"wait-master-enabled": "true", "worker": "b"}),
        (("--", "--worker=b"), {}),
        (("x", "--worker=b"), {}),
        (("--worker",), {}),
    ],
)
def test_flags_of_plugins_are_read_as_go_reads_them(words: tuple[str, ...], flags: dict[str, str]) -> None:
    assert read_plugin_flags(words) == flags


@pytest.mark.parametrize(
    ("plugins", "flags", "questions"),
    [
        (
            "{svc: [--publish-not-ready-addresses, --disable-network-policy=true]}",
            [
                "--publish-not-ready-addresses: the workers",
                "--disable-network-policy: the team's network policies",
            ],
            [],
        ),
        (
            "{pytorch: [--master=m, --worker, worker, --port=23456, --wait-master-timeout=60]}",
            [
                "--master: the roles",
                "--worker: the roles",
                "--worker: the roles",
                "--port: gangplan and Trainer choose the port",
                "--wait-master-timeout: torchrun waits",
            ],
            [],
        ),
        (
            "{pytorch: [--port=2345]}",
            ["gangplan and Trainer choose the port"],
            ["pytorch --port: gangplan and Trainer choose the port at which the pods meet"],
        ),
        (
            "{svc: [--publish, x, stop, --disable-network-policy]}",
            ["the plugin svc has no flag publish"] * 2
            + ["the plugin svc reads no more flags from stop on"] * 2,
            [
                "svc --publish: the plugin svc has no flag publish",
                "the plugin svc reads no more flags from stop on",
            ],
        ),
        (
            "{env: [], svc: [--disable-network-policy]}",
            ["gangplan and Trainer", "--disable-network-policy:"],
            [],
        ),
    ],
)
def test_each_flag_of_a_plugin_has_its_reason(
    tmp_path: Path, plugins: str, flags: list[str], questions: list[str]
) -> None:
    batch = imported(tmp_path, "volcano", job(plugins, ("worker", 2, "[glow]")))
    entries = [one for one in batch.imported[0].draft.work.entries() if "plugins" in one.name]
    assert [one.why.startswith(start) for one, start in zip(entries, flags, strict=True)] == [True] * len(
        flags
    )
    asked = [one for one in batch.everything if one.rule == IMPORT_ASKED and one.where.line == 5]
    assert len(asked) == len(questions), asked
    assert all(one.message.startswith(start) for one, start in zip(asked, questions, strict=True)), asked


def test_files_of_hosts_in_the_script_of_mpi_are_asked_about(tmp_path: Path) -> None:
    """Open MPI gets its hosts from the run; what else the script does with the file it cannot."""
    lead = (
        "lead",
        1,
        '[sh, -c, "H=/etc/volcano/w.host; N=$(wc -l < $H); mpiexec --hostfile $H -n $N ./erupt"]',
    )
    found = asked(
        imported(tmp_path, "volcano", job("{ssh: [], svc: []}", lead, ("w", 2, "[/usr/sbin/sshd, -D]")))
    )
    assert "the command reads /etc/volcano/w.host, which the pods of a run do not have" in found
