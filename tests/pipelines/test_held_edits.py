"""Findings of `validate --base` about runs that something creates, and about trials of sweeps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.rules.worlds import commit
from tests.schedules import worlds
from tests.sweeps.files import SWEEP
from tests.workspaces import SPEC, gangplan, write

AFTER = SPEC + "after: [prepare]\n"
NIGHTLY = worlds.SPEC
RUN = "-[0-9a-f]{8}"
S, W, B, R = "run-scheduled", "run-waits", "run-started", "run-removed"
UNTIL = f"when prepare{RUN} is complete"
# For each job: its spec before and after (None: no file), and each rule with words of its message.
EDITS: dict[str, tuple[str | None, str | None, dict[str, str]]] = {
    "prepare": (SPEC, SPEC + "run: 2\n", {"run-replaced": "if the old one is not over, both run"}),
    "other": (SPEC + "run: 3\n", SPEC + "run: 3\n", {}),
    "dated-new": (
        None,
        NIGHTLY,
        {S: r"is new: each start creates a run \(0 4 \* \* \* in .*\), at most \d+ "},
    ),
    "dated-spec": (
        NIGHTLY,
        NIGHTLY + "run: 2\n",
        {S: f"it creates runs of dated-spec{RUN} .*; a run of dated-spec{RUN} that is there goes on"},
    ),
    "dated-hour": (
        NIGHTLY,
        NIGHTLY.replace("0 4", "0 5"),
        {S: r"dated-hour changes: .* \(0 5 \* \* \* in Europe/Berlin\)"},
    ),
    "dated-off": (
        NIGHTLY,
        NIGHTLY + "state: stopped\n",
        {S: "is suspended: it creates no more runs, and one that"},
    ),
    "dated-on": (NIGHTLY + "state: stopped\n", NIGHTLY, {S: "schedule dated-on starts again"}),
    "dated-gone": (NIGHTLY, None, {S: "is removed: .* those that it created stay"}),
    "dated-no-more": (
        NIGHTLY,
        SPEC + "timeout: 20h\n",
        {S: f"is removed: Git has run dated-no-more{RUN} instead", B: "it trains when this is synced"},
    ),
    "dated-from-now": (
        SPEC + "timeout: 20h\n",
        NIGHTLY,
        {S: f"is new: .*; run dated-from-now{RUN}, if .*, goes on next to them"},
    ),
    "dated-other": (SPEC, NIGHTLY, {S: "is new", "run-replaced": "by schedule dated-other; if it is not"}),
    "late-new": (None, AFTER, {W: f"is new: it is created {UNTIL}, at most"}),
    "late-same": (AFTER, AFTER, {W: f"waits for other runs: unless it is there, it is created {UNTIL}"}),
    "late-spec": (
        AFTER,
        AFTER + "run: 2\n",
        {W: f"is replaced in Git by late-spec{RUN}, which is created {UNTIL}"},
    ),
    "late-off": (
        AFTER,
        AFTER + "state: stopped\n",
        {"run-stopped": "it is not created; if it exists, it ends"},
    ),
    "late-gone": (AFTER, None, {R: "it is no longer created, and if it exists and is not over, it"}),
    "late-no-more": (AFTER, SPEC, {B: "waits no more: unless it is there, it trains when .* at most"}),
    "late-other": (AFTER, SPEC + "run: 2\n", {W: f"is replaced in Git by late-other{RUN}", B: "is new"}),
    "late-from-now": (SPEC, AFTER, {W: f"from now on: unless it is there, it is created {UNTIL}"}),
    "late-two": (
        AFTER,
        SPEC + "after: [prepare, other]\n",
        {W: f"when prepare{RUN} and other{RUN} are complete"},
    ),
    "more": (
        SWEEP,
        SWEEP.replace("1e-3]", "1e-3, 2e-3]"),
        {B: "^2 runs of sweep more are new, .* at most 96 GPU-hours together"},
    ),
    "less": (
        SWEEP,
        SWEEP.replace("[64, 128]", "[64]"),
        {R: "^3 runs of sweep less are removed from Git but"},
    ),
    "less-by-one": (
        SWEEP,
        SWEEP + "removed: [TRIAL]\n",
        {R: "^run less-by-one-.* is removed from Git but not"},
    ),
    "again": (
        SWEEP,
        SWEEP.replace("workers: 2", "workers: 3"),
        {"run-replaced": "^6 runs of sweep again are replaced .*, at most 432 GPU-hours together"},
    ),
    "off": (SWEEP, SWEEP + "state: stopped\n", {"run-stopped": "^6 runs of sweep off are stopped"}),
    "gone": (SWEEP, None, {R: "^6 runs of sweep gone are removed"}),
}
# The edit that `plan --base` names, where the run does not begin or end as any other.
CALLED = {
    **dict.fromkeys(("dated-new", "dated-spec", "dated-hour", "dated-on", "dated-from-now"), "scheduled"),
    **dict.fromkeys(("late-same", "late-from-now", "late-two"), "waits"),
    "late-no-more": "released",
    "late-new": "new",
    "late-spec": "changed",
    "dated-no-more": "new",
    "dated-off": "stopped",
    "dated-gone": "removed",
}
HELPS = {
    "less": "put their values back and write stopped: [",
    "less-by-one": "put their values back and write stopped: [",
    "gone": "Put the sweep back with state: stopped",
    "again": "gangplan retire --write",
}


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render a workspace with all edits since its last commit."""
    root = tmp_path_factory.mktemp("held") / "workspace"
    worlds.stock(root)
    (root / "specs/nlp/filings.yaml").unlink()
    write(root, {f"specs/nlp/{job}.yaml": old for job, (old, _, _) in EDITS.items() if old})
    outcome = gangplan("render", "-C", root)
    assert outcome.code in (0, 1), outcome.err
    commit(root)
    (trial, *_) = sorted(
        path.stem.split("-")[-2] for path in (root / "rendered/lab/runs/nlp").glob("less-by-one-*")
    )
    for job, (_, new, _) in EDITS.items():
        path = root / f"specs/nlp/{job}.yaml"
        path.write_text(new.replace("TRIAL", trial)) if new else path.unlink()
    assert gangplan("render", "-C", root).code in (0, 1)
    return root


@pytest.fixture(scope="module")
def found(changed: Path) -> list[tuple[str, str, str]]:
    """Return rule, message and help of all that the edits do."""
    outcome = gangplan("validate", "-C", changed, "--base", "HEAD")
    assert outcome.code == 0, outcome.err
    return [(one.rule, one.message, one.help) for one in outcome.findings if "(since HEAD" in one.message]


@pytest.mark.parametrize("job", EDITS)
def test_an_edit_is_reported_with_its_effect(job: str, found: list[tuple[str, str, str]]) -> None:
    about = re.compile(rf"(schedule {job}|run {job}{RUN}|run {job}-[a-z2-7]{{8}}{RUN}|sweep {job}) ")
    said = {rule: (message, help) for rule, message, help in found if about.search(message.split(" by ")[0])}
    wanted = EDITS[job][2]
    assert set(said) == set(wanted)
    for rule, words in wanted.items():
        message, help = said[rule]
        assert re.search(words, message), message
        assert HELPS.get(job, "") in help


def test_nothing_else_is_reported_about_runs(found: list[tuple[str, str, str]]) -> None:
    assert sum(rule.startswith("run-") for rule, _, _ in found) == sum(len(one[2]) for one in EDITS.values())


def test_a_review_names_each_edit(changed: Path) -> None:
    outcome = gangplan("plan", "-C", changed, "--base", "HEAD", "--format", "json")
    edits = {one["job"]: one for one in json.loads(outcome.out)["runs"]}
    assert {job: edits[job]["edit"] for job in CALLED} == CALLED
    assert [len(edits[job]["waitsFor"]) for job in ("late-two", "late-same", "late-new", "dated-new")] == [
        *(2, 1, 1),
        0,
    ]
    text = gangplan("plan", "-C", changed, "--base", "HEAD").out
    assert "6 scheduled, 3 waiting, 1 released" in text.partition("\n")[0]
    assert ", 2 when others are complete)" in text.partition("\n")[0]
    assert "A month has at most 31 starts of nlp/dated-new: " in text
    assert "Runs that a schedule created go on when it ends." in text
