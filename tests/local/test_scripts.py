"""The launch scripts of a local run: those of the ConfigMap, with the paths that they need here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gangplan.generators.scripts import SCRIPTS_FOLDER, read_launch_scripts, start_text
from gangplan.local.kubelet import read_config_map_for_local_mount
from gangplan.local.places import LocalPlaces, create_local_launch_paths, write_local_launch_scripts
from gangplan.model.exits import LAUNCH_EXITS


@pytest.fixture
def places(tmp_path: Path) -> LocalPlaces:
    """Return the places of a run after its scripts were written."""
    return write_local_launch_scripts(
        LocalPlaces(create_local_launch_paths(tmp_path), tmp_path), read_launch_scripts()
    )


def started(places: LocalPlaces, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", "-c", places.text(start_text()), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_check_of_the_scripts_accepts_the_moved_ones(places: LocalPlaces, tmp_path: Path) -> None:
    done = started(places, "program.sh", "--grace=1", "--", "sh", "-c", 'echo "$@"; exit 7', "-", "two words")
    assert (done.returncode, done.stdout, done.stderr) == (7, "two words\n", "")
    with (tmp_path / "launch/program.sh").open("a") as file:
        file.write("exit 0\n")
    done = started(places, "program.sh", "--", "true")
    assert done.returncode == LAUNCH_EXITS["scripts"].code
    assert f"gangplan: {tmp_path}/launch does not hold the launch scripts of this run" in done.stderr


def test_scripts_use_no_path_of_the_machine(places: LocalPlaces, tmp_path: Path) -> None:
    assert {path.name for path in (tmp_path / "launch").iterdir()} == set(read_launch_scripts())
    for path in (tmp_path / "launch").iterdir():
        text = path.read_text().replace(f"{tmp_path}/", "")
        assert not any(place in text for place in (SCRIPTS_FOLDER, "/dev/shm", "/tmp/gangplan", "/etc/mpi"))


def test_a_mount_needs_its_config_map() -> None:
    volume = {"name": "scripts", "configMap": {"name": "launch-1"}}
    mount = {"name": "scripts", "mountPath": SCRIPTS_FOLDER}
    pod = {"containers": [{"volumeMounts": [mount]}], "volumes": [volume]}
    bodies = [{"kind": "ConfigMap", "metadata": {"name": "launch-1"}, "data": {"a.sh": "exit\n"}}]
    assert read_config_map_for_local_mount(pod, SCRIPTS_FOLDER, bodies) == ("launch-1", {"a.sh": "exit\n"})
    for path, those in ((SCRIPTS_FOLDER, []), ("/elsewhere", bodies)):
        with pytest.raises(LookupError):
            read_config_map_for_local_mount(pod, path, those)
