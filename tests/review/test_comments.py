"""The comments on five typical pull requests, as people read them; `--update` rewrites them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import workspaces
from tests.review.repository import Repository, begin
from tests.workspaces import CATALOG, CLUSTER, SPEC, TEAM

HERE = Path(__file__).parent / "comments"
LIDAR, PLATFORM, IMAGES = "specs/vision/lidar.yaml", "overlays/lab/cluster.yaml", "images/catalog.yaml"
RADAR, FILINGS = "specs/vision/radar.yaml", "specs/nlp/filings.yaml"
PRICED = CLUSTER.replace(
    "  nlp: {queue: training}\n",
    "  nlp: {queue: training, quota: {a100: {gpus: 16}}}\n"
    "  vision: {queue: training, quota: {a100: {gpus: 16}}}\n",
).replace("count: 8}, labels", 'count: 8}, price: {perGpuHour: "2.50"}, labels')
LONG = SPEC.replace("gpus: 2", "gpus: 4") + "timeout: 6h\ndescription: Learn to drive from lidar\n"
BASE = {
    "specs/vision/team.yaml": TEAM,
    PLATFORM: PRICED + "policies: {packs: [lifecycle], enforcement: Audit}\n",
    FILINGS: SPEC + "timeout: 2h\n",
    LIDAR: LONG,
}
CHANGES: dict[str, dict[str, str | None]] = {
    "a-first-job": {RADAR: LONG.replace("workers: 4", "workers: 1").replace("lidar", "radar")},
    "another-size": {LIDAR: LONG.replace("workers: 4", "workers: 3").replace("6h", "8h")},
    "a-new-image": {IMAGES: CATALOG.replace("332211ffee", "332211ffef")},
    "a-smaller-quota-and-a-policy": {
        PLATFORM: PRICED.replace(
            "vision: {queue: training, quota: {a100: {gpus: 16}}}",
            "vision: {queue: training, quota: {a100: {gpus: 8}}}",
        )
        + "policies: {packs: [lifecycle], enforcement: Deny}\n"
    },
    "stop-one-and-retire-one": {LIDAR: LONG + "state: stopped\n", FILINGS: None},
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Commit two teams with a job each on main."""
    found = begin(tmp_path / "jobs")
    workspaces.write(found.root, BASE)
    found.render()
    found.commit("two teams")
    found.git("branch", "-f", "main")
    return found


@pytest.mark.parametrize("name", CHANGES)
def test_the_comment_on_each_pull_request_is_as_committed(
    name: str, repository: Repository, is_updating: bool
) -> None:
    for file, text in CHANGES[name].items():
        if text is None:
            (repository.root / file).unlink()
        else:
            workspaces.write(repository.root, {file: text})
    workspaces.gangplan("render", "-C", repository.root)
    said = repository.plan("--format", "markdown").out
    text = re.sub(r"\b[0-9a-f]{12}\b", "0" * 12, said)  # commit ids depend on the day
    golden = HERE / f"{name}.md"
    if is_updating:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
