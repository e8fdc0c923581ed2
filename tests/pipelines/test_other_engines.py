"""The examples for Airflow and Jenkins: they match the example workspace, and Airflow and Groovy read
them."""

from __future__ import annotations

import ast
import base64
import json
import os
import py_compile
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.golden import render_example
from tests.pipelines.engines import HERE, HOME, ask
from tests.plain import load_all
from tests.workspaces import REPOSITORY

EXAMPLES = REPOSITORY / "docs/examples"
DAG = EXAMPLES / "airflow_dag.py"


def rendered() -> dict[str, tuple[str, bool]]:
    """Return each job of the example with its run, and whether Git has only a template of the run."""
    found = {}
    for path in sorted((render_example("pipeline") / "lab/runs/research").glob("*-*.yaml")):
        kinds = {body["kind"] for body in load_all(path.read_text(encoding="utf-8"))}
        found[path.stem.rpartition("-")[0]] = (path.stem, "TrainJob" not in kinds)
    return found


def constant(name: str) -> object:
    """Return the value of a constant of the DAG."""
    for node in ast.parse(DAG.read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
        ):
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_the_dag_has_the_runs_of_the_example(tmp_path: Path) -> None:
    py_compile.compile(str(DAG), cfile=str(tmp_path / "dag.pyc"), doraise=True)
    runs = constant("RUNS")
    assert isinstance(runs, dict)
    assert {name: (run, is_created) for name, (run, is_created, _) in runs.items()} == rendered()
    assert {name: earlier for name, (_, _, earlier) in runs.items()} == {
        "features": (),
        "train": ("features",),
        "evaluate": ("train", "features"),
        "register": ("evaluate",),
    }


@pytest.fixture(scope="module")
def dag(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what Airflow makes of the examples."""
    home = tmp_path_factory.mktemp("airflow")
    settings = {"AIRFLOW_HOME": str(home), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    examples = shutil.copytree(EXAMPLES, home / "dags")  # Airflow leaves bytecode next to what it reads
    ask("airflow", "read_dag.py", str(examples), str(home / "answer.json"), **settings)
    found: dict[str, Any] = json.loads((home / "answer.json").read_text(encoding="utf-8"))
    return found


def test_airflow_reads_the_dag(dag: dict[str, Any]) -> None:
    """Deprecated features would be errors here."""
    assert dag["errors"] == {}
    assert {name: one["after"] for name, one in dag["tasks"].items()} == {
        "research/features": [],
        "research/train": ["features"],
        "research/evaluate": ["features", "train"],
        "research/register": ["evaluate"],
    }
    assert {one["retries"] for one in dag["tasks"].values()} == {0}


def test_a_task_creates_the_pod_of_a_waiting_job(dag: dict[str, Any]) -> None:
    """So it has a token, and everything that policies, quotas and the network of the cluster need."""
    pod = dag["tasks"]["research/evaluate"]["pod"]
    run = rendered()["evaluate"][0]
    file = render_example("pipeline") / f"lab/runs/research/{run}.yaml"
    bodies = load_all(file.read_text(encoding="utf-8"))
    (job,) = (body for body in bodies if body["kind"] == "Job")
    expected = job["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert {key: labels.get(key) for key in expected["metadata"]["labels"]} == expected["metadata"]["labels"]
    (ours,), (theirs,) = expected["spec"].pop("containers"), pod["spec"].pop("containers")
    # Fields that the API server sets by itself, and the file of the template, whose mode the API server sets.
    defaults = {"serviceAccount", "dnsPolicy", "schedulerName", "volumes"}
    for key in expected["spec"].keys() - defaults:
        assert (key, pod["spec"].get(key)) == (key, expected["spec"][key])
    template, tmp = pod["spec"]["volumes"]
    assert template["configMap"] == {"name": f"{run}-template", "optional": False}
    assert tmp == expected["spec"]["volumes"][1]
    for key in ("image", "imagePullPolicy", "env", "resources", "securityContext", "volumeMounts"):
        assert (key, theirs.get(key)) == (key, ours[key])
    # Jinja keeps the script, except for the end of its last line.
    assert theirs["command"] == ["/bin/sh", "-c", str(constant("SCRIPT")).rstrip("\n"), "wait"]
    assert theirs["args"] == [run, "create"]


def test_a_task_for_a_run_that_an_engine_creates_needs_no_template(dag: dict[str, Any]) -> None:
    pod = dag["tasks"]["research/features"]["pod"]["spec"]
    assert pod["volumes"][0]["configMap"]["optional"] is True
    assert pod["containers"][0]["args"] == [rendered()["features"][0], "leave"]


def test_the_jenkinsfile_has_the_runs_of_the_example() -> None:
    text = (EXAMPLES / "Jenkinsfile").read_text(encoding="utf-8")
    found = re.findall(r"stage\('(\w+)'\).*step\('([\w-]+)', (true|false)\)", text)
    assert {name: (run, created == "true") for name, run, created in found} == rendered()
    assert [name for name, _, _ in found] == ["features", "train", "evaluate", "register"]


def jenkins() -> dict[str, tuple[str, str]]:
    """Return variables and script of each stage, as Groovy reads them."""
    jar = HOME / "groovy.jar"
    if not jar.exists() or not shutil.which("java"):
        pytest.skip("Groovy is not installed (make engines)")
    reader = str(HERE / "read_jenkinsfile.groovy")
    done = subprocess.run(
        ["java", "-cp", str(jar), "groovy.ui.GroovyMain", reader, str(EXAMPLES / "Jenkinsfile")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return {name: (env, base64.b64decode(text).decode()) for name, env, text in lines}


def test_groovy_reads_the_jenkinsfile() -> None:
    stages = jenkins()
    assert {name: env for name, (env, _) in stages.items()} == {
        name: f"RUN={run},CREATE={str(created).lower()}" for name, (run, created) in rendered().items()
    }
    assert len({text for _, text in stages.values()}) == 1


# The API server's answers in order, the exit code, and whether the run was created.
LIVES = {
    "created and complete": (["", " Suspended", "away", " Complete"], 0, True),
    "there already": ([" ", " Complete"], 0, False),
    "away at first": (["away", "", " Complete"], 0, True),
    "failed": ([" Failed"], 75, False),
    "stopped": (["stopped Suspended"], 75, False),
    "complete, then stopped": (["stopped Complete"], 0, False),
}
KUBECTL = """\
#!/bin/sh
case $1 in
get)
  case $2 in configmap/*) echo "the run"; exit ;; esac
  echo x >>"$ANSWERS/asked"
  line=$(sed -n "$(wc -l <"$ANSWERS/asked")p" "$ANSWERS/answers")
  [ "$line" != away ] || { echo "connection refused" >&2; exit 1; }
  [ -z "$line" ] || echo "$3 $line"
  ;;
create) echo x >>"$ANSWERS/created" ;;
esac
"""


@pytest.mark.parametrize("engine", ["airflow", "jenkins"])
@pytest.mark.parametrize("name", LIVES)
def test_the_script_creates_the_run_and_waits(name: str, engine: str, tmp_path: Path) -> None:
    answers, code, is_created = LIVES[name]
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ANSWERS": str(tmp_path)}
    if engine == "jenkins":
        script, words = jenkins()["train"][1], []
        env |= {"RUN": "train-1", "CREATE": "true"}
    else:
        script, words = str(constant("SCRIPT")), ["train-1", "create"]
    (tmp_path / "answers").write_text("".join(f"{line}\n" for line in answers))
    for program, text in (("kubectl", KUBECTL), ("sleep", "#!/bin/sh\n")):
        (tmp_path / program).write_text(text)
        (tmp_path / program).chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", script, "wait", *words], env=env, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, (tmp_path / "created").exists()) == (code, is_created)
