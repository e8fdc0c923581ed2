"""A sweep from its file to rendered/: its runs, the queue that limits them, and the findings about them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests import workspaces
from tests.sweeps.files import FILE, SWEEP, runs, us_05, workspace
from tests.workspaces import CLUSTER, SPEC, gangplan, render, rendered, write

PLATFORM = "rendered/lab/platform/queues.yaml"


def objects(root: Path, kind: str) -> dict[str, dict[str, object]]:
    """Return the rendered objects of a kind, by name."""
    texts = [path.read_text() for path in sorted((root / "rendered").rglob("*.yaml"))]
    found = [body for text in texts for body in yaml.safe_load_all(text) if body["kind"] == kind]
    return {body["metadata"]["name"]: body for body in found}


def amounts(body: dict[str, object], field: str = "nominalQuota") -> dict[tuple[str, str], str]:
    """Return the amounts of a queue, by flavor and resource."""
    spec: dict[str, list[dict[str, list[dict[str, object]]]]] = body["spec"]  # type: ignore[assignment]
    return {
        (str(flavor["name"]), str(item["name"])): str(item[field])  # type: ignore[index, call-overload]
        for flavor in spec["resourceGroups"][0]["flavors"]
        for item in flavor["resources"]  # type: ignore[call-overload]
        if field in item
    }


def test_each_trial_is_a_run_with_its_values(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    assert len(runs(tmp_path)) == 6
    assert all(re.fullmatch(r"rates-[a-z2-7]{8}-[0-9a-f]{8}", name) for name in runs(tmp_path))
    jobs = objects(tmp_path, "TrainJob")
    told = {one["metadata"]["annotations"]["gangplan.dev/parameters"] for one in jobs.values()}  # type: ignore[index]
    assert told == {f"lr={lr} batch={batch}" for lr in ("1e-4", "3e-4", "1e-3") for batch in (64, 128)}
    for one in jobs.values():
        labels = one["metadata"]["labels"]  # type: ignore[index]
        assert labels["gangplan.dev/sweep"] == "rates"
        assert labels["kueue.x-k8s.io/queue-name"] == "sweep-rates"


def test_the_queue_allows_the_pods_of_maxconcurrent_trials_and_no_quota(tmp_path: Path) -> None:
    render(workspace(tmp_path))
    assert objects(tmp_path, "LocalQueue")["sweep-rates"]["spec"]["clusterQueue"] == "nlp.sweep-rates"  # type: ignore[index]
    queues, cohorts = objects(tmp_path, "ClusterQueue"), objects(tmp_path, "Cohort")
    mine = amounts(queues["nlp.sweep-rates"])
    # Two trials, each with a launcher and two workers.
    assert {key: value for key, value in mine.items() if value != "0"} == {
        ("cpu", "pods"): "2",
        ("a100", "pods"): "4",
    }
    for field in ("borrowingLimit", "lendingLimit"):
        assert set(amounts(queues["nlp.sweep-rates"], field).items()) == {
            (("cpu", "pods"), "0"),
            (("a100", "pods"), "0"),
        }
    for name in ("nlp", "nlp.sweep-rates"):
        assert queues[name]["spec"]["cohortName"] == "nlp.team"  # type: ignore[index]
    assert cohorts["nlp.team"]["spec"]["parentName"] == "training"  # type: ignore[index]


def test_what_leaves_with_a_sweep_is_removed_without_confirmation(tmp_path: Path) -> None:
    """Argo CD applies nothing of the platform while it waits for a person."""
    render(workspace(tmp_path))
    asks = {
        name
        for kind in ("ClusterQueue", "Cohort")
        for name, body in objects(tmp_path, kind).items()
        if "Prune=confirm" in str(body["metadata"])
    }
    assert asks == {"nlp", "training"}


def test_limits_of_the_team_move_to_its_cohort(tmp_path: Path) -> None:
    limits = "borrow: {a100: {gpus: 8}}, lend: {a100: {gpus: 4}}"
    team = f"nlp: {{queue: training, quota: {{a100: {{gpus: 16}}, cpu: {{cpu: 60}}}}, {limits}}}"
    text = CLUSTER.replace("nlp: {queue: training}", team)
    render(workspace(tmp_path, **{"overlays/lab/cluster.yaml": text}))
    cohort, queue = objects(tmp_path, "Cohort")["nlp.team"], objects(tmp_path, "ClusterQueue")["nlp"]
    gpus = ("a100", "nvidia.com/gpu")
    assert amounts(cohort)[gpus] == "0"
    assert amounts(cohort, "borrowingLimit")[gpus] == "8"
    assert amounts(cohort, "lendingLimit")[gpus] == "4"
    assert amounts(queue)[gpus] == "16"
    assert not amounts(queue, "lendingLimit")


def test_rendering_is_stable_and_removing_the_sweep_undoes_it(tmp_path: Path) -> None:
    plain = workspace(tmp_path / "plain")
    (plain / FILE).unlink()
    write(plain, {"specs/nlp/job.yaml": SPEC})
    render(plain)
    before = rendered(plain)
    write(plain, {FILE: SWEEP})
    render(plain)
    with_sweep = rendered(plain)
    assert gangplan("render", "--check", "-C", plain).code == 0
    (plain / FILE).unlink()
    render(plain)
    assert rendered(plain) == before != with_sweep


def test_a_finding_about_every_trial_is_reported_once(tmp_path: Path) -> None:
    text = SWEEP.replace("  checkpoint: {to: filings}\n", "")
    outcome = gangplan("validate", "-C", workspace(tmp_path, text))
    (found,) = [one for one in outcome.findings if one.rule == "preemptible-without-checkpoint"]
    assert "TrainJob/nlp/rates:" in found.message


def test_48_trials_run_ten_at_once(tmp_path: Path) -> None:
    """US-05 and US-07: 40 GPUs at most, which are the pods of ten trials, whatever the team's quota is."""
    outcome = render(us_05(tmp_path))
    assert "48 runs of 1 spec" in outcome.out
    assert len(runs(tmp_path)) == 48
    (queue,) = (body for name, body in objects(tmp_path, "ClusterQueue").items() if "sweep" in name)
    assert amounts(queue)["a100", "pods"] == "10", "ten workers of 4 GPUs"
    assert not [one for one in outcome.findings if one.rule.startswith("sweep")]


def test_a_quota_for_fewer_trials_than_requested_is_reported(tmp_path: Path) -> None:
    us_05(tmp_path)
    path = tmp_path / "overlays/lab/cluster.yaml"
    path.write_text(path.read_text().replace("count: 8, price", "count: 4, price"))
    outcome = gangplan("validate", "-C", tmp_path)
    (found,) = [one for one in outcome.findings if one.rule == "sweep-slower"]
    assert found.place == f"{FILE}:9:16"
    assert found.message.startswith("TrainJob/nlp/rates: 8 trials run at once, not 10")


def test_too_many_trials_are_refused_until_the_platform_raises_the_limit(
    tmp_path: Path,
) -> None:
    lists = ", ".join(f"{name}: [{', '.join(map(str, range(8)))}]" for name in ("lr", "batch", "seed"))
    text = SWEEP.replace(
        "lr: [1e-4, 3e-4, 1e-3]\n    batch: [64, 128]",
        lists.replace(", batch", "\n    batch").replace(", seed", "\n    seed"),
    )
    text = text.replace("workers: 2", 'workers: 2\n  env: {SEED: "${{ parameters.seed }}"}')
    outcome = gangplan("render", "-C", workspace(tmp_path, text))
    (found,) = [one for one in outcome.findings if one.severity == "error"]
    assert (found.rule, found.place) == ("sweep-too-large", f"{FILE}:3:1")
    assert found.message == "the sweep has 512 trials; lab allows 500 in one sweep"
    assert outcome.code == 1
    wide = CLUSTER.replace("teams:\n", "limits: {trials: 512, objects: {runs: 600}}\nteams:\n")
    write(tmp_path, {"overlays/lab/cluster.yaml": wide})
    assert gangplan("render", "-C", tmp_path).code == 0
    assert len(runs(tmp_path)) == 512


def test_a_workspace_without_sweeps_imports_no_sweep_code(tmp_path: Path) -> None:
    from tests.test_start import imported

    assert not [
        one
        for one in imported("validate", root=workspaces.stock(tmp_path / "workspace"))
        if ("sweep" in one and "rules" not in one) or one.endswith((".trials", ".placeholders"))
    ]


def test_a_name_too_long_for_trials_is_reported_with_one_that_fits(tmp_path: Path) -> None:
    text = SWEEP.replace("kind: Sweep\n", "kind: Sweep\nname: learning-rates-and-batch-sizes\n")
    outcome = gangplan("validate", "-C", workspace(tmp_path, text))
    (found,) = [one for one in outcome.findings if one.severity == "error"]
    assert (found.place, found.rule) == (f"{FILE}:3:7", "name-too-long")
    assert "sweep name 'learning-rates-and-batch-sizes' has 30 characters" in found.message
    assert "at most 26 fit" in found.message
    assert found.help == "Shorten it, for example to 'learning-rates-and-batch'."
    write(tmp_path, {FILE: text.replace("learning-rates-and-batch-sizes", "learning-rates-and-batch")})
    render(tmp_path)


def test_a_platform_queue_named_like_a_sweep_queue_is_an_error(tmp_path: Path) -> None:
    cluster = CLUSTER.replace("{queue: training}", "{queue: training, localQueues: {sweep-rates: {}}}")
    outcome = gangplan("validate", "-C", workspace(tmp_path, **{"overlays/lab/cluster.yaml": cluster}))
    assert [one for one in outcome.findings if one.severity == "error"], outcome.err
