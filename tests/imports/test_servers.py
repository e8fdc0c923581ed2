"""What workers of MPI do besides starting their SSH server is asked about, and never dropped."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.servers import list_source_work_besides_ssh_server
from gangplan.rules.imports import IMPORT_ASKED
from tests.imports.sources import MPIJOB, VOLCANO, imported

PLAIN = "command: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]"


def read(script: str) -> list[str]:
    return list(list_source_work_besides_ssh_server(("bash", "-c", script)))


@pytest.mark.parametrize(
    "script",
    [
        "/usr/sbin/sshd -De",
        "exec /usr/sbin/sshd -D -p $PORT",
        "mkdir -p /run/sshd; ssh-keygen -A && /usr/sbin/sshd -De",
        "set -ex\nmkdir -p /var/run/sshd ~/.ssh\nchmod 700 $HOME/.ssh\n/usr/sbin/sshd -D >> /dev/null 2>&1",
        "echo 'Port 2222' >> /etc/ssh/sshd_config; sed -i s/a/b/ /etc/ssh/sshd_config; service ssh restart; sleep infinity",
        "cp /keys/* /root/.ssh/; /etc/init.d/ssh start; tail -f /dev/null",
        "cat > ~/.ssh/config <<EOF\nHost *\n  Port 2222\nEOF\nsshd -D",
        "sshd; while true; do sleep 30; done",
    ],
)
def test_an_ssh_server_and_its_preparation_need_nothing(script: str) -> None:
    assert read(script) == []


@pytest.mark.parametrize(
    ("script", "rest"),
    [
        ("mkdir -p /data/x; ulimit -l unlimited; /usr/sbin/sshd -De", ["mkdir", "ulimit"]),
        ("mkdir -p /run/sshd /data/x; sshd -D", ["mkdir"]),
        ("mkdir -p /etc/ssh/../../data; sshd -D", ["mkdir"]),
        ("mkdir /etc/sshd; sshd -D", ["mkdir"]),
        ("sshd -D & python serve.py", ["python"]),
        ("export TOKEN=hf_secret; sshd -D", ["export"]),
        ("TOKEN=hf_secret sshd -D", ["TOKEN="]),
        ("env A=1 sshd -D", ["env"]),
        ("sshd -D > /data/log", ["/data/log"]),
        ("> /data/flag", ["/data/flag"]),
        ("echo hi; sshd -D", ["echo"]),
        ("echo a > /etc/ssh/x > /data/flag; sshd", ["/data/flag"]),
        ("mkdir /run/sshd/$(touch /data/x); sshd -D", ["mkdir"]),
        ("sshd -D <(touch /data/x)", ["a process substitution"]),
        ("sed -i s/a/b/ /etc/hosts; sshd", ["sed"]),
        ("mv /data/keys /root/.ssh; sshd", ["mv"]),
        ("chown -R mpi data; sshd", ["chown"]),
        ("set -- a; sshd", ["set"]),
        ("sudo -u root sshd -D", ["sudo -u root"]),
        ("f() { rm -rf /data/x; }; f; sshd", ["f", "rm", "f"]),
        ("bash -c 'mkdir /data/x; sshd'", ["bash"]),
        ("if [ -d /data ]; then sshd -D; fi", ["["]),
        ("tail -f /data/log", ["tail"]),
        ("service cron start; sshd", ["service"]),
        ("cat > ~/.ssh/config <<EOF\n$(touch /data/x)\nEOF\nsshd -D", ["a here-document"]),
        ("cat > EOF <<EOF\nA\nEOF\nsshd -D", ["cat", "EOF"]),
        ("exec python serve.py", ["exec python"]),
        ("echo 'open", ["a script that cannot be read (a ' quote is not closed)"]),
    ],
)
def test_all_else_is_named_without_its_values(script: str, rest: list[str]) -> None:
    assert read(script) == rest


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ((), []),
        (("/usr/sbin/sshd", "-De"), []),
        (("tini", "-g", "--", "/usr/sbin/sshd", "-De"), []),
        (("sleep", "365d"), []),
        (("tail", "-f", "/dev/null"), []),
        (("python", "serve.py"), ["python"]),
        (("/start.sh",), ["start.sh"]),
        (("-De",), ["-De"]),
        (("bash", "start.sh"), ["bash"]),
        (("sh", "-ec", "sshd -D", "x"), []),
    ],
)
def test_a_command_without_a_shell_is_read_too(words: tuple[str, ...], rest: list[str]) -> None:
    assert list(list_source_work_besides_ssh_server(words)) == rest


@pytest.mark.parametrize(
    "field", ["command: [bash, -c, SCRIPT]", "command: [bash, -c]\n            args: [SCRIPT]"]
)
def test_more_than_a_server_is_asked_about_at_its_line(tmp_path: Path, field: str) -> None:
    script = '"mkdir -p /data/x; ulimit -l unlimited; /usr/sbin/sshd -De"'
    assert PLAIN in MPIJOB
    batch = imported(tmp_path, "mpijob", MPIJOB.replace(PLAIN, field.replace("SCRIPT", script)))
    (one,) = batch.imported
    (asked,) = [
        each for each in batch.everything if each.rule == IMPORT_ASKED and "mkdir, ulimit" in each.message
    ]
    assert asked.where.line == 32
    states = {
        each.state for each in one.draft.work.entries() if "Worker" in each.path and "command" in each.path
    }
    assert states == {"asked"}
    rows = [row for row in one.runs["lab"].differences if row.what == "other commands of a worker"]
    assert [row.source for row in rows] == ["mkdir, ulimit"]


def test_workers_of_volcano_are_read_too(tmp_path: Path) -> None:
    old = "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"
    assert old in VOLCANO
    for number, (new, count) in enumerate(((old, 0), (f"pip install lava; {old}", 1))):
        folder = tmp_path / str(number)
        folder.mkdir()
        batch = imported(folder, "volcano", VOLCANO.replace(old, new))
        assert (
            sum("the workers start more than an SSH server" in one.message for one in batch.everything)
            == count
        )
