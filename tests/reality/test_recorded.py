"""Programs that really fail (failures.yaml), and the cause that gangplan diagnose finds in their output.

`--update` records it into tests/diagnose/recorded/. Those of PyTorch need GANGPLAN_TORCH: a Python with it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.diagnose.samples import Sample, keep, neutral
from tests.diagnose.test_causes import judged
from tests.reality import debian, hosts
from tests.reality.families import UnavailableError

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("failures.yaml").read_text())
TIMEOUT_S = 120
MEMORY = 64 << 20
TORCH = os.environ.get("GANGPLAN_TORCH", "")
# A temporary file system at /mnt, and Debian's SSH where the machine has none.
BEGIN = """\
mount -t tmpfs none /mnt || exit 77
mount -t tmpfs none /run || exit 77
mkdir -p /run/sshd
cd {folder}
"""


@contextmanager
def cgroup(is_needed: bool) -> Iterator[str]:
    """Yield the path of a cgroup with a limit of 64 MiB, of either version; '' if none is needed."""
    if not is_needed:
        yield ""
        return
    name, one, two = f"gangplan-{os.getpid()}", Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    is_first = (one / "memory.limit_in_bytes").exists()
    place = (one if is_first else two) / name
    try:
        place.mkdir()
        (place / ("memory.limit_in_bytes" if is_first else "memory.max")).write_text(str(MEMORY))
    except OSError as error:
        pytest.skip(f"no cgroup with a limit of memory: {error}")
    try:
        yield str(place)
    finally:
        place.rmdir()


def script(folder: Path, text: str) -> list[str]:
    """Return the command that runs a script in namespaces of its own."""
    words = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    (folder / "script").write_text(BEGIN.format(folder=folder / "work") + text)
    (folder / "work").mkdir(exist_ok=True)
    return [*words, "bash", str(folder / "script")]


def environment(layers: dict[str, Path], python: str) -> dict[str, str]:
    """Return an environment whose PATH has SSH's programs and a Python."""
    more = [str(tree / part) for tree in layers.values() for part in ("bin", "sbin")]
    path = [str(Path(python).parent), os.environ["PATH"], "/usr/sbin", "/sbin", *more]
    libraries = ":".join(str(path) for tree in layers.values() for path in (tree / "lib").glob("*-linux-gnu"))
    return {"PATH": ":".join(path), "HOME": "/root", "LC_ALL": "C.UTF-8", "LIBS": libraries}


def version(words: str, env: dict[str, str]) -> str:
    """Return the first line of a program's version output, or a Python package with its version."""
    if " " not in words:
        script = f"import importlib.metadata as m; print(m.version({words!r}))"
        done = subprocess.run(["python3", "-c", script], capture_output=True, text=True, env=env, check=True)
        return f"{words} {done.stdout.strip()}"
    done = subprocess.run(words.split(), capture_output=True, text=True, env=env, check=False)
    found = re.match(r".*?\d[\w.]*", done.stdout + done.stderr)
    assert found, done
    return found[0]


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_the_output_of_a_failed_program_names_the_cause(
    case: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_torch = " " not in case["by"]
    if is_torch and not TORCH:
        pytest.skip("GANGPLAN_TORCH names no Python with torch")
    try:
        hosts.check()
        env = environment(debian.layers(), TORCH if is_torch else sys.executable)
    except UnavailableError as reason:
        pytest.skip(str(reason))
    for word in ("python3" if is_torch else case["by"].split()[0], "setpriv", "openssl", "ip"):
        if shutil.which(word, path=env["PATH"]) is None:
            pytest.skip(f"no {word} on this machine")
    with cgroup(case.get("needs") == "cgroup") as place:
        done = subprocess.run(
            script(tmp_path, case["run"]),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**env, "CGROUP": place},
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode != 77, "no mounts in a namespace"
    log = neutral(
        done.stdout.decode(errors="replace"),
        {
            tmp_path / "work": "/work",
            tmp_path: "/scratch",
            **({Path(TORCH).parents[1]: "/usr"} if TORCH else {}),
        },
    )
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/run.log").write_text(log)
    (verdict,) = judged(tmp_path / "saved")
    assert [one.cause.id for one in verdict.found][:1] == [case["cause"]], log
    if request.config.getoption("--update"):
        how = f"tests/reality/failures.yaml: {case['name']}"
        keep(
            "torch" if is_torch else "programs",
            Sample(case["name"], case["cause"], version(case["by"], env), how, log),
        )
