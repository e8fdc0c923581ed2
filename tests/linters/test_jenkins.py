"""Jenkins: Groovy compiles the recipe and runs it, with the blocks and steps that Jenkins has for it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gitops.test_ci import made
from tests.linters import programs

IMAGE = "registry.example.com/ci@sha256:" + "0" * 64


def read(file: Path) -> subprocess.CompletedProcess[str]:
    """Read a Jenkinsfile with Groovy, which npm-groovy-lint contains."""
    java = programs.system("java")
    programs.node()
    jars = programs.NPM.home / "node_modules/npm-groovy-lint/lib/java/groovy/lib/*"
    reader = programs.HERE / "read_jenkinsfile.groovy"
    command = [java, "-cp", str(jars), "groovy.ui.GroovyMain", str(reader), str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the recipe says."""
    folder = tmp_path_factory.mktemp("jenkins")
    made("jenkins", folder, "--image", IMAGE, "--prefix", "ml/jobs")
    done = read(folder / "out/Jenkinsfile")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_groovy_reads_the_recipe(recipe: dict[str, Any]) -> None:
    said = recipe["said"]
    assert [words for _, name, words in said if name == "stage"] == [
        ["install"],
        ["validate"],
        ["render check"],
        ["plan"],
    ]
    assert ["pipeline/agent/docker", "image", [IMAGE]] in said
    assert recipe["environment"]["GANGPLAN_WORKSPACE"] == "ml/jobs"
    # The rest of a pull request is deleted before Git fetches again; nothing of the agent is archived.
    assert ["pipeline/post/cleanup", "deleteDir", []] in said
    (archived,) = (words[0] for _, name, words in said if name == "archiveArtifacts")
    assert archived["followSymlinks"] is False


def test_shellcheck_finds_nothing_in_the_steps_of_the_recipe(recipe: dict[str, Any]) -> None:
    """The steps are checked as Groovy gives them to Jenkins, which starts `sh -xe`."""
    scripts = [words[0] for _, name, words in recipe["said"] if name == "sh"]
    assert len(scripts) == 4
    for text in scripts:
        command = [programs.system("shellcheck"), "--shell=sh", "--severity=style", "-"]
        done = subprocess.run(command, input=f"set -e\n{text}", capture_output=True, text=True, check=False)
        assert done.stdout == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("archiveArtifacts artifacts", "archiveArtifact artifacts", "MissingMethodException"),
        ("      steps {", "      step {", "MissingMethodException"),
        ("(abortPrevious: true)", "(abortPrevious true)", "MissingMethodException"),
        ("  stages {", "  stages ", "MultipleCompilationErrorsException"),
    ],
)
def test_groovy_finds_mistakes_in_the_recipe(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = made("jenkins", tmp_path)["Jenkinsfile"]
    assert old in text
    (tmp_path / "Jenkinsfile").write_text(text.replace(old, new, 1))
    done = read(tmp_path / "Jenkinsfile")
    assert (done.returncode != 0, said in done.stderr) == (True, True), done.stderr
