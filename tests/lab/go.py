"""Run ``go``, which requests hundreds of modules from a proxy: failed requests are retried."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

#: Seconds before each attempt; a proxy that limits requests answers again within a minute.
WAITS_S = (0, 10, 45)


def go(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run ``go`` in a folder with the module files as they are; return what it prints.

    Raises RuntimeError with the end of its output. Code that does not compile is not tried again.
    """
    said = ""
    for wait in WAITS_S:
        time.sleep(wait)
        result = subprocess.run(
            ["go", *arguments],
            cwd=folder,
            env={**os.environ, "GOWORK": "off", **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return result.stdout.strip()
        said = result.stderr or result.stdout
        if any(line.startswith("# ") for line in said.splitlines()):  # the compiler's heading
            break
    raise RuntimeError(f"go {' '.join(arguments)} failed in {folder.name}:\n{said[-4000:]}")
