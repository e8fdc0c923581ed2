"""The launch scripts, and the command that starts one: shellcheck finds nothing, with what they source."""

from __future__ import annotations

import subprocess

import pytest

from gangplan.generators.scripts import SCRIPT_FILES, start_text
from gangplan.template import TEMPLATES_FOLDER
from tests.linters import programs

# Variables of options that a script does not use, and functions that only traps call.
EXCLUDED = "SC2034,SC2317"
STARTED = ("launcher.sh", "program.sh", "worker.sh")


def shellcheck(*words: str, text: str | None = None) -> str:
    """Return what shellcheck says about POSIX shell."""
    command = [programs.system("shellcheck"), "--shell=sh", "--severity=style", *words]
    folder = TEMPLATES_FOLDER / "launch"
    env = programs.environment()
    done = subprocess.run(
        command, cwd=folder, input=text, env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", STARTED)
def test_shellcheck_finds_nothing_in_a_script_and_what_it_sources(name: str) -> None:
    assert shellcheck("--external-sources", "--check-sourced", f"--exclude={EXCLUDED}", name) == ""


def test_every_script_is_started_or_sourced() -> None:
    sourced = {
        file
        for name in STARTED
        for file in SCRIPT_FILES
        if f'. "${{0%/*}}/{file}"\n' in (TEMPLATES_FOLDER / "launch" / name).read_text()
    }
    assert {*STARTED, *sourced} == set(SCRIPT_FILES)


def test_shellcheck_reads_what_is_sourced() -> None:
    text = '. "${0%/*}/common.sh"\n. "${0%/*}/ranks.sh"\necho "$gp_nothing" $gp_grace\n'
    said = shellcheck("--external-sources", f"--exclude={EXCLUDED}", "-", text=text)
    assert "SC2154" in said
    assert "SC2086" in said


def test_shellcheck_finds_nothing_in_the_command_that_starts_a_script() -> None:
    assert shellcheck("-", text=start_text()) == ""
