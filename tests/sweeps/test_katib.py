"""`gangplan pipeline katib`: an Experiment whose trials are the runs that the sweep would start."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gangplan.source import load_objects
from tests.sweeps.files import FILE, SWEEP, US_05, us_05, workspace
from tests.workspaces import SPEC, gangplan, render, rendered, write

RANDOM = SWEEP.replace(
    """  grid:
    lr: [1e-4, 3e-4, 1e-3]
    batch: [64, 128]
""",
    """  random:
    samples: 20
    seed: 7
    of: {lr: {min: 1.0e-5, max: 0.01, scale: log}, batch: {min: 32, max: 256}, optimizer: [adam, sgd]}
""",
).replace('"${{ parameters.batch }}"]', '"${{ parameters.batch }}", "${{ parameters.optimizer }}"]')
NAMED = SWEEP.replace('"--batch"', '"--out=/tmp/${{ trial.name }}", "--batch"').replace(
    "  workers: 2\n", '  workers: 2\n  env: {RATE: "${{ parameters.lr }}"}\n'
)
NAMESPACE_FILE = {
    "name": "katib-namespace",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}
Object = dict[str, Any]


def export(root: Path, *flags: str) -> list[Object]:
    """Return the objects that a sweep is exported as."""
    outcome = gangplan("pipeline", "katib", FILE, *flags, "-C", root)
    assert outcome.code == 0, outcome.err
    return list(load_objects(outcome.out))


def experiment(root: Path, *flags: str) -> Object:
    """Return the specification of the Experiment alone."""
    found: Object = export(root, *flags)[-1]
    return found


def start(objects: list[Object], values: dict[str, str], name: str) -> dict[str, Object]:
    """Return the containers of ranks and of workers of a trial, as Katib and Trainer make them."""
    (runtime,) = (one for one in objects if one["kind"] == "TrainingRuntime")
    template = objects[-1]["spec"]["trialTemplate"]
    assert {one["name"] for one in template["trialParameters"]} <= {*values, "trial.name"}

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: fill(one) for key, one in value.items()}
        if isinstance(value, list):
            return [fill(one) for one in value]
        if isinstance(value, str):
            for key, text in {**values, "trial.name": name}.items():
                value = value.replace(f"${{trialParameters.{key}}}", text)
        return value

    trainer = fill(template["trialSpec"]["spec"]["trainer"])
    found = {}
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
        if "labels" in job["template"].get("metadata", {}):
            env = {one["name"]: one for one in container.get("env", ())}
            env |= {one["name"]: one for one in trainer.get("env", ())}
            container = {**container, "args": trainer["args"], "env": list(env.values())}
        found[job["name"]] = container
    return found


def values_of(container: Object, name: str) -> dict[str, str]:
    """Return the variables of a container, as the kubelet expands them."""
    texts = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    return {key: text.replace("$(GANGPLAN_RUN)", name) for key, text in texts.items()}


def test_every_trial_starts_as_the_sweep_would_start_it(tmp_path: Path) -> None:
    root = us_05(tmp_path)
    objects = export(root, "--metric", "loss")
    render(root)
    runs = [list(load_objects(data.decode())) for path, data in rendered(root).items() if "/rates-" in path]
    lists = {one["name"]: one["feasibleSpace"]["list"] for one in objects[-1]["spec"]["parameters"]}
    assert len(runs) == 48
    seen = set()
    for setting in product(*lists.values()):
        values = dict(zip(lists, setting, strict=True))
        text = " ".join(f"{key}={value}" for key, value in values.items())
        (run,) = (
            one for one in runs if one[-1]["metadata"]["annotations"]["gangplan.dev/parameters"] == text
        )
        own = run[-1]["metadata"]["name"].rpartition("-")[0]  # the trial, without the hash of the run
        (runtime,) = (one for one in run if one["kind"] == "TrainingRuntime")
        trial = start(objects, values, own)
        for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
            (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
            other = trial[job["name"]]
            assert values_of(other, own) == values_of(container, own)
            assert NAMESPACE_FILE in other["volumeMounts"]
            mounts = [one for one in other["volumeMounts"] if one["name"] != "katib-namespace"]
            other = {**other, "volumeMounts": mounts}
            assert {**other, "env": 0, "args": 0, "command": 0} == {
                **container,
                "env": 0,
                "args": 0,
                "command": 0,
            }
            if job["name"] == "launcher":
                assert other["args"] == container["args"]
                seen.add(tuple(other["args"]))
    assert len(seen) == 48


def test_a_grid_keeps_the_texts_of_its_values_and_the_limit_of_the_sweep(tmp_path: Path) -> None:
    spec = experiment(us_05(tmp_path), "--metric", "loss")["spec"]
    assert spec["objective"] == {"type": "minimize", "objectiveMetricName": "loss"}
    assert spec["algorithm"] == {"algorithmName": "grid"}
    assert (spec["parallelTrialCount"], spec["maxTrialCount"], spec["maxFailedTrialCount"]) == (10, 48, 48)
    assert spec["parameters"][0] == {
        "name": "lr",
        "parameterType": "categorical",
        "feasibleSpace": {"list": ["1e-5", "3e-5", "1e-4", "3e-4"], "distribution": "uniform"},
    }
    trial = spec["trialTemplate"]["trialSpec"]
    assert "name" not in trial["metadata"]
    assert "namespace" not in trial["metadata"]
    assert trial["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"


def test_ranges_stay_ranges(tmp_path: Path) -> None:
    spec = experiment(workspace(tmp_path, RANDOM), "--metric", "accuracy", "--goal", "maximize")["spec"]
    assert spec["objective"]["type"] == "maximize"
    assert spec["algorithm"] == {
        "algorithmName": "random",
        "algorithmSettings": [{"name": "random_state", "value": "7"}],
    }
    assert [(one["parameterType"], one["feasibleSpace"]) for one in spec["parameters"]] == [
        ("double", {"min": "1e-05", "max": "0.01", "distribution": "logUniform"}),
        ("int", {"min": "32", "max": "256", "distribution": "uniform"}),
        ("categorical", {"list": ["adam", "sgd"], "distribution": "uniform"}),
    ]


def test_the_metric_of_the_results_is_the_objective(tmp_path: Path) -> None:
    results = "results: {file: ./rates.csv, metric: accuracy, goal: maximize, keep: 2}\n"
    root = workspace(tmp_path, SWEEP + results, **{"specs/nlp/rates.csv": "trial,accuracy\n"})
    assert experiment(root)["spec"]["objective"] == {"type": "maximize", "objectiveMetricName": "accuracy"}
    assert experiment(root, "--algorithm", "tpe")["spec"]["algorithm"] == {"algorithmName": "tpe"}


def test_names_and_variables_of_a_trial_are_its_own(tmp_path: Path) -> None:
    objects = export(workspace(tmp_path, NAMED), "--metric", "loss")
    template = objects[-1]["spec"]["trialTemplate"]
    assert template["trialParameters"][-1] == {"name": "trial.name", "reference": "${trialSpec.Name}"}
    trial = start(objects, {"lr": "1e-4", "batch": "64"}, "rates-ece5e5aa-x7k2m9pq")
    assert "--out=/tmp/rates-ece5e5aa-x7k2m9pq" in trial["launcher"]["args"]
    values = values_of(trial["launcher"], "rates-ece5e5aa-x7k2m9pq")
    assert values["RATE"] == "1e-4"
    assert values["CHECKPOINT_DIR"] == "/checkpoints/rates-ece5e5aa-x7k2m9pq"
    assert "RATE" not in values_of(trial["node"], "")  # ranks get it from the launcher
    assert [*trial["launcher"]["args"]].count("RATE") == 1


def test_pods_of_trials_reach_each_other_and_katib_alone(tmp_path: Path) -> None:
    objects = export(us_05(tmp_path), "--metric", "loss")
    own, metrics, asked = (one["spec"] for one in objects if one["kind"] == "NetworkPolicy")
    name = objects[-1]["metadata"]["name"]
    label = {"gangplan.dev/run": name}
    assert own["podSelector"]["matchLabels"] == metrics["podSelector"]["matchLabels"] == label
    (runtime,) = (one for one in objects if one["kind"] == "TrainingRuntime")
    for job in runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        assert label.items() <= job["template"]["spec"]["template"]["metadata"]["labels"].items()
    port = [{"protocol": "TCP", "port": 6789}]
    assert (metrics["policyTypes"], metrics["egress"][0]["ports"]) == (["Egress"], port)
    # The pod that chooses values is named after the Experiment, and inherits its labels.
    assert asked["podSelector"]["matchLabels"] == {"katib.kubeflow.org/suggestion": name}
    assert (asked["policyTypes"], asked["ingress"][0]["ports"]) == (["Ingress"], port)
    assert not label.items() <= objects[-1]["metadata"]["labels"].items()


def test_variables_of_setup_containers_have_no_parameters(tmp_path: Path) -> None:
    setup = "  setup: [{name: fetch, command: [sh, -c, env]}]\n"
    root = workspace(tmp_path, NAMED + setup)
    outcome = gangplan("pipeline", "katib", FILE, "--metric", "loss", "-C", root)
    assert (outcome.code, "env of container 'fetch' in pods '" in outcome.err) == (2, True)
    assert export(workspace(tmp_path, SWEEP + setup), "--metric", "loss")


def test_trials_of_torch_state_the_arguments_of_workers(tmp_path: Path) -> None:
    torch = SWEEP.replace("image: openmpi", "image: pytorch").replace(
        "  gpus: 1\n", "  gpus: 1\n  placement: {spread: pack}\n"
    )
    objects = export(workspace(tmp_path, torch), "--metric", "loss")
    trial = start(objects, {"lr": "1e-4", "batch": "64"}, "rates-x")
    assert {*trial} == {"node"}
    assert "--lr=1e-4" in " ".join(trial["node"]["args"])
    labels = objects[-1]["spec"]["trialTemplate"]["primaryPodLabels"]
    assert labels["jobset.sigs.k8s.io/replicatedjob-name"] == "node"
    terms = [one for one in walk(objects) if "topologyKey" in one]
    assert [one["matchLabelKeys"] for one in terms] == [["jobset.sigs.k8s.io/jobset-name"]]


def walk(value: Any) -> Iterator[Object]:
    """Yield every mapping of some objects."""
    if isinstance(value, dict):
        yield value
        for one in value.values():
            yield from walk(one)
    elif isinstance(value, list):
        for one in value:
            yield from walk(one)


@pytest.mark.parametrize("value", ["'{\"a\": 1}'", "'a\\b'", "100$", '"a\\nb"'])
def test_values_that_katib_would_break_are_refused(value: str, tmp_path: Path) -> None:
    root = workspace(tmp_path, SWEEP.replace("[64, 128]", f"[64, {value}]"))
    outcome = gangplan("pipeline", "katib", FILE, "--metric", "loss", "-C", root)
    assert (outcome.code, outcome.out) == (2, "")
    assert "batch has the value" in outcome.err


def test_a_grid_has_no_more_trials_than_combinations(tmp_path: Path) -> None:
    lists = RANDOM.replace("{min: 1.0e-5, max: 0.01, scale: log}", "[1, 2]").replace(
        "{min: 32, max: 256}", "[3]"
    )
    spec = experiment(workspace(tmp_path, lists), "--metric", "loss", "--algorithm", "grid")["spec"]
    assert spec["maxTrialCount"] == 4
    far = experiment(workspace(tmp_path, RANDOM.replace("seed: 7", f"seed: {2**32 + 7}")), "--metric", "loss")
    assert far["spec"]["algorithm"]["algorithmSettings"][0]["value"] == "7"


def test_other_values_make_another_experiment_and_another_limit_does_not(tmp_path: Path) -> None:
    def name(text: str) -> str:
        write(tmp_path, {FILE: text})
        return str(experiment(tmp_path, "--metric", "loss")["metadata"]["name"])

    workspace(tmp_path, SWEEP)
    before = name(SWEEP)
    assert name(SWEEP.replace("maxConcurrent: 2", "maxConcurrent: 3")) == before
    assert name(SWEEP.replace("[64, 128]", "[64, 256]")) != before
    assert name(SWEEP.replace("workers: 2", "workers: 3")) != before


def test_files_of_experiments_are_compared(tmp_path: Path) -> None:
    root = us_05(tmp_path)
    command = ("pipeline", "katib", FILE, "--metric", "loss", "-C", root, "-o", root / "katib")
    assert gangplan(*command, "--check").code == 1
    assert gangplan(*command).out == f"wrote {root}/katib/lab-nlp-rates.yaml\n"
    assert gangplan(*command, "--check").code == 0
    write(root, {FILE: US_05.replace("[32, 64, 128]", "[32, 64]")})
    stale = gangplan(*command, "--check")
    assert stale.code == 1
    assert "gangplan pipeline katib specs/nlp/rates.yaml --metric loss -o" in stale.out


@pytest.mark.parametrize(
    ("change", "flags", "words"),
    [
        (("", ""), (), "--metric is missing"),
        (("", ""), ("--metric", ""), "--metric '' is not the name of a metric"),
        (("", ""), ("--metric", "a`\nkind: Secret"), r"--metric 'a`\nkind: Secret' is not"),
        (
            ("  grid:\n    lr", "  list: [{lr: 1, batch: 2}]\n  grid:\n    lr"),
            ("--metric", "a"),
            "from a list of trials",
        ),
        (
            ("workers: 2", 'workers: 2\n  workdir: "/data/${{ parameters.lr }}"'),
            ("--metric", "a"),
            "specs/nlp/rates.yaml: trials of an Experiment share workdir (12:12)",
        ),
        (
            ("gpus: 1", 'gpus: 1\n  timeout: "${{ parameters.batch }}m"'),
            ("--metric", "a"),
            "trials of an Experiment share timeout (13:12)",
        ),
    ],
)
def test_what_no_experiment_can_be_is_refused(
    change: tuple[str, str], flags: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    root = workspace(tmp_path, SWEEP.replace(*change) if change[0] else SWEEP)
    outcome = gangplan("pipeline", "katib", FILE, *flags, "-C", root)
    assert outcome.code in (1, 2)
    assert words in outcome.err
    assert outcome.out == ""


def test_a_grid_of_ranges_and_a_plain_job_are_refused(tmp_path: Path) -> None:
    root = workspace(tmp_path, RANDOM, **{"specs/nlp/plain.yaml": SPEC})
    told = gangplan("pipeline", "katib", FILE, "--metric", "a", "--algorithm", "grid", "-C", root)
    assert (told.code, "a grid has lists, and lr has a range" in told.err) == (2, True)
    told = gangplan("pipeline", "katib", "specs/nlp/plain.yaml", "--metric", "a", "-C", root)
    assert (told.code, "specs/nlp/plain.yaml is not a sweep" in told.err) == (2, True)
