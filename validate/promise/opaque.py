"""Checks of texts that decide the launch but cannot be parsed: launch script, SSH server's command line.

They must equal the generated ones; otherwise the run is not the one that was planned and tested.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.validate.jobset import LAUNCHER
from gangplan.validate.problems import Problem
from gangplan.validate.promise.roles import (
    ExpandedRole,
    ExpandedRun,
    find_generated_pods,
    find_program_container,
)
from gangplan.validate.promise.words import report_broken_promise, report_weakened_plan


def check_promised_role_commands(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check the command of each role, without the user's arguments."""
    before = {
        name: find_program_container({"spec": pod})[1] for name, pod in find_generated_pods(laid).items()
    }
    for role in laid.present:
        mine = before.get(role.name)
        if mine is None or role.container is None:
            continue
        # launch.py checks the words of the run's own command one by one.
        fields = ["command", *(["args"] if role.name != LAUNCHER and laid.uses_mpi else ())]
        if role.name == LAUNCHER and laid.unit.job.image.preflight:
            from gangplan.validate.promise.preflight import check_promised_preflight_call  # few runs have one

            if any(True for _ in check_promised_preflight_call(laid)):
                continue  # already reported for the same command
        for name in fields:
            if role.container.get(name) != mine.get(name):
                yield _report_replaced_command(laid, role, name)


def check_image_working_folder_and_path(laid: ExpandedRun) -> Iterator[tuple[int, Problem]]:
    """Check that no patch replaces the image's working directory and PATH, whose values no file states."""
    for role in laid.present:
        box = role.container or {}
        if not laid.uses_mpi or role.name == LAUNCHER:
            folder = box.get("workingDir")
            if folder is not None and not laid.unit.job.workdir:  # a planned one is judged in pods.py
                message = f"{role.title} would start the command in {folder}, not in the image's own folder"
                help = "Remove workingDir, or write workdir in the spec."
                yield laid.runtime, report_weakened_plan((*role.box, "workingDir"), message, help)
        planned = {one.name for one in (*laid.unit.launch.launcher_env, *laid.unit.launch.worker_env)}
        for index, one in enumerate(box.get("env") or ()):
            if one["name"] == "PATH" and "PATH" not in planned and "env" not in role.own:
                message = (
                    f"{role.title} would look for programs in {one.get('value')}, not on the image's PATH"
                )
                help = "Remove PATH: it replaces the image's, where MPI and Python are."
                yield laid.runtime, report_weakened_plan((*role.box, "env", index), message, help)


def _report_replaced_command(laid: ExpandedRun, role: ExpandedRole, name: str) -> tuple[int, Problem]:
    index, path = role.place(name)
    if role.name == LAUNCHER:
        message = (
            "the launcher would not run the launch script, which waits for the workers, counts them and fails"
            " the run when one is missing"
        )
        help = "Keep its command. Write command in the spec, or mpi.setup in images/catalog.yaml."
    elif not laid.uses_mpi:
        message = "the workers would not run the script that gives their ranks the grace period after SIGTERM"
        help = "Keep its command. Write command in the spec."
    else:
        message = (
            "the workers would not start the image's SSH server, through which the launcher starts the ranks"
        )
        help = f"Write ssh for '{laid.unit.job.image.name}' in images/catalog.yaml."
    return index, report_broken_promise(path, message, help)
