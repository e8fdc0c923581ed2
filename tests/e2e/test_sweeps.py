"""A sweep of 48 trials in a real Kueue and Trainer: never more than ten are admitted, and all complete."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import world
from tests.e2e.drift import drift
from tests.lab import fixtures
from tests.lab.client import condition, poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.sweeps.files import us_05
from tests.workspaces import gangplan

pytestmark = pytest.mark.e2e
TEAM = "nlp"
AT_ONCE = 10
PATIENCE_S = 600


class Watch:
    """All events of the Workloads of a namespace, in the API server's order."""

    def __init__(self, lab: Lab, log: Path) -> None:
        self._log = log
        program = str(lab.site.executable("kubernetes", "kubectl"))
        command = [program, "--kubeconfig", str(lab.kubeconfig), "get", "workloads", "-n", TEAM]
        command += ["--watch", "--output-watch-events", "-o", "json"]
        with log.open("wb") as out:
            self._program = subprocess.Popen(command, stdout=out)

    def end(self) -> None:
        self._program.terminate()
        self._program.wait()

    def events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield type and object of each event."""
        text, at = self._log.read_text(), 0
        decoder = json.JSONDecoder()
        while (at := text.find("{", at)) >= 0:
            try:
                event, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                return  # not yet written to its end
            yield event["type"], event["object"]


def is_admitted(workload: dict[str, Any]) -> bool:
    """Return whether a Workload holds quota: it is reserved, and its run has not ended."""
    return condition(workload, "QuotaReserved") == "True" and condition(workload, "Finished") != "True"


def most_admitted(watch: Watch) -> tuple[int, int]:
    """Return the most Workloads that held quota at the same time, and how many ever did."""
    holding: set[str] = set()
    ever: set[str] = set()
    most = 0
    for kind, workload in watch.events():
        name = workload["metadata"]["name"]
        if kind != "DELETED" and is_admitted(workload):
            holding.add(name)
            ever.add(name)
        else:
            holding.discard(name)
        most = max(most, len(holding))
    return most, len(ever)


@pytest.fixture(scope="module")
def sweep(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Lab, Watch, list[list[dict[str, Any]]]]]:
    """Yield a lab with the cluster of US-05, and the objects of its 48 trials, which finish after two
    seconds."""
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the story is for the versions of profile new")
    root = us_05(tmp_path_factory.mktemp("us-05"))
    told = gangplan("cluster", "kueue-config", "-C", root, "--cluster", "lab")
    assert told.code == 0, told.err
    result, workspace = preview_render(Request(root)), load_workspace(root)
    spec = workspace.clusters["lab"].spec
    with Lab(profile, settings={"kueue": plain.load(told.out)}) as lab:
        lab.add_nodes(world.nodes(spec))
        lab.tell(Story(Plot.FINISH, after=2.0, namespace=TEAM, role="launcher"))
        for path in world.before_runs(result.texts):
            for body in load_objects(result.texts[path]):
                answer = lab.client.apply_patiently(body)
                assert [*answer.warnings, *drift(body, answer.object)] == []
        lab.client.apply_all(world.claims(spec, [(TEAM, workspace.teams[TEAM].spec)]))
        for name in ("training", "sweep-rates"):
            lab.client.wait("LocalQueue", name, TEAM, until=lambda item: condition(item, "Active") == "True")
        watch = Watch(lab, tmp_path_factory.mktemp("watch") / "events.json")
        try:
            yield lab, watch, [list(load_objects(result.texts[run.path])) for run in result.runs]
        finally:
            watch.end()


def test_never_more_than_ten_of_48_trials_are_admitted(
    sweep: tuple[Lab, Watch, list[list[dict[str, Any]]]],
) -> None:
    """US-05: the queue admits ten, and others as those end, until all 48 have run."""
    lab, watch, trials = sweep
    assert len(trials) == 48
    for bodies in trials:
        for body in bodies:
            lab.client.apply_patiently(body)

    def complete() -> int:
        return sum(condition(job, "Complete") == "True" for job in lab.client.list("TrainJob", TEAM))

    poll(lambda: complete() == len(trials), PATIENCE_S, lambda: f"{complete()} of {len(trials)} complete")
    time.sleep(2)  # the last events
    most, ever = most_admitted(watch)
    assert ever == len(trials)
    assert most == AT_ONCE
