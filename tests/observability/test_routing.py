"""Receivers of each alert: the examples of docs/observability.md, under amtool and the operator's
definitions.

The stories of test_promtool.py check, label by label, that each alert has the team of its run.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.generators.alerts import generate_prometheus_rules
from tests import plain
from tests.lab import addons
from tests.lab.programs import AMTOOL
from tests.observability.promtool import program_of_the_lab
from tests.observability.sites import SITES
from tests.validate import crd
from tests.workspaces import REPOSITORY

PAGE = (REPOSITORY / "docs/observability.md").read_text()
TEAMS = ("nlp", "vision")


def examples(word: str) -> list[dict[str, Any]]:
    """Return the YAML blocks of the page that contain a word."""
    blocks = [part.partition("```")[0] for part in PAGE.split("```yaml\n")[1:]]
    return [plain.load(block) for block in blocks if word in block]


def rules() -> list[dict[str, Any]]:
    """Return every alert of the site with most of them."""
    bodies = max(
        (generate_prometheus_rules(site) for site in SITES.values()), key=lambda found: len(json.dumps(found))
    )
    return [
        rule
        for body in bodies
        for group in body["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]


def test_the_routes_know_every_severity() -> None:
    assert len(rules()) >= 15
    (config,) = examples("webhook_configs")
    known = {"warning", "critical", "info"}
    assert {rule["labels"]["severity"] for rule in rules()} <= known
    for route in config["route"]["routes"]:
        (matcher,) = [one for one in route["matchers"] if "severity" in one]
        assert set(matcher.partition("=~")[2].strip('"').split("|")) == known - {"info"}


@pytest.mark.e2e
def test_alertmanager_sends_each_alert_to_its_team(tmp_path: Path) -> None:
    (config,) = examples("webhook_configs")
    path = tmp_path / "alertmanager.yml"
    path.write_text(yaml.safe_dump(config))
    program = program_of_the_lab(AMTOOL)
    done = subprocess.run([program, "check-config", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = {(team, severity): team for team in TEAMS for severity in ("warning", "critical")}
    cases |= {
        ("nlp", "info"): "platform",
        ("platform", "info"): "platform",
        ("other", "critical"): "platform",
    }
    for (team, severity), receiver in cases.items():
        labels = [f"team={team}", f"severity={severity}", "alertname=GangplanRunFailed", "namespace=ml-nlp"]
        words = [
            program,
            "config",
            "routes",
            "test",
            f"--config.file={path}",
            f"--verify.receivers={receiver}",
        ]
        done = subprocess.run([*words, *labels], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{labels}: {done.stdout}{done.stderr}"


def definition(kind: str) -> dict[str, Any]:
    """Return a definition of the Prometheus Operator, from the module that has the lab's."""
    lab = next(one for one in addons.ADDONS if "prometheusrules" in one.file)
    try:
        path = addons.file_of(replace(lab, file=lab.file.replace("prometheusrules", f"{kind.lower()}s")))
    except (OSError, RuntimeError, ValueError) as reason:
        pytest.skip(f"the operator's definitions cannot be had: {reason}")
    # PyYAML reads "- =" in a list of operators as a tag of its own.
    found: dict[str, Any] = plain.load(path.read_text().replace("- =\n", "- '='\n"))
    return found


def test_the_operator_accepts_the_config_of_a_team() -> None:
    (body,) = examples("kind: AlertmanagerConfig")
    versions = definition(body["kind"])["spec"]["versions"]
    served = {one["name"]: one["schema"]["openAPIV3Schema"] for one in versions if one["served"]}
    version = body["apiVersion"].partition("/")[2]
    assert version in served, f"{version} is not served: {sorted(served)}"
    assert crd.violations(body, served[version]) == []
    wrong = json.loads(json.dumps(body).replace("=~", "~="))
    assert crd.violations(wrong, served[version]) != []


def test_the_forwarder_selects_by_a_label_that_pods_have() -> None:
    (body,) = examples("kind: ClusterLogForwarder")
    (one,) = body["spec"]["inputs"]
    (label,) = one["application"]["selector"]["matchLabels"]
    rendered = "".join(
        path.read_text() for path in sorted((REPOSITORY / "rendered").rglob("runs/**/*-*.yaml"))[:5]
    )
    assert f"{label}: " in rendered
    assert {name for pipeline in body["spec"]["pipelines"] for name in pipeline["inputRefs"]} == {one["name"]}
    assert {name for pipeline in body["spec"]["pipelines"] for name in pipeline["outputRefs"]} == {
        output["name"] for output in body["spec"]["outputs"]
    }
