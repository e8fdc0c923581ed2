"""Jobs that come after a scheduled one: a run once each of its runs is complete, with the same date."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.worlds import findings, name_of, runs, stock
from tests.schedules import worlds as schedules
from tests.schedules.worlds import one
from tests.workspaces import SPEC, gangplan, write

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
AT = 'schedule: {cron: "0 4 * * *", timeZone: Europe/Berlin, keep: 5}\n'
NIGHTLY = SPEC + AT + "timeout: 2h\n"
SCORE = (
    SPEC.replace("train.py", "score.py").replace("workers: 4", "workers: 2")
    + "after: [nightly]\ntimeout: 1h\n"
)
JOBS = {"nightly": NIGHTLY, "filings": SCORE}
# kubectl's answers about a run: the n-th is the n-th line of $TOLD/answers, and the last line repeats.
KUBECTL = """\
#!/bin/sh
case "$1 $2 $3" in
"create "*) cat >"$TOLD/created" ;;
"get "*" --selector="*) : ;;
"get "*)
  echo "$3" >>"$TOLD/asked"
  n=$(grep -c . "$TOLD/asked")
  [ "$n" -le "$(grep -c '' "$TOLD/answers")" ] || n=$(grep -c '' "$TOLD/answers")
  line=$(sed -n "${n}p" "$TOLD/answers")
  [ "$line" != down ] || exit 1
  printf %s "$line"
  ;;
esac
"""
MINUTE = int(datetime(2026, 1, 15, 3, 0, tzinfo=UTC).timestamp()) // 60
EARLIER = "nightly-20260115-0300"


def test_every_run_of_the_schedule_is_followed(root: Path) -> None:
    stock(root, JOBS)
    found = runs(root)
    assert findings(root) == []
    first, then = (one(found[job], "CronJob")["spec"] for job in ("nightly", "filings"))
    for name in ("schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds"):
        assert then[name] == first[name], name
    (container,) = then["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][1] == "filings"
    assert container["args"][4:] == [str(3600 + 600), "nightly"]
    assert "activeDeadlineSeconds" in first["jobTemplate"]["spec"]
    assert (
        "activeDeadlineSeconds" not in then["jobTemplate"]["spec"]
    )  # it also waits while the run before it trains


def test_a_schedule_without_followers_is_unchanged(root: Path) -> None:
    stock(root, {"nightly": NIGHTLY, "filings": SPEC})
    alone = one(runs(root)["nightly"], "CronJob")
    stock(root, JOBS)
    assert one(runs(root)["nightly"], "CronJob") == alone


def test_a_follower_of_a_follower_waits_for_the_follower(root: Path) -> None:
    stock(root, JOBS | {"publish": SCORE.replace("[nightly]", "[filings]")})
    found = runs(root)
    assert findings(root) == []
    (container,) = one(found["publish"], "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["args"][5:] == ["filings"]


def test_a_changed_schedule_changes_its_followers(root: Path) -> None:
    stock(root, JOBS)
    runs(root)
    write(root, {"specs/nlp/nightly.yaml": NIGHTLY.replace("0 4", "0 5")})
    assert gangplan("render", "-C", root, "specs/nlp/nightly.yaml").code in (0, 1)
    assert gangplan("render", "-C", root, "--check").code == 0
    assert one(runs(root)["filings"], "CronJob")["spec"]["schedule"] == "0 5 * * *"


def test_plan_shows_both_at_the_same_dates(root: Path) -> None:
    stock(root, JOBS)
    out = gangplan("plan", "-C", root, "--today", "2026-01-15").out
    assert "each after the run of nightly of the same start" in out
    for job in ("nightly", "filings"):
        assert f"Thu 2026-01-15 04:00 +0100  {job}-20260115-0300" in out


def test_each_night_s_model_has_the_name_of_its_run(root: Path) -> None:
    stock(root, JOBS | {"filings": SCORE + 'model: {name: filings, version: "1"}\n'})
    found = runs(root)
    assert findings(root) == []
    assert "GANGPLAN_RUN" in str(one(found["filings"], "TrainingRuntime"))
    assert "GANGPLAN_RUN" not in str(one(found["nightly"], "TrainingRuntime"))
    assert name_of(found["filings"])
    out = gangplan("plan", "-C", root).out
    assert "registers filings 1; if that fails, nightly stays complete" in out


WEEKLY = NIGHTLY.replace("0 4 * * *", "0 4 * * 0")
PLAIN = SPEC.replace("train.py", "prepare.py")
COMMIT = schedules.CLUSTER.replace("egress: [kubernetes]}", "egress: [kubernetes], backend: commit}")
REFUSED = {
    "other times": ({"weekly": WEEKLY}, "after: [nightly, weekly]", "after-never", "starts at other times"),
    "runs once": ({"prepare": PLAIN}, "after: [nightly, prepare]", "after-never", "prepare runs once"),
    "stopped": ({"nightly": NIGHTLY + "state: stopped\n"}, "after: [nightly]", "after-never", "stopped"),
    "one job twice": (
        {"prepare": PLAIN},
        "after: [prepare, prepare]",
        "after-unusable",
        "prepare is named twice",
    ),
    "own schedule": ({}, f"after: [nightly]\n{AT}", "after-unusable", "a schedule starts this job"),
    "too long together": (
        {},
        "after: [nightly]\ntimeout: 23h",
        "schedule-overlap",
        "23h after 2h of those before",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_jobs_that_cannot_follow_are_refused(case: str, root: Path) -> None:
    jobs, lines, rule, words = REFUSED[case]
    mine = SCORE.replace("timeout: 1h\n", "") if "timeout" in lines or "schedule" in lines else SCORE
    mine = mine.replace("after: [nightly]", lines)
    stock(root, JOBS | jobs | {"filings": mine})
    assert any(rule == one and words in message for one, message in findings(root)), findings(root)


def test_jobs_that_just_fit_between_two_starts_are_accepted(root: Path) -> None:
    """This is the near miss of schedule-overlap: clocks go forward, so the shortest day has 23 hours."""
    stock(root, JOBS | {"filings": SCORE.replace("timeout: 1h", "timeout: 21h")})
    assert findings(root) == []
    write(root, {"specs/nlp/filings.yaml": SCORE.replace("timeout: 1h", "timeout: 22h")})
    assert [rule for rule, _ in findings(root)] == ["schedule-overlap"]


def test_a_job_that_comes_after_a_broken_one_has_no_gap_to_keep(root: Path) -> None:
    """A run of a whole day leaves none, but how long those before it take is not known."""
    broken = NIGHTLY.replace("gpus: 2", "gpus: 16")
    stock(root, JOBS | {"nightly": broken, "filings": SCORE.replace("timeout: 1h", "timeout: 24h")})
    assert [rule for rule, _ in findings(root)] == ["pool-no-fit"]


@pytest.mark.parametrize(
    ("engine", "rule", "words"),
    [
        ("", "after-not-offered", "nothing on cluster lab creates runs once others are complete"),
        ("pipelines: {engine: tekton}\n", "after-never", "commits start the runs of nightly"),
    ],
)
def test_nothing_follows_where_commits_start_runs(engine: str, rule: str, words: str, root: Path) -> None:
    stock(root, JOBS, **{"overlays/lab/cluster.yaml": COMMIT + engine})
    assert any(rule == one and words in message for one, message in findings(root)), findings(root)


def test_cronjobs_follow_schedules_where_pipelines_have_an_engine(root: Path) -> None:
    stock(root, JOBS, **{"overlays/lab/cluster.yaml": schedules.CLUSTER + "pipelines: {engine: tekton}\n"})
    assert one(runs(root)["filings"], "CronJob")["spec"]["schedule"] == "0 4 * * *"
    assert findings(root) == []


def test_a_run_and_its_follower_never_share_a_queue(root: Path) -> None:
    """Together they would ask for 24 of 16 GPUs; another job of that hour is reported, whichever of them
    trains."""
    quota = "nlp: {queue: training, quota: {cpu: {cpu: 60}, a100: {gpus: 16}}}"
    cluster = schedules.CLUSTER.replace("nlp: {queue: training}", quota)
    wide = {"nightly": NIGHTLY.replace("gpus: 2", "gpus: 4"), "filings": SCORE}
    wide = {name: text + "placement: {nodePool: a100}\n" for name, text in wide.items()}
    stock(root, wide, **{"overlays/lab/cluster.yaml": cluster})
    assert [rule for rule, _ in findings(root) if rule == "schedule-crowded"] == []
    other = wide["nightly"].replace("gpus: 4", "gpus: 3")
    write(root, {"specs/nlp/other.yaml": other})
    told = [message for rule, message in findings(root) if rule == "schedule-crowded"]
    assert told
    assert not any("filings" in one and "nightly" in one for one in told), told


class Start:
    """The pod that creates a run after another, with a kubectl that gives prepared answers."""

    def __init__(self, root: Path) -> None:
        stock(root, JOBS)
        bodies = runs(root)["filings"]
        pod = one(bodies, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        (self.container,) = pod["containers"]
        self.folder = root / "there"
        self.folder.mkdir()
        (made,) = (body for body in bodies if "run.yaml" in body.get("data", {}))
        (self.folder / "run.yaml").write_text(made["data"]["run.yaml"])
        for name, text in (("kubectl", KUBECTL), ("sleep", "#!/bin/sh\n")):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run(self, shell: str, *answers: str) -> subprocess.CompletedProcess[str]:
        (self.folder / "answers").write_text("".join(f"{one}\n" for one in answers))
        (self.folder / "asked").write_text("")
        return schedules.started(self.container, self.folder, shell, f"filings-{MINUTE}")

    @property
    def created(self) -> dict[str, Any] | None:
        return schedules.created(self.folder)


ANSWERS = {
    "complete": (("", "down", f"{EARLIER} ", f"{EARLIER} Suspended", f"{EARLIER} Complete"), 0, ""),
    "failed": ((f"{EARLIER} ", f"{EARLIER} Failed"), 75, f"start skipped: run {EARLIER} failed"),
    "never there": (("",), 75, f"start skipped: run {EARLIER} never started"),
}


@pytest.mark.parametrize("case", ANSWERS)
@pytest.mark.parametrize("shell", SHELLS)
def test_the_run_is_created_once_the_run_of_the_same_start_is_complete(
    shell: str, case: str, root: Path
) -> None:
    start, (answers, code, words) = Start(root), ANSWERS[case]
    done = start.run(shell, *answers)
    assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert (start.created or {}).get("metadata", {}).get("name") == (
        None if code else "filings-20260115-0300"
    )
    assert set((start.folder / "asked").read_text().split()) == {EARLIER}


def test_why_knows_the_source_of_a_follower_s_fields(root: Path) -> None:
    stock(root, JOBS)
    runs(root)
    file = next((root / "rendered/lab/runs/nlp").glob("filings-*.yaml"))
    lines = file.read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if line.strip().startswith("schedule: "))
    told = gangplan("why", "-C", root, f"{file.relative_to(root)}:{number}")
    assert told.code == 0, told.err
    assert "specs/nlp/filings.yaml" in told.out
    assert "after" in told.out
