"""A lab for people: ``python -m tests.lab build|up|down|status [--profile NAME]``.

``build`` only builds what is missing, including Argo CD (``--profile all`` for every version). ``up`` leaves
one process running that holds the lab; ``down`` ends it, and the kernel ends everything else with it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from . import addons, build, folders, profiles
from .lab import Lab

PATIENCE = 120.0


def _state(profile: str) -> Path:
    return folders.cache() / "up" / f"{profile}.json"


def _running(profile: str) -> dict[str, Any] | None:
    """Return what the holder of a lab wrote, or None if no holder is alive."""
    lock = folders.locked(_state(profile).with_suffix(".lock"))
    if lock:
        lock.close()
        return None
    with suppress(FileNotFoundError, ValueError):
        state: dict[str, Any] = json.loads(_state(profile).read_text())
        return state
    return {}


def construct(profile: str) -> int:
    """Build what is missing for a profile, or for all."""
    try:
        build.ensure(build.wanted([profile]))
        addons.definitions()
    except build.GoMissingError as trouble:
        print(f"lab: {trouble}", file=sys.stderr)
        return 3
    return 0


def up(profile: str) -> int:
    """Build what is missing, start a lab that stays, and print how to use it."""
    if _running(profile) is None:
        if construct(profile):
            return 3
        _state(profile).unlink(missing_ok=True)
        holder = subprocess.Popen(
            [sys.executable, "-m", "tests.lab", "hold", "--profile", profile], start_new_session=True
        )
        deadline = time.monotonic() + PATIENCE
        while not _state(profile).exists():
            if holder.poll() is not None or time.monotonic() > deadline:
                return 3
            time.sleep(0.1)
    return status(profile)


def hold(profile: str) -> int:
    """Keep a lab running until SIGTERM."""
    lock = folders.locked(_state(profile).with_suffix(".lock"))
    if not lock:
        print(f"lab: a lab of profile {profile} is up already", file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with Lab(profile) as lab:
            programs = {process.name: process.pid for process in lab.processes}
            state = {
                "holder": os.getpid(),
                "kubeconfig": str(lab.kubeconfig),
                "kubectl": str(lab.site.executable("kubernetes", "kubectl")),
                "url": lab.url,
                "logs": str(lab.folder.logs),
                "programs": programs,
                "seconds": round(lab.timings["ready"], 1),
            }
            part = _state(profile).with_suffix(".part")
            part.write_text(json.dumps(state))
            part.rename(_state(profile))
            while True:
                time.sleep(1)
    finally:
        _state(profile).unlink(missing_ok=True)
        lock.close()


def down(profile: str) -> int:
    """End a lab that `up` started, and wait until it has ended."""
    state = _running(profile)
    if state:
        with suppress(ProcessLookupError):
            os.kill(state["holder"], signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while _running(profile) is not None and time.monotonic() < deadline:
            time.sleep(0.1)
    print(f"lab {profile}: down")
    return 0


def status(profile: str) -> int:
    """Print a lab on one screen."""
    state = _running(profile)
    if not state:
        print(f"lab {profile}: down (start it with: python -m tests.lab up --profile {profile})")
        return 1
    print(f"lab {profile}: up, ready in {state['seconds']} s; {profiles.find(profile).versions()}\n")
    print(f"  export KUBECONFIG={state['kubeconfig']}")
    print(f"  kubectl     {state['kubectl']}")
    print(f"  API server  {state['url']}")
    print(f"  logs        {state['logs']}\n")
    for name, pid in state["programs"].items():
        print(f"  {name:24} {_memory(pid)}")
    command = [state["kubectl"], "--kubeconfig", state["kubeconfig"]]
    listed = "nodes,clusterqueues.kueue.x-k8s.io,trainjobs.trainer.kubeflow.org,pods"
    sys.stdout.flush()
    return subprocess.run([*command, "get", listed, "--all-namespaces"], check=False).returncode


def _memory(pid: int) -> str:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return f"pid {pid}, {int(line.split()[1]) // 1024} MB"
    return "gone"


COMMANDS = {"build": construct, "up": up, "down": down, "status": status, "hold": hold}


def main() -> int:
    """Run the command given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("what", choices=COMMANDS)
    names = [profile.name for profile in profiles.PROFILES]
    parser.add_argument("--profile", default=profiles.DEFAULT, choices=[*names, "all"])
    options = parser.parse_args()
    if options.profile == "all" and options.what != "build":
        parser.error("only build takes all profiles at once")
    return COMMANDS[options.what](options.profile)


if __name__ == "__main__":
    sys.exit(main())
