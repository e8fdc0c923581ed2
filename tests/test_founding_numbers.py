"""The founding stories over time as they were written: what is accepted, with each of their numbers.

What they want refused is in test_user_stories.py. Names differ from the founding ones on purpose: trials are
named after their values instead of numbers, so that a new value renames none (decision 0031), and dates have
a time, so that a day can have two starts (decision 0034).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gangplan.source import load_objects
from tests.schedules.worlds import CATALOG, OFFER, SERVER
from tests.workspaces import gangplan, render, write

HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\n"
CLUSTER = f"""\
apiVersion: gangplan.dev/v1
kind: Cluster
versions: {{kubernetes: "1.34.4", trainer: "2.3.0", kueue: "0.19.2", gpuOperator: "25.10.0"}}
region: eu-central
location: on-prem
currency: USD
nodePools:
  cpu: {{count: 40, cpu: 64, memory: 512Gi, labels: {{pool: cpu}}}}
  a100: {{count: 60, cpu: 124, memory: 1900Gi, gpu: {{model: a100-80gb, count: 4}}, price: {{perGpuHour: "1.5625"}}, labels: {{pool: a100}}, taints: [{{key: gpu, effect: NoSchedule}}]}}
{SERVER}  s3: [{{cidr: 10.40.8.0/24, ports: [443]}}]
{OFFER}teams:
  autonomous-vehicles: {{queue: training, quota: {{cpu: {{cpu: 400}}, a100: {{gpus: 64}}}}, borrow: {{}}}}
  risk: {{queue: training, quota: {{cpu: {{cpu: 256}}}}, borrow: {{}}}}
  recommender: {{queue: training, quota: {{cpu: {{cpu: 256}}, a100: {{gpus: 48}}}}, borrow: {{}}}}
  chemistry: {{queue: training, quota: {{cpu: {{cpu: 100}}, a100: {{gpus: 128}}}}, borrow: {{}}}}
"""  # noqa: E501  one line per pool
TEAM = """\
apiVersion: gangplan.dev/v1
kind: Team
clusters: [lab]
claims:
  training-data: {accessModes: [ReadWriteMany]}
  checkpoints: {accessModes: [ReadWriteMany]}
connections:
  lidar-training-data: {endpoint: "https://s3.example.com", bucket: lidar-training-data, secret: s3}
secrets: [s3]
"""
TEAMS = ("autonomous-vehicles", "risk", "recommender", "chemistry")
LIDAR = (
    HEAD
    + """\
image: horovod
command: "horovodrun -np 64 python train_lidar.py"
workers: 16
gpus: 4
cpu: 32
memory: 128Gi
timeout: 12h
data: {lidar-training-data: env}
network: {rdma: auto, egress: [s3]}
priority: low
checkpoint: {to: checkpoints}
schedule: {cron: "0 22 * * SUN", timeZone: Europe/Berlin}
"""
)
MONTE_CARLO = (
    HEAD
    + """\
image: openmpi
command: [./simulate]
workers: 16
cpu: 8
memory: 32Gi
timeout: 4h
schedule: {cron: "0 0 * * *"}
"""
)
REC_HPO = """\
apiVersion: gangplan.dev/v1
kind: Sweep
parameters:
  grid:
    lr: [1e-4, 5e-4, 1e-3, 5e-3]
    emb-dim: [64, 128, 256, 512]
    l2: [1e-5, 1e-4, 1e-3]
maxConcurrent: 10
template:
  image: horovod
  command:
    - python
    - train.py
    - --lr=${{ parameters.lr }}
    - --emb-dim=${{ parameters.emb-dim }}
    - --l2=${{ parameters.l2 }}
  workers: 4
  gpus: 1
  memory: 32Gi
  timeout: 4h
  checkpoint: {to: checkpoints}
"""
PERCEPTION = (
    HEAD
    + """\
image: horovod
command: [python, train.py, --data-path, /mnt/data/nightly]
workers: 16
gpus: 2
cpu: 8
memory: 64Gi
timeout: 2h
data: {training-data: /mnt/data}
schedule: {cron: "0 2 * * *"}
"""
)
REGISTER = (
    HEAD
    + """\
image: openmpi
command: [./register]
workers: 1
memory: 4Gi
timeout: 30m
after: [perception-train]
model: {name: perception, version: "1"}
"""
)
PROTEIN = (
    HEAD
    + """\
image: openmpi
command: "mpirun -np 64 python simulate.py"
workers: 32
gpus: 2
cpu: 16
memory: 64Gi
env: {SIMULATION_STEPS: "10000000", PROTEIN_ID: ACE2}
network: {rdma: auto}
checkpoint: {to: checkpoints}
"""
)


def world(root: Path, files: dict[str, str]) -> Path:
    teams = {f"specs/{team}/team.yaml": TEAM for team in TEAMS}
    return write(
        root, {"overlays/lab/cluster.yaml": CLUSTER, "images/catalog.yaml": CATALOG, **teams, **files}
    )


def planned(root: Path, *flags: str) -> dict[str, Any]:
    outcome = gangplan("plan", "-C", root, "--format", "json", "--today", "2026-01-12", *flags)
    assert outcome.code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def totals(run: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return GPUs, CPU, GiB of memory and ranks of the workers, without the launcher, which gangplan adds."""
    worker, count = run["worker"], run["workers"]
    amounts = {name: str(value) for name, value in worker.items()}
    gpus = sum(int(value) for name, value in amounts.items() if "gpu" in name)
    return (
        gpus * count,
        int(amounts["cpu"]) * count,
        int(amounts["memory"].removesuffix("Gi")) * count,
        run["ranks"],
    )


def text_of(root: Path) -> str:
    out = gangplan("plan", "-C", root, "--today", "2026-01-12").out
    return re.sub(r" +", " ", out)


def objects(root: Path, job: str) -> list[dict[str, Any]]:
    render(root)
    files = sorted((root / "rendered/lab/runs").rglob(f"{job}-*.yaml"))
    return [body for file in files for body in load_objects(file.read_text(encoding="utf-8"))]


def kind(bodies: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (found,) = (body for body in bodies if body["kind"] == name)
    return found


def test_us_05_lidar_runs_each_week(tmp_path: Path) -> None:
    root = world(tmp_path, {"specs/autonomous-vehicles/lidar-perception-training.yaml": LIDAR})
    (run,) = planned(root)["runs"]
    assert totals(run) == (64, 512, 2048, 64)
    assert run["namespace"] == "autonomous-vehicles"
    text = text_of(root)
    assert "at most 768 GPU-hours (1200.00 USD)" in text
    assert "at most 1200.00 USD (64 GPUs x 1.5625 x 12h)" in text
    assert "lidar-perception-training-20260118-2100" in text
    cron = kind(objects(root, "lidar-perception-training"), "CronJob")
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    rows = gangplan("cost", "-C", root, "--format", "json").out
    assert '"1200.00"' in rows
    assert '"768"' in rows
    warned = [one.rule for one in gangplan("validate", "-C", root).findings]
    assert "rdma-fallback" in warned


def test_us_06_monte_carlo_runs_each_night(tmp_path: Path) -> None:
    root = world(tmp_path, {"specs/risk/monte-carlo.yaml": MONTE_CARLO})
    (run,) = planned(root)["runs"]
    assert totals(run) == (0, 128, 512, 16)
    assert run["slots"] == 1
    assert run["pool"] == "cpu"
    bodies = objects(root, "monte-carlo")
    assert "nvidia.com/gpu" not in str(bodies)
    assert "activeDeadlineSeconds: 14400" in kind(bodies, "ConfigMap")["data"]["run.yaml"]
    again = gangplan(
        "clone", "-C", root, "specs/risk/monte-carlo.yaml", "monte-carlo-64", "--set", "memory=64Gi"
    )
    assert again.code == 0, again.err
    runs = {one["spec"]: totals(one) for one in planned(root)["runs"]}
    assert runs["specs/risk/monte-carlo-64.yaml"] == (0, 128, 1024, 16)


def test_us_07_a_sweep_has_48_trials(tmp_path: Path) -> None:
    root = world(tmp_path, {"specs/recommender/rec-hpo.yaml": REC_HPO})
    document = planned(root)
    runs = document["runs"]
    assert len({one["name"] for one in runs}) == len(runs) == 48
    assert all(re.fullmatch(r"rec-hpo-[a-z2-7]{8}-[0-9a-f]{8}", one["name"]) for one in runs)
    assert {totals(one)[0] for one in runs} == {4}
    assert sum(totals(one)[0] for one in runs) == 192
    words = [one["command"][-3:] for one in runs]
    assert words[0] == ["--lr=1e-4", "--emb-dim=64", "--l2=1e-5"]
    assert words[-1] == ["--lr=5e-3", "--emb-dim=512", "--l2=1e-3"]
    (sweep,) = document["sweeps"]
    shown = {
        name: sweep[name] for name in ("trials", "maxConcurrent", "atOnce", "waves", "seconds", "gpusAtOnce")
    }
    assert shown == {
        "trials": 48,
        "maxConcurrent": 10,
        "atOnce": 10,
        "waves": 5,
        "seconds": 20 * 3600,
        "gpusAtOnce": 40,
    }
    assert (sweep["gpuHours"], sweep["cost"]["most"]) == ("768", "1200.00")


def test_us_07_adding_a_value_renames_no_trial(tmp_path: Path) -> None:
    root = world(tmp_path, {"specs/recommender/rec-hpo.yaml": REC_HPO})
    before = {one["name"] for one in planned(root)["runs"]}
    write(
        root,
        {"specs/recommender/rec-hpo.yaml": REC_HPO.replace("[64, 128, 256, 512]", "[32, 64, 128, 256, 512]")},
    )
    after = {one["name"] for one in planned(root)["runs"]}
    assert before < after
    assert len(after) == 60


def test_us_07_sweeps_are_limited_in_trials_and_by_quota(tmp_path: Path) -> None:
    """More than 500 trials are refused. A cap above the team's quota is reported, and plans use the quota."""
    root = world(tmp_path, {"specs/recommender/rec-hpo.yaml": REC_HPO})
    assert {one.severity for one in gangplan("validate", "-C", root).findings} <= {"note"}
    write(
        root,
        {"specs/recommender/rec-hpo.yaml": REC_HPO.replace("[1e-4, 5e-4, 1e-3, 5e-3]", str(list(range(42))))},
    )
    (found,) = (one for one in gangplan("validate", "-C", root).findings if one.severity == "error")
    assert (found.rule, "504 trials; lab allows 500" in found.message) == ("sweep-too-large", True), found
    write(root, {"specs/recommender/rec-hpo.yaml": REC_HPO.replace("maxConcurrent: 10", "maxConcurrent: 13")})
    (found,) = (one for one in gangplan("validate", "-C", root).findings if one.severity == "warning")
    assert found.rule == "sweep-slower"
    assert "12 trials run at once, not 13: the team's quota holds 48 GPUs" in found.message
    assert gangplan("validate", "-C", root, "--fail-on", "warning").code == 1


def test_us_11_perception_runs_each_night(tmp_path: Path) -> None:
    files = {"perception-train": PERCEPTION, "register": REGISTER}
    root = world(tmp_path, {f"specs/autonomous-vehicles/{name}.yaml": text for name, text in files.items()})
    runs = {one["spec"].rpartition("/")[2]: one for one in planned(root)["runs"]}
    assert totals(runs["perception-train.yaml"]) == (32, 128, 1024, 32)
    command = runs["perception-train.yaml"]["command"]
    assert command[:3] == ["mpirun", "-np", "32"], command
    assert command[-3:] == ["train.py", "--data-path", "/mnt/data/nightly"], command
    text = text_of(root)
    assert "perception-train-20260112-0200" in text
    assert "register-20260112-0200" in text  # once perception-train is complete
    assert "registers perception 1; if that fails, perception-train stays complete" in text
    bodies = objects(root, "perception-train")
    assert kind(bodies, "CronJob")["spec"]["schedule"] == "0 2 * * *"
    assert "activeDeadlineSeconds: 7200" in kind(bodies, "ConfigMap")["data"]["run.yaml"]


def test_us_12_two_simulations_fill_128_gpus_and_a_third_waits(tmp_path: Path) -> None:
    names = [f"protein-folding-sim-00{number}" for number in (1, 2, 3)]
    files = {name: PROTEIN.replace("ACE2", f"ACE{name[-1]}") for name in names}
    files["scoring"] = (
        MONTE_CARLO.replace("schedule", "# schedule").replace("cpu: 8", "cpu: 1") + f"after: [{names[0]}]\n"
    )
    root = world(tmp_path, {f"specs/chemistry/{name}.yaml": text for name, text in files.items()})
    runs = {one["spec"].rpartition("/")[2]: one for one in planned(root)["runs"]}
    run = runs[f"{names[0]}.yaml"]
    assert totals(run) == (64, 512, 2048, 64)
    assert "64" in run["command"][run["command"].index("-np") + 1]
    assert "protein-folding-sim-001 → scoring" in text_of(root)
    outcome = gangplan("simulate", "-C", root, "--cluster", "lab", "--format", "json")
    assert outcome.code == 0, outcome.err
    events = [one for one in json.loads(outcome.out)["events"] if "protein" in one["run"]]
    at_start = [one["run"] for one in events if one["what"] == "admitted" and one["time"] == 0]
    assert len(at_start) == 2
    assert len([one for one in events if one["what"] == "admitted"]) == 3
