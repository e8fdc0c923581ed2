"""ConfigMaps of the team, mounted as folders of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.resolve.test_workdir import SPEC, pods, put
from tests.workspaces import gangplan, rendered

TEAM = workspaces.TEAM + "configMaps: [tuning, site.v2, site-v2]\n"


@pytest.fixture
def team(root: Path) -> Path:
    """Create the small workspace, whose team has ConfigMaps."""
    workspaces.write(root, {"specs/nlp/team.yaml": TEAM})
    return root


def told(root: Path, lines: str) -> list[Any]:
    put(root, lines)
    return list(gangplan("validate", "-C", root).findings)


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_every_pod_has_the_folder(image: str, team: Path) -> None:
    put(team, "files: {tuning: /etc/tuning}\n", image)
    for pod in pods(team).values():
        volume = {"name": "files-tuning", "configMap": {"name": "tuning"}}
        assert volume in pod["volumes"]
        mount = {"name": "files-tuning", "mountPath": "/etc/tuning", "readOnly": True}
        assert mount in pod["containers"][0]["volumeMounts"]
    assert gangplan("validate", "-C", team).findings == []


def test_names_that_differ_only_by_dots_get_two_volumes(team: Path) -> None:
    put(team, "files: {site.v2: /etc/a, site-v2: /etc/b}\n")
    found = [one for one in pods(team)["node"]["volumes"] if "configMap" in one]
    assert [one["configMap"]["name"] for one in found[:2]] == ["site.v2", "site-v2"]
    assert len({one["name"] for one in found}) == 3  # with the launch scripts
    assert gangplan("validate", "-C", team).findings == []


# The field, the only rule that it breaks, and the column.
CASES = {
    "one that the team does not declare": ("files: {tunning: /etc/x}\n", "config-map-unknown", 9),
    "over programs": ("files: {tuning: /usr/bin}\n", "mount-hides", 17),
    "over the hosts of MPI": ("files: {tuning: /etc/mpi}\n", "mount-collision", 17),
    "over data": ("files: {tuning: /data}\ndata: {filings: /data}\n", "mount-collision", 17),
    "two in one folder": ("files: {tuning: /etc/x, site.v2: /etc/x}\n", "mount-collision", 34),
    "beside data": ("files: {tuning: /data/conf}\ndata: {filings: /data}\n", "", 0),
    "below the folder of settings": ("files: {tuning: /etc/myapp}\n", "", 0),
}


@pytest.mark.parametrize("name", CASES)
def test_each_wrong_folder_breaks_one_rule(name: str, team: Path) -> None:
    lines, rule, column = CASES[name]
    found = told(team, lines)
    assert [one.rule for one in found] == ([rule] if rule else [])
    if rule:
        assert found[0].place == f"{SPEC}:9:{column}"
        assert found[0].help


def test_why_leads_to_the_field(team: Path) -> None:
    put(team, "files: {tuning: /etc/tuning}\n")
    pods(team)
    (path,) = (one for one in rendered(team) if is_run_file(one))
    lines = rendered(team)[path].decode().splitlines()
    line = next(n for n, one in enumerate(lines, 1) if "mountPath: /etc/tuning" in one)
    assert (
        "files.tuning" in gangplan("why", "-C", team, f"rendered/{path.removeprefix('rendered/')}:{line}").out
    )


def test_a_new_job_takes_files_from_its_flags(team: Path) -> None:
    words = ("--image", "openmpi", "--command", "python train.py", "--files", "tuning=/etc/tuning", "-n")
    outcome = gangplan("new", "job", "tuned", "-C", team, *words)
    assert outcome.code == 0, outcome.err
    assert "files: {tuning: /etc/tuning}" in outcome.out


def test_another_folder_is_another_run(team: Path) -> None:
    names = set()
    for folder in ("/etc/tuning", "/etc/other"):
        put(team, f"files: {{tuning: {folder}}}\n")
        pods(team)
        names |= {path for path in rendered(team) if is_run_file(path)}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("name", "code", "help"),
    [
        ("conf/ds.json", 2, "Write ./conf/ds.json: for a file next to the spec."),
        ("../ds.json", 2, "Write ./NAME: for a file in the folder of the spec, one entry for each."),
        ("./conf/", 2, "Write ./NAME: for a file in the folder of the spec, one entry for each."),
        ("ds.json", 2, "Write ./ds.json for the file specs/nlp/ds.json."),
    ],
)
def test_a_file_next_to_the_spec_must_begin_with_a_dot(name: str, code: int, help: str, team: Path) -> None:
    put(team, f"files: {{{name}: /etc/ds}}\n")
    outcome = gangplan("validate", "-C", team)
    (found,) = outcome.findings
    assert (outcome.code, found.place) == (code, f"{SPEC}:9:9")
    assert found.help.startswith(help)
