"""Which pool a run is sent to, what is reported about the others, and for which cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import workspaces
from tests.workspaces import Shown, gangplan, write

GPUS = "{count: 4, cpu: 124, memory: 1900Gi, gpu: {model: %s, count: 8}, labels: {pool: %s}}"
TWO = f"  small: {GPUS}\n  large: {GPUS}\n" % ("a100-80gb", "small", "a100-40gb", "large")
QUOTA = "  nlp: {queue: training, quota: {small: {gpus: %d}, large: {gpus: %d}, cpu: {cpu: 60}}, borrow: {}}"
CPU_POOL = "  cpu: {labels: {pool: cpu}, count: 4, cpu: 60, memory: 240Gi}\n"
SPEC = workspaces.SPEC.replace("cpu: 8\nmemory: 32Gi\n", "")


def cluster(small: int, large: int) -> str:
    """Return the cluster of the small workspace with a CPU pool and two GPU pools, with a quota on each."""
    head, _, rest = workspaces.CLUSTER.partition("nodePools:\n")
    tail = rest[rest.index("topology:") :].replace("  nlp: {queue: training}", QUOTA % (small, large))
    return f"{head}nodePools:\n{CPU_POOL}{TWO}{tail}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Write the small workspace on that cluster, with 16 GPUs in each pool."""
    return write(workspaces.stock(tmp_path / "workspace"), {"overlays/lab/cluster.yaml": cluster(16, 16)})


def workers(root: Path, count: int, extra: str = "") -> Path:
    """Write a spec with this many workers of two GPUs each."""
    text = SPEC.replace("workers: 4", f"workers: {count}") + extra
    return write(root, {"specs/nlp/filings.yaml": text})


def told(root: Path, *arguments: str) -> list[Shown]:
    """Return the findings, except that some quota is unused."""
    found = gangplan("validate", "-C", root, *arguments).findings
    return [one for one in found if one.rule != "quota-unused"]


def pool(root: Path) -> str:
    """Return the pool on which the run is planned."""
    (line,) = [one for one in gangplan("plan", "-C", root).out.splitlines() if one.startswith("  pool")]
    return line.split()[1]


def test_a_run_uses_the_quota_of_one_pool_only(root: Path) -> None:
    (found,) = told(workers(root, 9))
    assert found.rule == "over-quota"
    assert "Requested 18 GPUs, but project quota is 16. Contact admin or reduce workers." in found.message
    assert (
        "Pool small can provide no more; there are 16 of large, too, but all workers of a run use one pool."
    ) in found.message


@pytest.mark.parametrize(
    ("small", "large", "count", "wanted"),
    [
        (16, 16, 8, "small"),  # exactly full: the first
        (16, 24, 8, "small"),
        (16, 24, 9, "large"),
        (8, 24, 12, "large"),  # exactly full: the second
        (8, 24, 4, "small"),
        (0, 8, 2, "large"),
        (16, 24, 13, "small"),  # nowhere: reported at the first
    ],
)
def test_the_first_pool_that_takes_the_whole_run_is_chosen(
    root: Path, small: int, large: int, count: int, wanted: str
) -> None:
    write(root, {"overlays/lab/cluster.yaml": cluster(small, large)})
    outcome = gangplan("validate", "-C", workers(root, count))
    told = [one.rule for one in outcome.findings if one.severity == "error"]
    assert told == (["over-quota"] if 2 * count > max(small, large) else [])
    assert pool(root) == wanted


@pytest.mark.parametrize("name", ["small", "large"])
def test_a_pool_that_the_choice_skips_would_refuse_the_run(root: Path, name: str) -> None:
    """The choice never skips a pool that would have taken the run."""
    write(root, {"overlays/lab/cluster.yaml": cluster(16, 24)})
    for count in (8, 9, 12, 13):
        named = gangplan(
            "validate", "-C", workers(root, count, f"placement: {{nodePool: {name}}}\n"), "--fail-on", "error"
        )
        takes = 2 * count <= {"small": 16, "large": 24}[name]
        assert (named.code == 0) == takes
        if takes and name == "small":
            assert pool(workers(root, count)) == "small"


def test_workers_without_gpus_never_move_to_a_gpu_pool(root: Path) -> None:
    text = SPEC.replace("gpus: 2", "gpus: 0\ncpu: 8")
    write(root, {"specs/nlp/filings.yaml": text.replace("workers: 4", "workers: 9")})
    assert pool(root) == "cpu"


@pytest.fixture
def several(root: Path) -> Path:
    """Send the spec to two clusters that differ in name and quota."""
    team = workspaces.TEAM.replace("clusters: [lab]", "clusters: [lab, annex]")
    return write(root, {"overlays/annex/cluster.yaml": cluster(8, 8), "specs/nlp/team.yaml": team})


def test_findings_name_the_cluster_of_a_spec_with_several(several: Path) -> None:
    found = told(workers(several, 9))
    assert [one.message.partition(" but ")[0] for one in found] == [
        "TrainJob/nlp/filings: on annex: Requested 18 GPUs,",
        "TrainJob/nlp/filings: on lab: Requested 18 GPUs,",
    ]


def test_a_finding_on_all_clusters_is_reported_once(several: Path) -> None:
    write(several, {"overlays/annex/cluster.yaml": cluster(16, 16)})
    (found,) = told(workers(several, 9))
    assert found.message.startswith("TrainJob/nlp/filings: Requested 18 GPUs,")


def test_findings_for_machines_name_their_cluster(several: Path) -> None:
    document = json.loads(gangplan("validate", "-C", workers(several, 5), "--format", "json").out)
    assert [
        (one["rule"], one["cluster"], one["clusters"])
        for one in document["findings"]
        if one["severity"] == "error"
    ] == [("over-quota", "annex", ["annex"])]
    write(several, {"specs/nlp/filings.yaml": SPEC + "data: {nothing: /data}\n"})
    document = json.loads(gangplan("validate", "-C", several, "--format", "json").out)
    assert [
        (one["cluster"], one["clusters"]) for one in document["findings"] if one["severity"] == "error"
    ] == [("", ["annex", "lab"])]
    log = json.loads(gangplan("validate", "-C", several, "--format", "sarif").out)
    assert log["runs"][0]["results"][0]["properties"] == {"clusters": ["annex", "lab"]}


def test_notes_on_unselected_clusters_are_not_reported(several: Path) -> None:
    text = cluster(8, 8).replace(', gpuOperator: "25.10.0"', "")
    write(several, {"overlays/annex/cluster.yaml": text})
    spec = "specs/nlp/filings.yaml"

    def notes(*arguments: str) -> list[tuple[str, str]]:
        return [(one.rule, one.place.split(":")[0]) for one in told(several, *arguments)]

    note = [("gpu-operator-unstated", "overlays/annex/cluster.yaml")]
    assert notes() == notes(spec) == notes(spec, "--cluster", "annex") == note
    assert notes(spec, "--cluster", "lab") == notes("--cluster", "lab") == []
    write(several, {spec: SPEC + "clusters: [lab]\n"})
    assert notes(spec) == []


def test_errors_in_unselected_cluster_files_are_reported(several: Path) -> None:
    write(several, {"overlays/annex/cluster.yaml": cluster(8, 8).replace("region: eu-central\n", "")})
    found = told(several, "specs/nlp/filings.yaml", "--cluster", "lab")
    assert {(one.severity, one.place.split(":")[0]) for one in found} == {
        ("error", "overlays/annex/cluster.yaml")
    }


FORGOT = SPEC.replace("gpus: 2\n", "memory: 320Gi\n")


def test_forgotten_gpus_are_reported_at_the_memory(root: Path) -> None:
    """Kueue gives a run without GPUs the first flavor that its pods do not exclude: no node of it is large
    enough."""
    text = cluster(16, 16).replace("labels: {pool: small}", "labels: {product: small}")
    text = text.replace("cpu: {cpu: 60}", "cpu: {cpu: 240}")
    write(root, {"overlays/lab/cluster.yaml": text, "specs/nlp/filings.yaml": FORGOT.replace("4", "2")})
    (found,) = [one for one in told(root) if one.severity == "error"]
    assert (found.rule, found.place) == ("no-node-fits", "specs/nlp/filings.yaml:6:9")
    assert found.message == (
        "TrainJob/nlp/filings: no node takes a worker: a node of pool cpu has 240Gi memory, a worker wants"
        " 320Gi; did you forget gpus?"
    )
    assert found.help == "Add gpus: 1 (or up to 8, a whole node of pool small), or write memory: 240Gi."


@pytest.mark.parametrize(
    ("extra", "wanted"),
    [
        ("", [("error", "no-node-fits")]),
        ("cpu: 8\n", [("error", "no-node-fits")]),
        ("checkpoint: {to: filings}\n", [("error", "no-node-fits")]),
        ("priority: low\n", [("error", "no-node-fits")]),
        ("gpus: 0\n", [("error", "no-node-fits"), ("warning", "admitted-elsewhere")]),
        ("gpus: 1\n", []),
    ],
)
def test_forgotten_gpus_are_one_finding(extra: str, wanted: list[tuple[str, str]], root: Path) -> None:
    """Where Kueue would admit such a run is a consequence. With `gpus: 0` it needs a label of the pool."""
    text = cluster(16, 16).replace("labels: {pool: small}", "labels: {product: small}")
    text = text.replace("cpu: {cpu: 60}", "cpu: {cpu: 240}")
    spec = FORGOT.replace("4", "2") + extra
    write(root, {"overlays/lab/cluster.yaml": text, "specs/nlp/filings.yaml": spec})
    found = told(root)
    assert sorted((one.severity, one.rule) for one in found) == wanted
    assert [one.place.split(":")[0] for one in found if one.severity == "error"] == [
        "specs/nlp/filings.yaml"
    ] * bool(wanted)
    assert any("did you forget gpus?" in one.message for one in found) == (
        bool(wanted) and extra != "gpus: 0\n"
    )


def test_forgotten_gpus_are_a_warning_if_the_run_would_start(root: Path) -> None:
    write(root, {"specs/nlp/filings.yaml": FORGOT})
    (found,) = told(root)
    assert (found.rule, found.severity) == ("gpus-forgotten", "warning")
    assert found.place == "specs/nlp/filings.yaml:6:9"
    assert found.help.endswith(", or gpus: 0 where none are wanted.")


@pytest.mark.parametrize("extra", ["gpus: 0\n", "placement: {nodePool: small}\n", "gpus: 1\n"])
def test_explicit_gpus_or_a_pool_allow_such_memory(root: Path, extra: str) -> None:
    write(root, {"specs/nlp/filings.yaml": FORGOT + extra})
    assert told(root) == []


# A CPU job and the pool of nodes without GPUs: words of the warning, and its line; empty if there is none.
SENT = {
    "disk that only they state": ("disk: 200Gi\n", "", "has no disk, a worker wants 200Gi; did you", 9),
    "more disk than others have": ("disk: 200Gi\n", "disk: 100Gi", "has 100Gi disk, a worker wants 200Gi", 9),
    "disk that others have": ("disk: 50Gi\n", "disk: 100Gi", "", 0),
    "scratch that others lack": (
        "scratch: 200Gi\n",
        "disk: 100Gi",
        "has 100Gi disk, a worker wants 200Gi",
        9,
    ),
    "devices": ("devices: {example.com/fpga: 2}\n", "", "has no example.com/fpga, a worker wants 2", 9),
    "few devices": (
        "devices: {example.com/fpga: 2}\n",
        "devices: {example.com/fpga: 1}",
        "has 1 example.com/fpga, a worker wants 2",
        9,
    ),
    "devices that others have": ("devices: {example.com/fpga: 2}\n", "devices: {example.com/fpga: 2}", "", 0),
    "huge pages": ("hugePages: {2Mi: 4Gi}\n", "", "has no hugepages-2Mi, a worker wants 4Gi", 9),
    "devices, without GPUs": ("devices: {example.com/fpga: 2}\ngpus: 0\n", "", "", 0),
    "devices of a pool": ("devices: {example.com/fpga: 2}\nplacement: {nodePool: small}\n", "", "", 0),
    "memory and disk": ("disk: 200Gi\n# m\n", "memory: 16Gi, disk: 100Gi", "a worker wants 32Gi; did you", 8),
}


@pytest.mark.parametrize("case", SENT)
def test_gpus_are_forgotten_where_disk_or_devices_need_their_nodes(case: str, root: Path) -> None:
    lines, plain, words, line = SENT[case]
    text = cluster(16, 16).replace(
        "count: 8}, labels: {pool: small}",
        "count: 8}, labels: {pool: small}, disk: 1600Gi, hugePages: {2Mi: 64Gi},"
        " devices: {example.com/fpga: 4}",
    )
    small = CPU_POOL.replace("memory: 240Gi", plain if "memory" in plain else f"memory: 240Gi, {plain}")
    text = text.replace(CPU_POOL, small.replace(", }", "}"))
    text = text.replace(QUOTA % (16, 16), "  nlp: {queue: training}")
    write(root, {"overlays/lab/cluster.yaml": text})
    write(root, {"specs/nlp/filings.yaml": workspaces.SPEC.replace("gpus: 2\n", "# no GPUs\n") + lines})
    found = told(root)
    assert [one.rule for one in found] == ["gpus-forgotten"] * bool(words)
    for one in found:
        assert words in one.message
        assert one.message.endswith("The run takes nodes of pool small and leaves their GPUs idle.")
        assert one.place.startswith(f"specs/nlp/filings.yaml:{line}:")
        assert one.help.startswith("Add gpus: 1 (or up to 8, a whole node of pool small), or write ")
