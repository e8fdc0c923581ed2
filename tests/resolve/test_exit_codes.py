"""Exit codes after which a run is retried, and those after which it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests.resolve.test_workdir import SPEC, put
from tests.workspaces import gangplan, rendered

FAIL = "retries: 2\nexitCodes: {fail: [42, 7]}\n"
RETRY = "retries: 2\nexitCodes: {retry: [143, 137]}\n"


def runtime(root: Path) -> tuple[dict[str, list[Any]], list[Any]]:
    """Return the rules of each Job by role, and those of the JobSet."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    (body,) = (one for one in load_objects(text) if one["kind"] == "TrainingRuntime")
    spec = body["spec"]["template"]["spec"]
    jobs = {one["name"]: one["template"]["spec"] for one in spec["replicatedJobs"]}
    rules = {name: (job.get("podFailurePolicy") or {}).get("rules", []) for name, job in jobs.items()}
    return rules, spec["failurePolicy"]["rules"]


def ended(rules: list[Any]) -> Any:
    """Return the rule about exit codes."""
    return next((one["onExitCodes"] for one in rules if "onExitCodes" in one), None)


# Lines, image -> the role whose pods end with the program's code, and its rule.
CASES = {
    "final ones": (FAIL, "openmpi", "launcher", "In", [7, 42, 193, 196, 197]),
    "only these": (RETRY, "openmpi", "launcher", "NotIn", [137, 143, 198, 199]),
    "both": (
        "retries: 1\nexitCodes: {retry: [137], fail: [42]}\n",
        *("openmpi", "launcher", "NotIn", [137, 198, 199]),
    ),
    "neither": ("retries: 1\n", "openmpi", "launcher", "In", [193, 196, 197]),
}


@pytest.mark.parametrize("name", CASES)
def test_only_the_pods_of_the_program_have_a_rule_for_exit_codes(name: str, root: Path) -> None:
    lines, image, role, operator, values = CASES[name]
    put(root, lines, image)
    rules, whole = runtime(root)
    assert ended(rules[role]) == {"containerName": "node", "operator": operator, "values": values}
    assert all(ended(found) is None for other, found in rules.items() if other != role)
    # The loss of a node is checked first, and a deadline always.
    assert "onPodConditions" in rules[role][0]
    assert [one["name"] for one in whole] == ["deadline", "launch", "disruption"]
    assert gangplan("validate", "-C", root).findings == []


def test_torch_workers_have_the_rule(root: Path) -> None:
    """Only torchrun's own exit code is visible."""
    put(root, "retries: 1\nexitCodes: {fail: [1]}\n", "pytorch")
    rules, whole = runtime(root)
    assert ended(rules["node"]) == {"containerName": "node", "operator": "In", "values": [1]}
    assert [one["name"] for one in whole] == ["deadline", "launch", "disruption"]
    assert gangplan("validate", "-C", root).findings == []


# Lines, the only broken rule, and its place.
WRONG = {
    "in both lists": ("retries: 1\nexitCodes: {retry: [9, 42], fail: [42]}\n", "exit-codes-clash", "10:36"),
    "gangplan's own": ("retries: 1\nexitCodes: {retry: [199]}\n", "exit-codes-clash", "10:21"),
    "no retries": ("exitCodes: {fail: [42]}\n", "exit-codes-unused", "9:12"),
    "next to gangplan's own": ("retries: 1\nexitCodes: {retry: [195, 200]}\n", "", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_list_breaks_one_rule(name: str, root: Path) -> None:
    lines, rule, place = WRONG[name]
    put(root, lines)
    found = gangplan("validate", "-C", root).findings
    assert [(one.rule, one.place) for one in found] == ([(rule, f"{SPEC}:{place}")] if rule else [])


def test_exit_codes_that_torchrun_hides_are_refused(root: Path) -> None:
    put(root, FAIL, "pytorch")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.place) == ("exit-codes-lost", f"{SPEC}:10:12")


def test_exit_codes_that_intel_mpi_may_change_are_a_warning(root: Path) -> None:
    put(root, f"mpi: {{licenseAcknowledged: true}}\n{FAIL}", "intel")
    (found,) = gangplan("validate", "-C", root).findings
    assert (found.rule, found.severity) == ("exit-codes-lost", "warning")
    assert "255" in found.message


@pytest.mark.parametrize("codes", ["{fail: [0]}", "{retry: [256]}", "{fail: [a]}", "{again: [1]}", "[1]"])
def test_invalid_exit_codes_are_refused(codes: str, root: Path) -> None:
    put(root, f"retries: 1\nexitCodes: {codes}\n")
    outcome = gangplan("validate", "-C", root)
    assert outcome.code == 2
    assert all(one.place.startswith(f"{SPEC}:10") and one.help for one in outcome.findings)


def test_the_plan_shows_the_exit_codes(root: Path) -> None:
    put(root, "retries: 1\nexitCodes: {retry: [137], fail: [42]}\n")
    out = gangplan("plan", "-C", root).out
    assert "  exits     tried again only with 137; failed for good with 42\n" in out


def test_other_codes_are_another_run(root: Path) -> None:
    names = set()
    for codes in ("{fail: [42]}", "{fail: [43]}"):
        put(root, f"retries: 1\nexitCodes: {codes}\n")
        runtime(root)
        names |= {path for path in rendered(root) if is_run_file(path)}
    assert len(names) == 2


def test_a_new_job_takes_exit_codes_from_its_flags(root: Path) -> None:
    words = (
        "--image",
        "openmpi",
        "--command",
        "python train.py",
        "--retries",
        "1",
        "--exit-codes-fail",
        "42,43",
    )
    outcome = gangplan("new", "job", "codes", "-C", root, *words, "-n")
    assert outcome.code == 0, outcome.err
    assert "fail: [42, 43]" in outcome.out
