"""Which trials a sweep has, how they are named, and what makes a sweep invalid."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.rules.model import NOTE
from gangplan.spec.sweep_files import (
    SweepFile,
    build_sweep_trial_jobs,
    find_sweeps_among_spec_files,
    trial_names,
)
from tests.sweeps.files import FILE, SWEEP, workspace
from tests.workspaces import gangplan, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: Sweep\n"
REST = """\
maxConcurrent: 2
template:
  image: openmpi
  command: [python, train.py, "--lr=${{ parameters.lr }}"]
"""


def read(root: Path, text: str) -> SweepFile:
    """Write a sweep with this text and read it."""
    write(root, {FILE: text})
    return find_sweeps_among_spec_files(root, [(FILE, "nlp")])[FILE]


def values(root: Path, parameters: str, rest: str = REST) -> list[dict[str, str]]:
    """Return the settings of a sweep's trials, in order."""
    found = read(root, f"{HEAD}parameters: {parameters}\n{rest}")
    assert not any(one.is_error for one in found.findings)
    return [dict(one.trial.values) for one in build_sweep_trial_jobs(found)]


def test_a_grid_is_every_combination_and_floats_keep_their_text(tmp_path: Path) -> None:
    found = list(build_sweep_trial_jobs(read(tmp_path, SWEEP)))
    assert [dict(one.trial.values) for one in found] == [
        {"lr": lr, "batch": batch} for lr in ("1e-4", "3e-4", "1e-3") for batch in ("64", "128")
    ]
    spec = found[0].spec
    assert spec is not None
    assert spec.command == ("python", "train.py", "--lr=1e-4", "--batch", "64")


@pytest.mark.parametrize(
    "text", ["1e-4", "0.10", "007", "+5", "1_000", "0x10", "1.50", "true", "adam", '"64"']
)
def test_a_value_reaches_the_program_as_it_is_written(text: str, tmp_path: Path) -> None:
    (only,) = values(tmp_path, f"{{list: [{{lr: {text}}}]}}")
    assert only == {"lr": text.strip('"')}


def test_a_list_and_drawn_values_add_to_a_grid_without_repetitions(tmp_path: Path) -> None:
    drawn = "random: {samples: 3, seed: 1, of: {lr: [1e-4, 5e-4]}}"
    found = values(tmp_path, f"{{grid: {{lr: [1e-4, 3e-4]}}, list: [{{lr: 1e-2}}], {drawn}}}")
    assert [one["lr"] for one in found] == ["1e-4", "3e-4", "1e-2", "5e-4"]


def test_drawn_values_follow_from_the_seed_and_more_samples_only_append(tmp_path: Path) -> None:
    of = "of: {lr: {min: 1e-5, max: 1e-2, scale: log}}"
    ten = values(tmp_path, f"{{random: {{samples: 10, seed: 7, {of}}}}}")
    assert values(tmp_path, f"{{random: {{samples: 25, seed: 7, {of}}}}}")[:10] == ten
    assert values(tmp_path, f"{{random: {{samples: 10, seed: 8, {of}}}}}") != ten
    assert all(1e-5 <= float(one["lr"]) <= 1e-2 for one in ten)
    assert ten[:2] == [{"lr": "0.0001151"}, {"lr": "0.002062"}]  # must never change


def test_a_range_of_whole_numbers_draws_whole_numbers(tmp_path: Path) -> None:
    found = values(tmp_path, "{random: {samples: 60, seed: 3, of: {lr: {min: 2, max: 5}}}}")
    assert {one["lr"] for one in found} == {"2", "3", "4", "5"}


def test_a_placeholder_alone_keeps_the_type_of_its_value(tmp_path: Path) -> None:
    rest = REST + "  workers: ${{ parameters.lr }}\n"
    found = read(tmp_path, f"{HEAD}parameters: {{grid: {{lr: [2, 4]}}}}\n{rest}")
    assert [one.spec and one.spec.workers for one in build_sweep_trial_jobs(found)] == [2, 4]


def test_a_trial_knows_its_own_name(tmp_path: Path) -> None:
    rest = REST + "  env: {OUT: /data/${{ trial.name }}}\n"
    rest = rest.replace("/data/${{ trial.name }}", '"/data/${{ trial.name }}"')
    for one in build_sweep_trial_jobs(read(tmp_path, f"{HEAD}parameters: {{grid: {{lr: [2]}}}}\n{rest}")):
        assert one.spec is not None
        assert one.spec.env == {"OUT": f"/data/{one.trial.name}"}


@pytest.mark.parametrize(
    ("old", "new", "place", "rule", "words"),
    [
        (
            "parameters.lr }}",
            "parameters.rate }}",
            "10:37",
            "parameter-unknown",
            "there is no parameter 'rate'",
        ),
        ("${{ parameters.lr }}", "${{ lr }}", "10:37", "parameter-unknown", "'lr' names nothing"),
        ("${{ parameters.lr }}", "${{ parameters.lr", "10:37", "parameter-unknown", "never closed"),
        *(
            (
                "${{ parameters.lr }}",
                written,
                "10:37",
                "parameter-unknown",
                f"'{written}' stays as it is",
            )
            for written in ("{{ parameters.lr }}", "${parameters.lr}", "{parameters.lr}", "$(parameters.lr)")
        ),
        ("${{ parameters.lr }}", "{{ lr }}", "5:5", "parameter-unused", "nothing in the template uses"),
        ("batch: [64, 128]", "batch: [64], seed: [1]", "6:18", "yaml-syntax", ""),
        ("[64, 128]", "[64, 64.0]", "6:17", "parameter-twice", "64.0 is the same value as 64"),
        (
            "[1e-4, 3e-4, 1e-3]",
            "[1e-3, 3e-4, 0.001]",
            "5:22",
            "parameter-twice",
            "0.001 is the same value as 1e-3",
        ),
        (
            "  image: openmpi",
            "  queue: night\n  image: openmpi",
            "9:3",
            "sweep-template",
            "queue: is not a field",
        ),
        ("maxConcurrent: 2", "maxConcurrent: 0", "7:16", "spec-value", ""),
        ("maxConcurrent: 2", "maxConcurent: 2", "7:1", "spec-unknown-field", "did you mean 'maxConcurrent'"),
        ("workers: 2", "workers: ${{ parameters.lr }}", "11:12", "spec-type", "2 of 6 trials"),
        ("lr: [1e-4", "lr: [[1]", "5:10", "spec-value", "expected a text, a number, true or false"),
    ],
)
def test_each_mistake_is_reported_at_its_place(
    old: str, new: str, place: str, rule: str, words: str, tmp_path: Path
) -> None:
    assert old in SWEEP
    outcome = gangplan("validate", "-C", workspace(tmp_path, SWEEP.replace(old, new, 1)))
    found = {(one.place, one.rule): one.message for one in outcome.findings if one.severity == "error"}
    assert outcome.code == 2
    if words:
        assert words in found[f"{FILE}:{place}", rule], outcome.err
    else:
        assert any(one == rule for _, one in found), outcome.err


def test_an_unused_parameter_is_reported_with_a_way_to_use_it(tmp_path: Path) -> None:
    text = SWEEP.replace("    batch: [64, 128]", "    batch: [64, 128]\n    seed: [1, 2]")
    outcome = gangplan("validate", "-C", workspace(tmp_path, text))
    (found,) = [one for one in outcome.findings if one.severity == "error"]
    assert (found.place, found.rule) == (f"{FILE}:7:5", "parameter-unused")
    assert "--seed=${{ parameters.seed }}" in found.help


# Laws

NAMES = st.sampled_from(["lr", "batch", "seed"])
VALUES = st.lists(st.integers(0, 10**6), min_size=1, max_size=5, unique=True)
GRIDS = st.dictionaries(NAMES, VALUES, min_size=1)


def names(root: Path, grid: dict[str, list[int]]) -> list[str]:
    """Return the names of the trials of a grid."""
    used = " ".join(f"${{{{ parameters.{name} }}}}" for name in grid)
    text = f"{HEAD}parameters: {{grid: {grid}}}\nmaxConcurrent: 1\ntemplate:\n  command: python t.py {used}\n"
    found = read(root, text.replace("'", ""))
    assert not found.findings
    return list(trial_names(found))


@settings(max_examples=40, deadline=None)
@given(GRIDS, st.data())
def test_a_new_value_adds_trials_and_renames_none(
    tmp_path_factory: pytest.TempPathFactory, grid: dict[str, list[int]], data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("law")
    count = 1
    for values in grid.values():
        count *= len(values)
    name = data.draw(st.sampled_from(sorted(grid)))
    value = data.draw(st.integers(0, 10**6).filter(lambda one: one not in grid[name]))
    at = data.draw(st.integers(0, len(grid[name])))
    more = {**grid, name: [*grid[name][:at], value, *grid[name][at:]]}
    shuffled = {name: data.draw(st.permutations(values)) for name, values in reversed(grid.items())}
    before, after = names(root, grid), names(root, more)
    assert len(set(before)) == len(before) == count
    assert set(before) < set(after)
    assert len(after) == count // len(grid[name]) * (len(grid[name]) + 1)
    assert set(names(root, shuffled)) == set(before)


@pytest.mark.parametrize(
    ("given", "help"),
    [
        ("{lr: [1e-5, 3e-5]}", "Write parameters: {grid: {lr: [1e-5, 3e-5]}}."),
        ("{lr: [1e-5], opt: [adam, 'a, b']}", 'parameters: {grid: {lr: [1e-5], opt: [adam, "a, b"]}}.'),
        ("{batch: 64}", "Write parameters: {grid: {batch: [64]}}."),
        (
            "{lr: {min: 1e-5, max: 1e-2}}",
            "{random: {samples: 20, seed: 1, of: {lr: {min: 1e-5, max: 1e-2}}}}.",
        ),
        ("{gird: {lr: [1]}}", "Write grid: {lr: [1]}."),
        ("{grid: {lr: [1]}, batch: [64]}", "Write parameters: {grid: {lr: [1], batch: [64]}}."),
        ("{lr: {values: [1e-3, 2]}}", "Write parameters: {grid: {lr: [1e-3, 2]}}."),
        ("{lr: {value: 1e-3}}", "Write parameters: {grid: {lr: [1e-3]}}."),
        ("{lr: {min: 16, max: 65, step: 16}}", "Write parameters: {grid: {lr: [16, 32, 48, 64]}}."),
        ("{lr: {min: 0.1, max: 0.3, step: 0.1}}", "Write parameters: {grid: {lr: [0.1, 0.2, 0.3]}}."),
        ("{lr: {min: 1, max: 1000, step: 1}}", "Known fields: grid, list, random."),
        ("{lr: {min: 1, max: 2, step: 0}}", "Known fields: grid, list, random."),
        ("{lr: {min: 2, max: 1, step: 1}}", "Known fields: grid, list, random."),
        ("{lr: {min: true, max: 2, step: 1}}", "Known fields: grid, list, random."),
        ("{lr: {values: 3}}", "Known fields: grid, list, random."),
    ],
)
def test_values_outside_a_grid_get_a_help_that_shows_the_grid(tmp_path: Path, given: str, help: str) -> None:
    found = read(tmp_path, f"{HEAD}parameters: {given}\n{REST}").findings
    assert any(one.help.endswith(help) for one in found), [one.help for one in found]


JOB = "image: openmpi\ncommand: [python, a.py, '--lr=${{ parameters.lr }}']\n"
MOVED = '{image: openmpi, command: [python, a.py, "--lr=${{ parameters.lr }}"]'


@pytest.mark.parametrize(
    ("kind", "text", "says", "help"),
    [
        (
            "Sweep",
            JOB,
            "unknown field 'image'; the fields of the job belong in template",
            f"Write template: {MOVED}}}.",
        ),
        (
            "Sweep",
            f"{JOB}nodes: 4\n",
            "'workers' and the other fields of the job belong",
            f"{MOVED}, workers: 4}}.",
        ),
        (
            "Sweep",
            f"{JOB}nodes: 4\nworkers: 2\n",
            "the fields of the job belong in template",
            f"{MOVED}, workers: 2}}.",
        ),
        (
            "Sweep",
            f"workers: 2\nnodes: 4\n{JOB}",
            "the fields of the job belong",
            f"Write template: {{workers: 2, {MOVED[1:]}}}.",
        ),
        (
            "Sweep",
            f"{JOB}template: {{gpus: 1}}\n",
            "belong in template",
            "Move image and command into template:.",
        ),
        (
            "Sweep",
            f"{JOB}description: {'x' * 400}\nenv: {{A: {'x' * 300}}}\n",
            "belong",
            "Move image, command and env into template:.",
        ),
        (
            "Sweep",
            f"{JOB}schedule: {{cron: 0 3 * * *}}\n",
            "unknown field 'schedule'",
            "Remove it; a sweep runs each trial once.",
        ),
        (
            "Sweep",
            f"{JOB}parallelTrialCount: 2\n",
            "did you mean 'maxConcurrent'?",
            "Write maxConcurrent: 2.",
        ),
        ("Sweep", f"{JOB}parallelism: 2\n", "did you mean 'maxConcurrent'?", "Write maxConcurrent: 2."),
        (
            "Sweep",
            f"{JOB}colour: red\n",
            "unknown field 'colour'",
            "Remove it; gangplan explain Sweep lists the fields.",
        ),
        ("JobTemplate", JOB, "the fields of the job belong in job", f"Write job: {MOVED}}}."),
        (
            "JobTemplate",
            f"{JOB}team: nlp\n",
            "unknown field 'team'",
            "Remove it; the folder of a spec says whose it is.",
        ),
        (
            "JobTemplate",
            "params: {lr: {type: number}}\n",
            "did you mean 'parameters'?",
            "Write parameters: {lr: {type: number}}.",
        ),
    ],
)
def test_fields_of_the_job_outside_its_block_get_a_help_that_moves_them(
    root: Path, kind: str, text: str, says: str, help: str
) -> None:
    write(
        root,
        {"jobtemplates/a.yaml" if kind == "JobTemplate" else FILE: f"{HEAD.replace('Sweep', kind)}{text}"},
    )
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule.startswith("spec-")]
    assert [one for one in found if says in one.message and one.help.endswith(help)], found
    is_there = "belong in" in "".join(one.message for one in found)
    assert ("'template' is missing" in str(found), "'job' is missing" in str(found)).count(True) <= (
        not is_there
    )


def test_a_moved_job_is_a_sweep(root: Path) -> None:
    write(root, {FILE: f"{HEAD}parameters: {{lr: {{values: [1, 2]}}}}\nmaxConcurrent: 1\n{JOB}workers: 2\n"})
    helps = {one.help for one in gangplan("validate", "-C", root).findings if one.rule.startswith("spec-")}
    blocks = [help.removeprefix("Write ").removesuffix(".") for help in sorted(helps)]
    assert [block.split(":")[0] for block in blocks] == ["parameters", "template"]
    write(root, {FILE: "\n".join([f"{HEAD}maxConcurrent: 1", *blocks])})
    assert [one for one in gangplan("validate", "-C", root, FILE).findings if one.severity == "error"] == []


@pytest.mark.parametrize(
    ("of", "samples", "is_noted"),
    [
        ("lr: [1e-4, 5e-4]", 3, True),
        ("lr: [1e-4, 5e-4]", 2, False),
        ("lr: {min: 1, max: 2}", 9, False),
        ("lr: [1e-4, 5e-4], batch: [64, 128]", 5, True),
        ("lr: [1e-4, 5e-4], batch: [64, 128]", 4, False),
    ],
)
def test_more_samples_than_settings_are_noted(of: str, samples: int, is_noted: bool, tmp_path: Path) -> None:
    text = f"{HEAD}parameters: {{random: {{samples: {samples}, seed: 1, of: {{{of}}}}}}}\n"
    rest = (
        REST.replace("parameters.lr }}", "parameters.lr }}${{ parameters.batch }}") if "batch" in of else REST
    )
    found = read(tmp_path, text + rest)
    assert [one.severity for one in found.findings] == ([NOTE] if is_noted else [])
    assert found.sweep is not None
