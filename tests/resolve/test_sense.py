"""Workers that could not train: ranks, memory and CPU that do not fit their GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.emit import is_run_file
from tests import workspaces
from tests.workspaces import gangplan, rendered

GPU = "gpu: {model: a100-80gb, mig: 1g.10gb, count: 56}"
MIG = f"  mig: {{count: 4, cpu: 124, memory: 1900Gi, {GPU}, labels: {{pool: mig}}}}\n"
CLUSTER = workspaces.CLUSTER.replace("topology:\n", f"{MIG}topology:\n")
OURS = ("ranks-share-gpus", "mig-slices", "memory-tiny", "cpu-tiny", "slots-not-gpus", "binding-shared")

# Fields of the spec, by image: the rule, or nothing; and words of its help.
CASES: list[tuple[str, str, str, str]] = [
    ("pytorch", "slots: 4", "ranks-share-gpus", "Omit slots"),
    ("horovod", "slots: 8", "ranks-share-gpus", "Omit slots"),
    ("deepspeed", "slots: 4", "ranks-share-gpus", "Omit slots"),
    ("openmpi", "slots: 4", "slots-not-gpus", "Omit slots"),
    ("pytorch", "slots: 1", "slots-not-gpus", "Omit slots"),
    ("pytorch", "slots: 2", "", ""),
    ("pytorch", 'slots: 4\nenv: {NCCL_MULTI_RANK_GPU_ENABLE: "1"}', "slots-not-gpus", ""),
    ("pytorch", "gpu: {model: a100-80gb, mig: 1g.10gb}", "mig-slices", "Write gpus: 1 and workers: 8,"),
    ("pytorch", "gpus: 1\ngpu: {model: a100-80gb, mig: 1g.10gb}", "", ""),
    ("openmpi", "gpu: {model: a100-80gb, mig: 1g.10gb}\nslots: 1", "mig-slices", "Write gpus: 1"),
    ("pytorch", "memory: 512M", "memory-tiny", "Write memory: 512Gi."),
    ("pytorch", "memory: 64Mi", "memory-tiny", "Write memory: 64Gi."),
    ("pytorch", "memory: 1900M", "memory-tiny", "Write memory: 1900Gi."),
    ("pytorch", "memory: 1950M", "memory-tiny", "Write memory: 475Gi."),
    ("pytorch", "memory: 2Gi", "", ""),
    ("pytorch", "cpu: 200m", "cpu-tiny", "Write cpu: 31."),
    ("pytorch", "cpu: 1999m", "cpu-tiny", "Write cpu: 31."),
    ("pytorch", "cpu: 2", "", ""),
    ("openmpi", "gpus: 0\nmemory: 512Mi\ncpu: 200m", "", ""),
    ("openmpi", "cpu: 2500m\nmpi: {bindTo: core}", "binding-shared", "Write cpu: 3, or remove bindTo."),
    ("openmpi", "gpus: 0\nslots: 8\ncpu: 2\nmpi: {bindTo: core}", "binding-shared", "Write cpu: 8, or"),
    ("openmpi", "gpus: 0\nslots: 8\ncpu: 8\nmpi: {bindTo: core}", "", ""),
    ("openmpi", "cpu: 2500m\nmpi: {bindTo: numa}", "", ""),
    ("openmpi", "cpu: 2500m", "", ""),
]


def written(image: str, fields: str) -> str:
    """Return the spec of the small workspace with some fields replaced."""
    names = {line.partition(":")[0] for line in fields.splitlines()}
    kept = [line for line in workspaces.SPEC.splitlines() if line.partition(":")[0] not in names]
    return "\n".join([*kept, fields, ""]).replace("image: openmpi", f"image: {image}")


@pytest.mark.parametrize(("image", "fields", "rule", "help"), CASES)
def test_amounts_that_do_not_fit_the_gpus_are_reported(
    image: str, fields: str, rule: str, help: str, root: Path
) -> None:
    files = {"specs/nlp/filings.yaml": written(image, fields), "overlays/lab/cluster.yaml": CLUSTER}
    outcome = gangplan("validate", "-C", workspaces.write(root, files))
    found = [one for one in outcome.findings if one.rule in OURS]
    assert {one.rule for one in found} == {rule} - {""}, outcome.err
    assert all(help in one.help for one in found)


def test_slices_of_another_model_are_named(root: Path) -> None:
    """The help asked for the very slices that the spec has."""
    cluster = CLUSTER.replace(GPU, GPU.replace("a100-80gb", "a100-40gb"))
    spec = written("pytorch", "gpus: 1\ngpu: {model: a100-80gb, mig: 1g.10gb}")
    files = {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": cluster}
    (found,) = gangplan("validate", "-C", workspaces.write(root, files)).findings
    assert (found.rule, found.help) == ("pool-no-fit", "Write model: a100-40gb.")


def test_a_pool_without_the_slices_is_replaced_by_one_with_them(root: Path) -> None:
    spec = written("pytorch", "gpus: 1\ngpu: {mig: 1g.10gb}\nplacement: {nodePool: a100}")
    files = {"specs/nlp/filings.yaml": spec, "overlays/lab/cluster.yaml": CLUSTER}
    (found,) = gangplan("validate", "-C", workspaces.write(root, files)).findings
    assert (found.rule, found.help) == ("pool-no-fit", "Name another pool: mig.")


def test_default_amounts_are_not_reported(root: Path) -> None:
    spec = workspaces.SPEC.replace("cpu: 8\n", "").replace("gpus: 2", "gpus: 8")
    outcome = gangplan("validate", "-C", workspaces.write(root, {"specs/nlp/filings.yaml": spec}))
    assert "cpu-tiny" not in outcome.err


@pytest.mark.parametrize("image", ["openmpi", "pytorch"])
def test_workers_without_gpus_see_none_of_their_node(image: str, root: Path) -> None:
    """CUDA images set NVIDIA_VISIBLE_DEVICES=all."""
    fields = "gpus: 0\nslots: 1\nplacement: {nodePool: a100}"
    workspaces.write(root, {"specs/nlp/filings.yaml": written(image, fields)})
    workspaces.render(root)
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert text.count(b"name: NVIDIA_VISIBLE_DEVICES") == 1
    workspaces.write(root, {"specs/nlp/filings.yaml": written(image, "gpus: 2")})
    workspaces.render(root)
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert text.count(b"name: NVIDIA_VISIBLE_DEVICES") == 0


def test_workers_with_other_nvidia_devices_see_them(root: Path) -> None:
    """The container's own value would override that of the device plugin."""
    pool = "labels: {pool: a100}, devices: {nvidia.com/gpu.shared: 4}}"
    cluster = workspaces.CLUSTER.replace("labels: {pool: a100}}", pool)
    fields = "gpus: 0\nslots: 1\nplacement: {nodePool: a100}\ndevices: {nvidia.com/gpu.shared: 1}"
    files = {"specs/nlp/filings.yaml": written("pytorch", fields), "overlays/lab/cluster.yaml": cluster}
    workspaces.render(workspaces.write(root, files))
    (text,) = [text for path, text in rendered(root).items() if is_run_file(path)]
    assert b"nvidia.com/gpu.shared" in text
    assert b"NVIDIA_VISIBLE_DEVICES" not in text


SHARED = "gpu: {model: slice, resource: nvidia.com/gpu.shared, count: 32}"
STATED = "gpu: {model: slice, shared: true, count: 32}"


@pytest.mark.parametrize(
    ("pool", "image", "fields", "is_told"),
    [
        (SHARED, "pytorch", "gpus: 4", True),
        (STATED, "pytorch", "gpus: 1", True),  # two workers on one node
        (STATED, "horovod", "gpus: 2", True),
        (STATED, "pytorch", "gpus: 1\nworkers: 1", False),
        (STATED, "openmpi", "gpus: 2", False),
        (STATED.replace("true", "false"), "pytorch", "gpus: 4", False),
        (STATED, "pytorch", 'gpus: 4\nenv: {NCCL_MULTI_RANK_GPU_ENABLE: "1"}', False),
    ],
)
def test_ranks_on_shared_gpus_are_reported(
    pool: str, image: str, fields: str, is_told: bool, root: Path
) -> None:
    more = f"  slices: {{count: 4, cpu: 124, memory: 1900Gi, {pool}, labels: {{pool: slices}}}}\n"
    cluster = workspaces.CLUSTER.replace("topology:\n", f"{more}topology:\n")
    text = written(image, fields + "\ngpu: {model: slice}")
    files = {"specs/nlp/filings.yaml": text, "overlays/lab/cluster.yaml": cluster}
    outcome = gangplan("validate", "-C", workspaces.write(root, files))
    found = [one for one in outcome.findings if one.rule == "ranks-share-gpus"]
    assert len(found) == is_told, outcome.err
    assert all("the GPUs of pool 'slices' are shared" in one.message for one in found)
    assert all("Use a pool with whole GPUs (a100, a100-spot), or" in one.help for one in found)


POOL = "  a100: {count: 4, cpu: 124, memory: 1900Gi, gpu: {model: a100-80gb, count: 8}, labels: {pool: a100}}"
# Fields of the spec, what pool a100 states -> the help; empty if the network is fast enough.
NETWORKS: dict[str, tuple[str, str, str]] = {
    "32 GPUs at 1 Gbit/s": ("gpus: 8", "count: 4, networkGbps: 1", "Use fewer nodes, or another cluster."),
    "16 GPUs at 1 Gbit/s": ("gpus: 4", "count: 4, networkGbps: 1", ""),
    "32 GPUs at 10 Gbit/s": ("gpus: 8", "count: 4, networkGbps: 10", ""),
    "nothing is stated": ("gpus: 8", "count: 4", ""),
    "8 nodes at 9 Gbit/s": (
        "workers: 8\ngpus: 2\nplacement: {nodePool: a100}",
        "count: 8, networkGbps: 9",
        "",
    ),
    "16 nodes at 10 Gbit/s": ("workers: 16\ngpus: 8", "count: 16, networkGbps: 10", "Use fewer nodes"),
    "16 nodes at 25 Gbit/s": ("workers: 16\ngpus: 8", "count: 16, networkGbps: 25", ""),
    "RDMA carries the traffic": (
        "gpus: 8\nnetwork: {rdma: required}",
        "count: 4, networkGbps: 1, rdma: {resource: rdma/ib, count: 8}",
        "",
    ),
    "another pool is faster": (
        "gpus: 8\nplacement: {nodePool: a100}",
        "count: 4, networkGbps: 1, labels: {pool: slow}}\n  fast: {networkGbps: 100, count: 4",
        "Name a pool with RDMA or a faster network (fast), or use fewer nodes.",
    ),
}


@pytest.mark.parametrize("case", NETWORKS)
def test_many_nodes_need_a_fast_network(case: str, root: Path) -> None:
    fields, pool, help = NETWORKS[case]
    assert POOL in workspaces.CLUSTER
    line = POOL.replace("count: 4", pool, 1)
    if "fast:" in pool:  # the slow pool has the same nodes
        slow, _, fast = line.partition("}\n")
        line = f"{slow}, cpu: 124, memory: 1900Gi, gpu: {{model: a100-80gb, count: 8}}}}\n{fast}"
    cluster = workspaces.CLUSTER.replace(POOL, line)
    files = {"specs/nlp/filings.yaml": written("pytorch", fields), "overlays/lab/cluster.yaml": cluster}
    outcome = gangplan("validate", "-C", workspaces.write(root, files))
    found = [one for one in outcome.findings if one.rule == "network-slow"]
    assert bool(found) == bool(help), outcome.err
    assert all(one.help.startswith(help) for one in found)
    assert not [one for one in outcome.errors() if one[1].startswith("spec-")], outcome.err


# Fields of the spec -> fields of the launcher that are reported.
LAUNCHERS: dict[str, tuple[str, list[str]]] = {
    "64 workers, 64Mi": ("workers: 64\nlauncher: {memory: 64Mi}", ["memory"]),
    "64 workers, 100m and 64Mi": ("workers: 64\nlauncher: {cpu: 100m, memory: 64Mi}", ["cpu", "memory"]),
    "64 workers, a quarter": ("workers: 64\nlauncher: {cpu: 1, memory: 2Gi}", []),
    "64 workers, nothing stated": ("workers: 64", []),
    "16 workers": ("workers: 16\nlauncher: {cpu: 100m, memory: 64Mi}", []),
    "17 workers": ("workers: 17\nlauncher: {cpu: 499m}", ["cpu"]),
    "ranks of its own": ("workers: 64\nlauncher: {runsRanks: true}", []),
}


@pytest.mark.parametrize("case", LAUNCHERS)
def test_a_launcher_that_is_tiny_for_its_workers_is_reported(case: str, root: Path) -> None:
    fields, names = LAUNCHERS[case]
    spec = written("openmpi", f"gpus: 0\ncpu: 1\nmemory: 1Gi\n{fields}")
    outcome = gangplan("validate", "-C", workspaces.write(root, {"specs/nlp/filings.yaml": spec}))
    found = [one for one in outcome.findings if one.rule == "launcher-small"]
    assert [one.help for one in found] == [f"Remove launcher.{name}." for name in names], outcome.err


@pytest.mark.parametrize(
    ("image", "fields", "is_told"),
    [
        ("pytorch", "workers: 1", False),
        ("pytorch", "workers: 1\ngpus: 1", True),
        ("pytorch", "workers: 1\ngpus: 0\nslots: 4", False),
        ("openmpi", "workers: 1", True),  # a launcher for ranks that need none
        ("openmpi", "workers: 2", False),
    ],
)
def test_one_worker_without_a_launcher_may_have_several_ranks(
    image: str, fields: str, is_told: bool, root: Path
) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": written(image, fields)})
    found = gangplan("validate", "-C", root).findings
    assert ("workers-one" in [one.rule for one in found]) is is_told
