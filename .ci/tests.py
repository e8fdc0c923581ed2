"""Run the tests, and those that fail among others once more alone: one bad moment of a machine is no bug.

A test that passes then is named as unsteady, and is the next bug to mend; one that fails twice fails the run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: More failures than this have one cause, and it is not bad luck.
MOST = 20


def failures(cache: Path) -> list[str]:
    """The tests that failed, as pytest's cache knows them."""
    file = cache / "v/cache/lastfailed"
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else []


def main(arguments: list[str]) -> int:
    """Run pytest with arguments, and its failures again. The exit code of the last pytest."""
    with tempfile.TemporaryDirectory() as name:
        cache = Path(name)
        pytest = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-o",
            f"cache_dir={cache}",
            "-o",
            "faulthandler_timeout=600",
        ]
        workers = str((os.cpu_count() or 1) + 2)  # many tests wait for a grace period or a port
        code = subprocess.run([*pytest, "-n", workers, "--maxfail=200", *arguments], check=False).returncode
        first = failures(cache)
        is_unreadable = any("::" not in test for test in first)  # a file that cannot be imported
        if code != 1 or not first or len(first) > MOST or is_unreadable:
            if code:
                print(
                    f"no second try: exit code {code} of pytest, {len(first)} failed: {', '.join(first[:3])}"
                )
            return code
        print(f"\n{len(first)} failed among others; now alone", flush=True)
        code = subprocess.run([*pytest, *arguments, "-n", "0", "--last-failed"], check=False).returncode
        second = failures(cache)
        for test in first:
            print(f"{'failed twice' if test in second else 'unsteady'}: {test}")
        return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
