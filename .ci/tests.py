"""Run the tests in parallel, and run the failed ones again, one by one, in case the machine was overloaded.

A test that then passes is listed as unsteady, and its cause should be found; one that fails twice fails the
run. Tests create and remove some hundred thousand files, in memory if there is enough of it: on a busy disk,
one file of tests took three to four times as long (21 to 30 s instead of 7 s).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

#: More failures than this are no accident, so they are not run again.
MOST = 20
#: MiB of memory that must be free for the files of tests; they take a tenth of it.
ROOM_MIB = 4096
MEMORY = Path("/dev/shm")


def in_memory() -> str | None:
    """Return a folder in memory; None if too little is free or programs cannot run there (as in Docker)."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        free_mib = min(
            int(re.findall(r"MemAvailable: +(\d+)", text)[0]) >> 10, shutil.disk_usage(MEMORY).free >> 20
        )
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            program = Path(name) / "program"
            program.write_text("#!/bin/sh\n", encoding="ascii")
            program.chmod(0o755)
            subprocess.run([str(program)], check=True)
    except (OSError, IndexError, subprocess.CalledProcessError):
        return None
    return str(MEMORY) if free_mib >= ROOM_MIB else None


def failures() -> list[str]:
    """Return the tests that failed, from pytest's cache."""
    file = Path(".pytest_cache/v/cache/lastfailed")
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments, then its failures again; return the exit code of the last pytest."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the files are removed, too
    with tempfile.TemporaryDirectory(prefix="tests-", dir=in_memory()) as name:
        Path(name).chmod(0o1777)  # like /tmp: some tests try what another user may do
        os.environ["TMPDIR"] = name
        pytest = [sys.executable, "-m", "pytest", "-q", "-o", "faulthandler_timeout=600"]
        workers = str((os.cpu_count() or 1) + 2)  # many tests wait for a grace period or a port
        many = [*pytest, "-n", workers, "--dist", "worksteal", "--cache-clear", "--maxfail=200", *arguments]
        code = subprocess.run(many, check=False).returncode
        first = failures()
        is_unreadable = any("::" not in test for test in first)  # a file that cannot be imported
        if code != 1 or not first or len(first) > MOST or is_unreadable:
            if code:
                print(
                    f"no second try: exit code {code} of pytest, {len(first)} failed: {', '.join(first[:3])}"
                )
            return code
        print(f"\n{len(first)} failed among others; now alone", flush=True)
        code = subprocess.run([*pytest, *arguments, "-n", "0", "--last-failed"], check=False).returncode
        second = failures()
        for test in first:
            print(f"{'failed twice' if test in second else 'unsteady'}: {test}")
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
