"""Failed checks of the preflight, on a real control plane: some end the run, and some are retried."""

from __future__ import annotations

from itertools import count

import pytest

from gangplan.model.exits import PREFLIGHT_EXITS
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from tests import workspaces
from tests.e2e.test_disruptions import SPEC, Played, Site
from tests.e2e.test_disruptions import site as disrupted
from tests.lab.stages import Plot, Story

pytestmark = pytest.mark.e2e
NUMBERS = count(1)
VERSION = 'version: "5.0.8"}\n'
site = disrupted


@pytest.fixture(scope="module", autouse=True)
def looks(site: Site) -> None:
    """Give an image the preflight program; nothing else that is rendered changes."""
    path = site.root / "images/catalog.yaml"
    text = path.read_text()
    assert VERSION in text
    path.write_text(text.replace(VERSION, f"{VERSION}    preflight: /usr/local/bin/gangplan-preflight\n"))


def start(site: Site) -> Played:
    """Start a run with a preflight and two retries; its pods run until a test ends them."""
    job = f"looked-{next(NUMBERS)}"
    spec = f"{SPEC}timeout: 1h\nretries: 2\npreflight: true\n"
    workspaces.write(site.root, {f"specs/nlp/{job}.yaml": spec})
    result = preview_render(Request(site.root))
    assert not result.has_errors, result.findings
    run = next(run for run in result.runs if run.name.startswith(f"{job}-"))
    namespace = run.unit.job.namespace
    site.lab.tell(Story(Plot.RUN, namespace=namespace, run=run.name))
    for body in load_objects(result.texts[run.path]):
        site.lab.client.apply_patiently(body, timeout=60)
    played = Played(site.lab, namespace, run.name, run.unit.layout.pods)
    played.until_ready(0)
    return played


def test_failed_preflight_checks_end_the_run_or_use_up_a_retry(site: Site) -> None:
    played = start(site)
    played.end(played.pods(0, "launcher")[0], PREFLIGHT_EXITS["gpus"].code)  # another node may have them
    played.until_ready(1)
    assert played.restarts() == (1, 1)
    code = PREFLIGHT_EXITS["versions"].code  # the image has them, wherever it starts
    played.end(played.pods(1, "launcher")[0], code)
    assert played.until_failed() == "FailJobSetFailurePolicyAction"
    assert played.restarts() == (1, 1)
    assert f"failed with exit code {code} matching FailJob rule" in played.failures()["launcher"][1]
