"""The founding documents' tables of certified combinations with Horovod: 120 of TensorFlow, 80 of PyTorch."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from pathlib import Path

from tests import workspaces
from tests.workspaces import gangplan

FRAMEWORKS = {"tensorflow": ("2.10", "2.11", "2.12"), "pytorch": ("1.13", "2.0")}
MPIS = {
    "OpenMPI": 'mpi: {implementation: OpenMPI, version: "4.1.8"}',
    "IntelMPI": 'mpi: {implementation: IntelMPI, version: "2021.13", setup: /opt/intel/oneapi/setvars.sh}',
}
WORKERS, GPUS = (1, 2, 4, 8, 16), (1, 2, 4, 8)
SPEC = """\
apiVersion: gangplan.dev/v1
kind: TrainingJob
image: {image}
command: [python, train.py]
workers: {workers}
gpus: {gpus}
memory: 64Gi
"""


def image_of(framework: str, version: str, mpi: str) -> str:
    return f"{framework}-{version.replace('.', '-')}-{mpi.lower()}"


def combinations() -> dict[str, tuple[str, str, int, int]]:
    """Return every combination by the name of its job: image, MPI, workers, GPUs of each."""
    found = {}
    for framework, versions in FRAMEWORKS.items():
        for version, mpi, workers, gpus in itertools.product(versions, MPIS, WORKERS, GPUS):
            image = image_of(framework, version, mpi)
            found[f"{image}-{workers}-{gpus}"] = (image, mpi, workers, gpus)
    return found


def workspace(folder: Path, gpu: str = "a100-80gb") -> Path:
    """Write a workspace with all combinations; its catalog certifies their images on one model of GPUs."""
    lines = ["apiVersion: gangplan.dev/v1", "kind: ImageCatalog", "requirements: {tier: certified}", "tiers:"]
    lines += [f"- {{tier: certified, framework: horovod, mpi: {mpi}, gpus: [{gpu}]}}" for mpi in MPIS]
    lines += ["images:"]
    for image in dict.fromkeys(one[0] for one in combinations().values()):
        mpi = next(text for name, text in MPIS.items() if image.endswith(name.lower()))
        digest = hashlib.sha256(image.encode()).hexdigest()
        lines += [f"  {image}:", f"    repository: registry.example.com/horovod/{image}"]
        lines += [f"    digest: sha256:{digest}", "    framework: horovod", f"    {mpi}"]
    files = workspaces.STOCK | {"images/catalog.yaml": "\n".join([*lines, ""])}
    files["overlays/lab/cluster.yaml"] = workspaces.WIDE_CLUSTER
    del files["specs/nlp/filings.yaml"]
    for name, (image, mpi, workers, gpus) in combinations().items():
        licence = "mpi: {licenseAcknowledged: true}\n" if mpi == "IntelMPI" else ""
        files[f"specs/nlp/{name}.yaml"] = SPEC.format(image=image, workers=workers, gpus=gpus) + licence
    return workspaces.write(folder, files)


def test_the_tables_have_120_and_80_combinations() -> None:
    names = list(combinations())
    counts = [sum(name.startswith(framework) for name in names) for framework in FRAMEWORKS]
    assert counts == [120, 80]


def test_each_combination_is_rendered_and_starts_its_ranks(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    planned = json.loads(gangplan("plan", "--format", "json", "-C", root).out)["runs"]
    runs = {Path(one["spec"]).stem: one for one in planned}
    assert runs.keys() == combinations().keys()
    done = gangplan("render", "-C", root)
    assert done.code == 0, done.err[:2000]
    assert [one for one in done.findings if one.rule == "image-tier"] == []
    for name, (_, mpi, workers, gpus) in combinations().items():
        one = runs[name]
        flag = "-np" if mpi == "OpenMPI" else "-n"
        assert one["command"][:3] == ["mpirun", flag, str(workers * gpus)], name
        text = (root / "rendered" / one["file"]).read_text()
        assert re.search(rf"\bnumNodes: {workers}\b", text, re.M), name
        assert re.search(rf"\bnumProcPerNode: {gpus}\b", text, re.M), name
        assert re.search(rf'\bnvidia.com/gpu: "?{gpus}"?[,}}\n]', text, re.M), name


def test_another_gpu_is_reported_as_untested(tmp_path: Path) -> None:
    done = gangplan("validate", "--no-cache", "-C", workspace(tmp_path, gpu="v100-32gb"))
    told = [one for one in done.findings if one.rule == "image-tier"]
    assert len(told) == 200, done.err[:1000]
    assert {one.severity for one in told} == {"warning"}
    assert all("untested" in one.message for one in told)
