"""The real promtool, as the lab has it, and what it reports about rules."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from gangplan.generators.alerts import generate_prometheus_rules
from gangplan.model.site import Site
from tests.lab import build
from tests.lab.programs import PROMTOOL, Program

RULES = "rules.yaml"


def promtool() -> str:
    """Return the lab's promtool, built if it is missing; skip the test by name if it cannot be built."""
    return program_of_the_lab(PROMTOOL)


def program_of_the_lab(program: Program) -> str:
    """Return the path of a program of the lab, built if it is missing; skip the test by name if it cannot be
    built.

    Its tests belong to `make e2e`: what an earlier `make lab` left must not decide what `make test` tests.
    """
    try:
        build.ensure([program])
    except build.GoMissingError as error:
        pytest.skip(f"real {program.name}: {error}")
    return str(build.executable(program))


def groups_of(site: Site) -> list[dict[str, Any]]:
    """Return the groups of every rule object, as the Prometheus Operator passes them to Prometheus."""
    return [group for body in generate_prometheus_rules(site) for group in body["spec"]["groups"]]


def write_rules(groups: list[dict[str, Any]], folder: Path) -> Path:
    """Write a rule file of Prometheus."""
    path = folder / RULES
    path.write_text(yaml.safe_dump({"groups": groups}, sort_keys=False, width=1000), encoding="utf-8")
    return path


def run(arguments: Sequence[str], folder: Path) -> None:
    """Run promtool; its output is the message of a failure."""
    command = [promtool(), *arguments]
    outcome = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def check(site: Site, folder: Path) -> None:
    """Run `promtool check rules`, whose lint can fail as well."""
    write_rules(groups_of(site), folder)
    run(["check", "rules", "--lint=all", "--lint-fatal", RULES], folder)


def check_expressions(expressions: Sequence[str], folder: Path) -> None:
    """Check that Prometheus can parse each expression, as a rule with a name of its own."""
    rules = [{"record": f"expression_{number}", "expr": expr} for number, expr in enumerate(expressions)]
    write_rules([{"name": "expressions", "rules": rules}], folder)
    run(["check", "rules", "--lint=none", RULES], folder)


def tell(site: Site, stories: Sequence[dict[str, Any]], folder: Path) -> None:
    """Run `promtool test rules`: series in, recorded series and alerts out."""
    groups = groups_of(site)
    write_rules(groups, folder)
    document = {
        "rule_files": [RULES],
        "evaluation_interval": "1m",  # as the stories assume
        "group_eval_order": [group["name"] for group in groups],
        "tests": list(stories),
    }
    (folder / "stories.yaml").write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    run(["test", "rules", "stories.yaml"], folder)
