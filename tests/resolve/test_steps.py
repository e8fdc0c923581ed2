"""Steps before the workers: something fetched once, or a command, each in its own pod."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gangplan.emit import is_run_file
from gangplan.source import load_objects
from tests import workspaces
from tests.resolve.test_containers import EXPORTER, REFERENCE
from tests.workspaces import gangplan, rendered, write

SPEC = "specs/nlp/filings.yaml"
OFFERED = "  huggingface: [{cidr: 10.50.0.0/24, ports: [443]}]\n"
CLUSTER = workspaces.CLUSTER.replace(
    "cpu: 60, memory: 240Gi}", "cpu: 60, memory: 240Gi, labels: {pool: cpu}}"
).replace("egress:\n", f"egress:\n{OFFERED}")
CATALOG = workspaces.CATALOG.replace("framework: torch\n", "framework: torch\n    fetches: [hf, s3]\n")
HUB = "{fetch: hf://example/llama-1b@8f5d2b1, to: /data/llama, secret: huggingface/token}"
BUCKET = "{fetch: lidar/2026, to: /data/scans}"
TOKENIZE = "{name: tokenize, command: [python, tokenize.py], image: exporter, cpu: 1, timeout: 5m}"


@pytest.fixture
def lab(root: Path) -> Path:
    """Create the small workspace with a claim that all workers write to, and an image that can fetch."""
    write(root, {"images/catalog.yaml": CATALOG + EXPORTER, "overlays/lab/cluster.yaml": CLUSTER})
    return root


def put(
    root: Path, *steps: str, more: str = "", image: str = "pytorch", data: str = "filings: /data"
) -> None:
    text = workspaces.SPEC.replace("openmpi", image) + f"data: {{{data}}}\n{more}"
    write(root, {SPEC: text + f"steps: [{', '.join(steps)}]\n"})


def told(root: Path, *steps: str, **more: str) -> list[tuple[str, str]]:
    put(root, *steps, **more)
    return [(one.rule, one.message) for one in gangplan("validate", "-C", root).findings]


def built(root: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Render, and return the JobSet's spec and all objects of the run."""
    outcome = gangplan("render", "-C", root)
    assert outcome.code == 0, outcome.err
    (text,) = (text for path, text in rendered(root).items() if is_run_file(path))
    bodies = load_objects(text)
    (runtime,) = (body for body in bodies if body["kind"] == "TrainingRuntime")
    return runtime["spec"]["template"]["spec"], bodies


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = job["template"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("image", ["pytorch", "openmpi"])
def test_steps_are_complete_before_anything_else_starts(lab: Path, image: str) -> None:
    fetch = HUB.replace("}", ", image: pytorch}")
    assert told(lab, fetch, TOKENIZE, image=image) == []
    spec, _ = built(lab)
    jobs = {one["name"]: one for one in spec["replicatedJobs"]}
    assert list(jobs)[:3] == ["step-1", "tokenize", "node"]
    waits = {name: [(d["name"], d["status"]) for d in one.get("dependsOn", ())] for name, one in jobs.items()}
    assert waits["step-1"] == []
    assert waits["tokenize"] == [("step-1", "Complete")]
    assert waits["node"] == [("tokenize", "Complete")]
    if image == "openmpi":
        assert waits["launcher"] == [("node", "Ready")]
    # 30 minutes until all pods are ready: five of them for the workers, five for the other step.
    deadlines = [jobs[name]["template"]["spec"]["activeDeadlineSeconds"] for name in ("step-1", "tokenize")]
    assert deadlines == [1200, 300]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["launcher" if image == "openmpi" else "node"]
    (box,) = pod_of(jobs["tokenize"])["containers"]
    assert (box["image"], box["args"]) == (REFERENCE, ["python", "tokenize.py"])
    assert box["resources"]["requests"] == {"cpu": "1", "memory": "32Gi"}
    assert pod_of(jobs["step-1"])["nodeSelector"] == {"kubernetes.io/os": "linux", "pool": "cpu"}
    assert box["volumeMounts"][1] == {"name": "claim-filings", "mountPath": "/data"}


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("[ssh, db, python, mesh.py]", ["command-hosts"]),
        ("[docker, run, mesh]", ["command-prefix"]),
        ("['python mesh.py']", ["command-one-word"]),
        ("[mpirun, -np, '4', mesh]", []),  # it stays in its own pod
    ],
)
def test_commands_of_steps_are_checked(lab: Path, command: str, rules: list[str]) -> None:
    assert [rule for rule, _ in told(lab, f"{{command: {command}}}")] == rules


def test_only_the_step_has_the_token_and_the_run_may_reach_the_source(lab: Path) -> None:
    put(lab, HUB)
    spec, bodies = built(lab)
    envs = {
        one["name"]: {e["name"] for e in pod_of(one)["containers"][0].get("env", ())}
        for one in spec["replicatedJobs"]
    }
    assert "HF_TOKEN" in envs["step-1"]
    assert "HF_TOKEN" not in envs["node"]
    (policy,) = (body for body in bodies if body["kind"] == "NetworkPolicy")
    assert "10.50.0.0/24" in json.dumps(policy["spec"]["egress"])


def test_a_bucket_is_fetched_with_the_keys_of_its_connection(lab: Path) -> None:
    put(lab, BUCKET)
    spec, _ = built(lab)
    step, node = spec["replicatedJobs"]
    (box,) = pod_of(step)["containers"]
    assert box["args"][3:] == ["s3://lidar/2026", "/data/scans"]
    assert box["resources"]["requests"] == {"cpu": "2", "memory": "8Gi"}
    keys = {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    assert keys <= {one["name"] for one in box["env"]}
    assert not keys & {one["name"] for one in pod_of(node)["containers"][0]["env"]}


@pytest.mark.parametrize(("prefix", "path"), [("/", ""), ("/2026/", "/2026"), ("q3", "/q3")])
def test_slashes_of_a_prefix_do_not_count(lab: Path, prefix: str, path: str) -> None:
    team = workspaces.TEAM.replace("bucket: lidar,", f"bucket: lidar, prefix: {prefix},")
    write(lab, {"specs/nlp/team.yaml": team})
    put(lab, BUCKET, data="filings: /data, lidar: env")
    spec, _ = built(lab)
    step, node = (pod_of(one)["containers"][0] for one in spec["replicatedJobs"])
    assert step["args"][3] == f"s3://lidar{path}/2026"
    assert {"name": "S3_URL", "value": f"s3://lidar{path}"} in node["env"]


CASES = {
    "no endpoint and no proxy": (
        "egress-unknown",
        "offers no endpoint 'internet'",
        HUB,
        {},
        (OFFERED, ""),
    ),
    "air-gapped": (
        "egress-internet",
        "air-gapped",
        HUB,
        {},
        (
            f"egress:\n{OFFERED}",
            "airGapped: true\nproxy: {http: 'http://10.1.1.1:80', https: 'http://10.1.1.1:80'}\negress:\n",
        ),
    ),
    "a claim of one node": (
        "fetch-folder",
        "only one node",
        HUB.replace("/data", "/notes"),
        {"data": "notes: /notes"},
        (),
    ),
    "no claim": ("fetch-folder", "is in no claim", HUB.replace("/data/llama", "/data2/llama"), {}, ()),
    "read-only": (
        "fetch-folder",
        "read-only",
        HUB.replace("/data", "/archive"),
        {"data": "archive: /archive"},
        (),
    ),
    "image that cannot": ("fetch-image", "image 'openmpi' can fetch", HUB, {"image": "openmpi"}, ()),
    "no such connection": (
        "fetch-source",
        "'lidr' is neither a connection of team nlp nor hf:",
        BUCKET.replace("lidar", "lidr"),
        {},
        (),
    ),
    "no such secret": ("secret-unknown", "'token'", HUB.replace("huggingface/token", "token/key"), {}, ()),
    "too long": ("step-timeout", "30m", TOKENIZE.replace("5m", "26m"), {}, ()),
    "no minute for each": (
        "step-timeout",
        "the run's timeout leaves 1m30s for 2 steps without a timeout",
        f"{TOKENIZE.replace(', timeout: 5m', '')}, {{command: [python, mesh.py]}}",
        {"more": "timeout: 90s\n"},
        (),
    ),
    "no time at all": (
        "step-timeout",
        "without five minutes for the workers leaves no time for 1 step",
        "{command: [python, mesh.py]}",
        {},
        ("teams:\n", "podsReadyTimeout: 5m\nteams:\n"),
    ),
    "pods of one gang": ("step-unusable", "volcano", TOKENIZE, {}, ("teams:\n", "gang: volcano\nteams:\n")),
    "name of a job of Trainer": (
        "step-unusable",
        "'model-initializer'",
        TOKENIZE.replace("tokenize,", "model-initializer,"),
        {},
        (),
    ),
    "too much for a node": ("pool-no-fit", "step 'tokenize'", TOKENIZE.replace("cpu: 1", "cpu: 61"), {}, ()),
}
NEAR = {
    "folder of the claim itself": HUB.replace("/data/llama", "/data"),
    "as long as there is room": TOKENIZE.replace("5m", "25m"),
    "as large as a node": TOKENIZE.replace("cpu: 1", "cpu: 60"),
    "name of nobody": TOKENIZE.replace("tokenize,", "initializer,"),
}


@pytest.mark.parametrize("case", CASES)
def test_impossible_steps_are_refused_with_a_reason(lab: Path, case: str) -> None:
    rule, words, step, more, change = CASES[case]
    if change:
        assert change[0] in CLUSTER
        write(lab, {"overlays/lab/cluster.yaml": CLUSTER.replace(*change)})
    text = [(a, b) for a, b in told(lab, step, **more) if a == rule and words in b]
    assert text, told(lab, step, **more)


@pytest.mark.parametrize("case", NEAR)
def test_steps_at_the_limit_are_accepted(lab: Path, case: str) -> None:
    assert told(lab, NEAR[case]) == []


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("{name: nothing}", "fetch or command"),
        ("{fetch: hf://a/b, command: [go], to: /data}", "not both"),
        ("{fetch: hf://a/b}", "needs a folder"),
        ("{command: [prog], to: /data}", "belongs to fetch"),
        ("{fetch: lidar, to: /data, secret: a/b}", "team.yaml"),
        ("{fetch: 's3://bucket/path', to: /data}", "fetch"),
    ],
)
def test_a_step_either_fetches_or_runs_a_command(lab: Path, step: str, words: str) -> None:
    put(lab, step)
    outcome = gangplan("validate", "-C", lab)
    assert outcome.code == 2
    assert words in outcome.err


HUGGING = """\
import json, pathlib, sys
def snapshot_download(name, repo_type, revision, local_dir):
    (pathlib.Path(local_dir) / "model.safetensors").write_text(json.dumps([name, repo_type, revision]))
    with open(pathlib.Path(__file__).parent / "asked", "a") as out:
        out.write("x")
"""
BOTO = """\
import pathlib
class Store:
    def get_paginator(self, name):
        return self
    def paginate(self, Bucket, Prefix):
        keys = ["2026/a.bin", "2026/b/c.bin", "2026/b/", "2026-old/d.bin"]
        yield {"Contents": [{"Key": one, "Size": 3} for one in keys if one.startswith(Prefix)]}
    def download_file(self, bucket, key, file):
        pathlib.Path(file).write_text("abc")
def client(kind):
    return Store()
"""


def fetch(lab: Path, step: str, folder: Path, shelf: Path) -> subprocess.CompletedProcess[str]:
    put(lab, step)
    spec, _ = built(lab)
    (box,) = pod_of(spec["replicatedJobs"][0])["containers"]
    words = [*box["args"][:-1], str(folder)]
    words[0] = sys.executable
    words = [word.replace("$$", "$") for word in words]
    shelf.mkdir(exist_ok=True)
    (shelf / "huggingface_hub.py").write_text(HUGGING)
    (shelf / "boto3.py").write_text(BOTO)
    command = [*box["command"], *words]
    return subprocess.run(
        command, env={"PYTHONPATH": str(shelf), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )


def test_fetched_data_is_not_fetched_again(lab: Path, tmp_path: Path) -> None:
    folder, shelf = tmp_path / "claim/llama", tmp_path / "shelf"
    for _ in range(2):
        done = fetch(lab, HUB, folder, shelf)
        assert done.returncode == 0, done.stderr
    assert json.loads((folder / "model.safetensors").read_text()) == ["example/llama-1b", "model", "8f5d2b1"]
    assert (shelf / "asked").read_text() == "x"
    assert "already" in done.stdout
    other = fetch(lab, HUB.replace("8f5d2b1", "main"), folder, shelf)
    assert other.returncode == 1
    assert "holds hf://example/llama-1b@8f5d2b1" in other.stderr


def test_an_interrupted_fetch_continues_and_keeps_other_files(lab: Path, tmp_path: Path) -> None:
    folder, shelf = tmp_path / "claim/scans", tmp_path / "shelf"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    refused = fetch(lab, BUCKET, folder, shelf)
    assert (refused.returncode, "no step has fetched" in refused.stderr) == (1, True)
    (folder / ".gangplan-fetching").write_text("s3://lidar/2026")
    done = fetch(lab, BUCKET, folder, shelf)
    assert done.returncode == 0, done.stderr
    held = {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}
    assert held == {"mine.txt", "a.bin", "b/c.bin", ".gangplan-fetched"}
    data = HUB.replace("hf://", "hf://datasets/")
    done = fetch(lab, data, tmp_path / "claim/data", shelf)
    assert json.loads((tmp_path / "claim/data/model.safetensors").read_text())[1] == "dataset"
