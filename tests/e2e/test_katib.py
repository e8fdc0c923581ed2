"""A sweep as an Experiment: Katib's code and CRD accept it, and its trials become the pods of the sweep.

Katib's controller needs services that run in pods, so its code makes the objects of trials here, and the test
creates them.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.validate.jobset import list_replicated_jobs
from tests.e2e import world
from tests.lab import build, fixtures, programs
from tests.lab.client import poll
from tests.lab.lab import Lab
from tests.sweeps.files import FILE, us_05
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
TEAM = "nlp"
Object = dict[str, Any]


def _ask_katib(experiment: Object, trials: list[dict[str, str]]) -> Object:
    """Return what Katib's webhook says, and the objects that its controller would create."""
    program = build.executable(programs.KATIB_CHECK)
    asked = json.dumps({"experiment": experiment, "trials": trials})
    told = subprocess.run([program], input=asked, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    answer: Object = json.loads(told.stdout)
    return answer


def _started(lab: Lab, run: str) -> dict[str, Object]:
    """Return the container of each part of a run's JobSet, with the run's name taken out."""
    poll(lambda: lab.client.find("JobSet", run, TEAM), 60, lambda: f"no JobSet {run}")
    found = {}
    for one in list_replicated_jobs(lab.client.get("JobSet", run, TEAM)):
        pods = one["template"]["spec"]["template"]["spec"]
        (container,) = [each for each in pods["containers"] if each["name"] == "node"]
        found[one["name"]] = json.loads(json.dumps(container).replace(run, "RUN"))
    return found


def test_trials_of_katib_are_those_of_the_sweep(tmp_path: Path) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    build.ensure([programs.KATIB_CHECK])
    root = us_05(tmp_path)
    told = gangplan("pipeline", "katib", FILE, "--metric", "loss", "-C", root)
    assert told.code == 0, told.err
    *shared, experiment = load_objects(told.out)
    result = preview_render(Request(root))
    runs = [list(load_objects(result.texts[run.path])) for run in result.runs]
    settings = [dict(run.unit.job.trial.values) for run in result.runs if run.unit.job.trial]
    answer = _ask_katib(experiment, settings)
    assert answer["errors"] == []
    assert len(answer["trials"]) == len(runs) == 48
    wrong = _ask_katib({**experiment, "spec": {**experiment["spec"], "parameters": []}}, [])
    assert wrong["errors"]  # it does judge
    with Lab(profile) as lab:
        for body in json.loads((build.home(programs.KATIB_CHECK) / "manifests.json").read_text()):
            lab.client.apply(body)
        for path in world.before_runs(result.texts):
            for body in load_objects(result.texts[path]):
                lab.client.apply_patiently(body)
        for body in (*shared, experiment):
            assert lab.client.apply_patiently(body).warnings == ()
        for number in (0, 47):
            for body in (*runs[number], answer["trials"][number]):
                lab.client.apply_patiently(body)
            own = runs[number][-1]["metadata"]["name"]
            ours, theirs = _started(lab, own), _started(lab, f"trial-{number}")
            assert ours["launcher"]["args"] == theirs["launcher"]["args"]
            for role in ("node", "launcher"):
                parts = ("image", "resources", "securityContext", "ports")
                assert [ours[role].get(part) for part in parts] == [theirs[role].get(part) for part in parts]
