"""Paths in the home of root, which the user of a run cannot enter."""

from __future__ import annotations

import pytest

from tests import workspaces
from tests.workspaces import gangplan

CASES = {
    "command: [python, /root/train.py]": "specs/nlp/filings.yaml:command names /root/train.py",
    "command: [python, train.py, --out=/root]": "specs/nlp/filings.yaml:command names /root",
    "command: [bash, -c, 'cd /root/code && python train.py']": "specs/nlp/filings.yaml:command names /root/code",
    "env: {HOME: /root}": "specs/nlp/filings.yaml:HOME names /root",
    "env: {PYTHONPATH: '/opt/lib:/root/lib'}": "specs/nlp/filings.yaml:PYTHONPATH names /root/lib",
    "steps: [{name: fetch, command: [cp, /root/a, /tmp], timeout: 5m}]": "specs/nlp/filings.yaml:command names /root/a",
    "setup: [{name: fetch, command: [ls], env: {HOME: /root}}]": "specs/nlp/filings.yaml:HOME names /root",
    "command: [python, train.py, --out, /data/root/a]": "",
    "command: [python, train.py, --from, 's3://root/a', --of, root]": "",
    "command: [python, train.py, --out, /rooted/a, --in, ./root/a]": "",
    "env: {RAY_ROOT: /opt/root, SPARK: 'file:/rootless'}": "",
}


@pytest.mark.parametrize("lines", CASES)
def test_paths_in_the_home_of_root_are_reported(lines: str, tmp_path: object) -> None:
    spec = workspaces.STOCK["specs/nlp/filings.yaml"]
    if lines.startswith("command"):
        spec = spec.replace("command: [python, train.py]", lines)
    else:
        spec += f"{lines}\n"
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/filings.yaml": spec})
    ran = gangplan("validate", "-C", root)
    assert not [one for one in ran.findings if one.severity == "error"]
    found = [one for one in ran.findings if one.rule == "root-home-named"]
    told = [f"{_file_of(one)}:{one.message.partition(': ')[0].removeprefix('the ')}" for one in found]
    assert told == [CASES[lines]] * bool(CASES[lines])


def test_a_variable_of_the_team_is_reported_in_its_file(tmp_path: object) -> None:
    team = workspaces.STOCK["specs/nlp/team.yaml"] + "defaults: {env: {HF_HOME: /root/.cache}}\n"
    root = workspaces.write(tmp_path, workspaces.STOCK | {"specs/nlp/team.yaml": team})
    found = {
        _file_of(one) for one in gangplan("validate", "-C", root).findings if one.rule == "root-home-named"
    }
    assert found == {"specs/nlp/team.yaml"}


def _file_of(one: workspaces.Shown) -> str:
    return one.place.partition(":")[0]
