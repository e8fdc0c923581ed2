"""`gangplan plan --script`: the words of each container as the kubelet starts it, and the launch scripts."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from gangplan.errors import Exit
from gangplan.generators.scripts import name_launch_script_config_map, read_launch_scripts, start_text
from tests import plain, workspaces
from tests.workspaces import gangplan, render, write

TORCH = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: pytorch
command: [python, train.py, --name, a b$c]
workers: 2
gpus: 1
cpu: 4
memory: 16Gi
"""
STOPPED = workspaces.SPEC + "state: stopped\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = workspaces.stock(tmp_path_factory.mktemp("script"))
    return write(root, {"specs/nlp/tune.yaml": TORCH})


def test_the_commands_are_those_of_the_rendered_containers(root: Path, tmp_path: Path) -> None:
    out = gangplan("plan", "--script", "-C", root).out
    gangplan("render", "-C", root, "--output", tmp_path / "out")
    wanted = []
    for file in sorted((tmp_path / "out").glob("lab/runs/nlp/*-*.yaml")):
        for body in plain.load_all(file.read_text()):
            for entry in body["spec"].get("template", {}).get("spec", {}).get("replicatedJobs", ()):
                (box,) = entry["template"]["spec"]["template"]["spec"]["containers"]
                words = [word.replace("$$", "$") for word in (*box["command"], *box["args"])]
                wanted.append(shlex.join(words))
    assert len(wanted) == 3
    assert all(f"\n{one}\n" in out for one in wanted)
    assert out.count(shlex.quote(start_text())) == 3


def test_each_script_is_printed_once_if_a_command_reads_it(root: Path) -> None:
    out = gangplan("plan", "--script", "-C", root).out
    for name, text in read_launch_scripts().items():
        assert out.count(text) == 1
        assert f"# /opt/gangplan-launch/{name} ({name_launch_script_config_map()})\n" in out
    out = gangplan("plan", "--script", "-C", root, root / "specs/nlp/tune.yaml").out
    assert read_launch_scripts()["program.sh"] in out
    assert read_launch_scripts()["launcher.sh"] not in out


def test_a_shell_can_read_it(root: Path) -> None:
    out = gangplan("plan", "--script", "-C", root).out
    subprocess.run(["sh", "-n"], input=out, text=True, check=True)


def test_as_data_it_has_words_and_scripts(root: Path) -> None:
    outcome = gangplan("plan", "--script", "--format", "json", "-C", root)
    assert outcome.code == Exit.CLEAN
    told = json.loads(outcome.out)
    assert [(run["spec"], [one["role"] for one in run["containers"]]) for run in told["runs"]] == [
        ("specs/nlp/filings.yaml", ["worker", "launcher"]),
        ("specs/nlp/tune.yaml", ["worker"]),
    ]
    worker = told["runs"][1]["containers"][0]
    assert (worker["script"], worker["configMap"]) == ("program.sh", name_launch_script_config_map())
    assert worker["words"][2:4] == [start_text(), "program.sh"]
    assert worker["words"][-1] == "a b$c"
    assert told["scripts"] == {name_launch_script_config_map(): read_launch_scripts()}
    assert told["findings"] == []


def test_a_kept_run_is_shown_as_it_was_rendered(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path)
    render(root)
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC + "keep: true\n"})
    assert " launcher.sh " in gangplan("plan", "--script", "-C", root).out


def test_a_stopped_run_starts_nothing(tmp_path: Path) -> None:
    root = workspaces.stock(tmp_path)
    render(root)
    write(root, {"specs/nlp/filings.yaml": STOPPED})
    out = gangplan("plan", "--script", "-C", root).out
    assert "stopped" in out
    assert "/bin/sh" not in out


@pytest.mark.parametrize("flags", [["--network"], ["--usage", "x.json"], ["--base", "HEAD"]])
def test_it_goes_with_no_other_view(root: Path, flags: list[str]) -> None:
    outcome = gangplan("plan", "--script", *flags, "-C", root)
    assert outcome.code == Exit.INPUT
    assert "--script" in outcome.err
