"""The life of trials: values that are added or removed, trials that are over, results that end trials."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gangplan.spec.sweep_files import build_sweep_trial_jobs, find_sweeps_among_spec_files
from tests.rules.worlds import commit
from tests.sweeps.files import FILE, SWEEP, runs, workspace
from tests.test_retire import merge, plan, retire, statuses
from tests.workspaces import gangplan, render, write

RESULTS = "results: {file: ./rates.csv, metric: loss, keep: 2}\n"
CSV = "specs/nlp/rates.csv"


def trials(root: Path) -> dict[str, str]:
    """Return the trials by their values, such as `lr=1e-4 batch=64`."""
    found = build_sweep_trial_jobs(find_sweeps_among_spec_files(root, [(FILE, "nlp")])[FILE])
    return {" ".join(f"{name}={text}" for name, text in one.trial.values): one.trial.name for one in found}


def records(root: Path) -> list[str]:
    """Return the names of the trials that have records in rendered/."""
    return sorted(
        path.stem.split("-")[1]
        for path in (root / "rendered").glob("*/runs/*/*-*.yaml")
        if any(
            (one["metadata"]["annotations"] or {}).get("gangplan.dev/state") == "stopped"
            for one in yaml.safe_load_all(path.read_text())
            if one["kind"] == "TrainJob"
        )
    )


def test_a_new_value_adds_runs_and_touches_none(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    before = {path: path.read_bytes() for path in (tmp_path / "rendered").glob("*/runs/*/*-*.yaml")}
    write(tmp_path, {FILE: SWEEP.replace("[64, 128]", "[64, 96, 128]")})
    outcome = render(tmp_path)
    assert len(runs(tmp_path)) == 9
    assert all(path.read_bytes() == data for path, data in before.items())
    assert not [one for one in outcome.findings if one.rule == "trial-removed"]


def test_a_changed_limit_repeats_no_trial(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    before = runs(tmp_path)
    write(tmp_path, {FILE: SWEEP.replace("maxConcurrent: 2", "maxConcurrent: 3")})
    render(tmp_path)
    assert runs(tmp_path) == before


def test_a_removed_value_reports_the_run_that_goes_on_and_how_to_stop_it(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    gone = [one for values, one in trials(tmp_path).items() if values.startswith("lr=1e-3")]
    write(tmp_path, {FILE: SWEEP.replace(", 1e-3]", "]")})
    outcome = gangplan("validate", "-C", tmp_path)
    found = [one for one in outcome.findings if one.rule == "trial-removed"]
    assert len(found) == 2
    assert {one.place for one in found} == {f"{FILE}:3:1"}
    for trial in gone:
        (told,) = [one for one in found if trial in one.message]
        run = next(name for name in runs(tmp_path) if trial in name)
        assert f"{run} on lab goes on unseen by Git" in told.message
        assert f"stopped: [{trial}]" in told.help
    # Follow the help: put the values back and stop the trials.
    write(tmp_path, {FILE: SWEEP + f"stopped: [{', '.join(gone)}]\n"})
    render(tmp_path)
    assert records(tmp_path) == sorted(gone)
    assert len(runs(tmp_path)) == 6
    # Once that is synced, the records can be removed.
    write(tmp_path, {FILE: SWEEP + f"removed: [{', '.join(gone)}]\n"})
    outcome = render(tmp_path)
    assert len(runs(tmp_path)) == 4
    assert not [one for one in outcome.findings if one.rule == "trial-removed"]


def test_a_stopped_sweep_keeps_records_of_all_trials(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    before = runs(tmp_path)
    write(tmp_path, {FILE: SWEEP + "state: stopped\n"})
    render(tmp_path)
    assert runs(tmp_path) == before
    assert len(records(tmp_path)) == 6


def test_a_trial_that_is_removed_too_early_is_taken_out_of_the_list(tmp_path: Path) -> None:
    """Its values are still there."""
    render(workspace(tmp_path))
    gone = next(iter(trials(tmp_path).values()))
    write(tmp_path, {FILE: SWEEP + f"removed: [{gone}]\n"})
    (found,) = [one for one in gangplan("validate", "-C", tmp_path).findings if one.rule == "trial-removed"]
    assert found.help == f"To end it, take it out of removed: and write stopped: [{gone}]."


def test_the_help_that_keeps_one_trial_names_the_template(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    render(root)
    before = runs(root)
    catalog = root / "images/catalog.yaml"
    text = catalog.read_text()
    catalog.write_text(re.sub(r"sha256:[0-9a-f]{64}", f"sha256:{'5' * 64}", text))
    (found,) = {one.help for one in gangplan("validate", "-C", root).findings if one.rule == "run-renamed"}
    assert "write template: {keep: true} in its spec" in found
    write(root, {FILE: SWEEP.replace("template:\n", "template:\n  keep: true\n")})
    gangplan("render", "-C", root)
    assert runs(root) == before


def test_results_keep_the_best_trials_and_end_the_others_with_a_result(tmp_path: Path) -> None:
    names = list(trials(workspace(tmp_path)).values())
    lines = [f"{name},{loss}" for name, loss in zip(names, ("0.4", "0.1", "0.3", "0.2", "0.9"), strict=False)]
    write(tmp_path, {FILE: SWEEP + RESULTS, CSV: "trial,loss\n" + "\n".join(lines) + "\n"})
    render(tmp_path)
    assert records(tmp_path) == sorted([names[0], names[2], names[4]])  # the sixth has no result yet
    write(tmp_path, {FILE: SWEEP + RESULTS.replace("keep: 2", "goal: maximize, keep: 2")})
    render(tmp_path)
    assert records(tmp_path) == sorted([names[1], names[2], names[3]])


def test_results_may_be_saved_by_a_spreadsheet(tmp_path: Path) -> None:
    """Excel writes a byte order mark before the first column."""
    names = list(trials(workspace(tmp_path)).values())
    lines = "".join(f"{name},{number}\r\n" for number, name in enumerate(names[:3]))
    write(tmp_path, {FILE: SWEEP + RESULTS, CSV: f"\ufefftrial,loss\r\n{lines}"})
    render(tmp_path)
    assert records(tmp_path) == [names[2]]


def test_trials_that_lose_a_rung_stay_stopped(tmp_path: Path) -> None:
    """docs/sweeps.md: a trial that loses a rung stays out, whatever the others reach on the next one."""
    names = list(trials(workspace(tmp_path)).values())
    first = "".join(f"{name},1,{loss}\n" for name, loss in zip(names, (6, 5, 4, 3, 2, 1), strict=True))
    write(tmp_path, {FILE: SWEEP + RESULTS.replace("2", "3"), CSV: "trial,rung,loss\n" + first})
    render(tmp_path)
    assert records(tmp_path) == sorted(names[:3])
    second = "".join(f"{name},2,{loss}\n" for name, loss in zip(names[3:], (70, 90, 80), strict=True))
    write(tmp_path, {FILE: SWEEP + RESULTS.replace("2", "1"), CSV: "trial,rung,loss\n" + first + second})
    render(tmp_path)
    assert records(tmp_path) == sorted([*names[:3], names[4], names[5]])


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("trial,accuracy\n", f"{CSV}:1:1", "there is no column 'loss'"),
        ("", f"{CSV}:1:1", "there is no column 'trial'"),
        ("trial,loss\naaaaaaaa,1\n", f"{CSV}:2:1", "the sweep has no trial 'aaaaaaaa'"),
        ("trial,loss\n{0},1\n{0},much\n", f"{CSV}:3:1", "'much' is not a number"),
        ("trial,loss\n{0},nan\n", f"{CSV}:2:1", "'nan' is not a number"),
        (None, f"{FILE}:14:17", "there is no file specs/nlp/rates.csv"),
    ],
)
def test_unreadable_results_are_reported_at_their_line(
    text: str | None, place: str, words: str, tmp_path: Path
) -> None:
    name = next(iter(trials(workspace(tmp_path)).values()))
    write(tmp_path, {FILE: SWEEP + RESULTS})
    if text is not None:
        write(tmp_path, {CSV: text.format(name)})
    outcome = gangplan("validate", "-C", tmp_path)
    (found,) = [one for one in outcome.findings if one.severity == "error"]
    assert (found.place, found.message) == (place, words)


def test_unknown_trials_cannot_be_listed(tmp_path: Path) -> None:
    workspace(tmp_path, SWEEP + "stopped: [aaaaaaaa]\nretired: [rates-bbbbbbbb-00000000]\n")
    outcome = gangplan("validate", "-C", tmp_path)
    found = [(one.place, one.message) for one in outcome.findings if one.rule == "trial-unknown"]
    assert found == [
        (f"{FILE}:14:11", "the sweep has no trial 'aaaaaaaa'"),
        (f"{FILE}:15:11", "the sweep has no trial 'bbbbbbbb'"),
    ]


def test_retire_lists_finished_trials_then_removes_their_records(tmp_path: Path) -> None:
    root = workspace(tmp_path / "work")
    render(root)
    commit(root)
    ended, going = runs(root)[:2], runs(root)[2:]
    told = statuses(root, {**dict.fromkeys(ended, "Complete"), **dict.fromkeys(going, "")})
    assert plan(root, "--finished", told, "--cluster", "lab") == [("record", name) for name in ended]
    retire(root, "--finished", told, "--cluster", "lab", "--write")
    names = [name.split("-")[1] for name in ended]
    assert sorted(re.findall(r"[a-z2-7]{8}", (root / FILE).read_text().splitlines()[-1])) == sorted(names)
    merge(root)
    assert records(root) == sorted(names)
    assert plan(root) == [("remove", name) for name in ended]
    retire(root, "--write")
    assert "stopped" not in (root / FILE).read_text()
    merge(root)
    assert runs(root) == going
    assert plan(root) == []


def test_retire_ends_the_runs_of_an_earlier_template_then_removes_them(tmp_path: Path) -> None:
    root = workspace(tmp_path / "work")
    render(root)
    commit(root)
    before = runs(root)
    write(root, {FILE: SWEEP.replace("train.py", "train2.py")})
    merge(root)
    assert plan(root) == [("record", name) for name in before]
    retire(root, "--write")
    merge(root)
    assert len(runs(root)) == 12
    assert plan(root) == [("remove", name) for name in before]
    retire(root, "--write")
    merge(root)
    assert len(runs(root)) == 6


def test_new_results_alone_are_noticed(tmp_path: Path) -> None:
    """A change of the results file invalidates what earlier commands cached about the sweep."""
    names = list(trials(workspace(tmp_path)).values())
    first = "trial,loss\n" + "".join(f"{name},{loss}\n" for loss, name in enumerate(names[:2]))
    write(tmp_path, {FILE: SWEEP + RESULTS, CSV: first})
    render(tmp_path)
    assert records(tmp_path) == []
    write(tmp_path, {CSV: first + f"{names[2]},9\n"})
    render(tmp_path)
    assert records(tmp_path) == [names[2]]


BAD_RESULTS = {
    "missing": None,
    "empty": b"",
    "of an unknown trial": b"trial,loss\nxx,1\n",
    "without its column": b"trial,accuracy\n",
    "not UTF-8": b"trial,loss\n\xff,1\n",
}


@pytest.mark.parametrize("after", BAD_RESULTS)
@pytest.mark.parametrize("before", BAD_RESULTS)
def test_findings_about_results_are_never_stale(tmp_path: Path, before: str, after: str) -> None:
    """A command that may use what an earlier one cached reports the same as one that may not."""
    root = workspace(tmp_path)
    write(root, {FILE: SWEEP + RESULTS})
    said = []
    for state in (before, after):
        content = BAD_RESULTS[state]
        (root / CSV).unlink(missing_ok=True) if content is None else (root / CSV).write_bytes(content)
        said.append(gangplan("validate", "-C", root).err)
    assert said[1] == gangplan("validate", "-C", root, "--no-cache").err
    assert (said[0] == said[1]) == (before == after)
