"""`gangplan import azureml`: command jobs in the shape of azureml-examples, written for these tests.

Fields are compared with the schemas of azure-ai-ml where it is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_SOURCE
from tests import plain
from tests.imports.sources import AZUREML, home, imported
from tests.workspaces import REPOSITORY, write

PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: two-steps
jobs:
  prepare:
    command: python prepare.py --out ${{outputs.clean}}
    environment: {image: registry.example.com/vision/prepare:1}
    outputs: {clean: {type: uri_folder}}
  train:
    type: command
    command: python train.py --data ${{inputs.clean}}
    environment: {image: registry.example.com/vision/train:1}
    inputs: {clean: "${{parent.jobs.prepare.outputs.clean}}"}
  score: {component: ./score.yml}
"""


def read(root: Path, text: str, **answers: object) -> Batch:
    return imported(root, "azureml", text, "job.yml", **answers)


def entries(batch: Batch) -> dict[str, tuple[str, str]]:
    return {one.name: (one.state, one.to or one.why) for one in batch.imported[0].draft.work.entries()}


def test_a_command_job_becomes_a_spec(tmp_path: Path) -> None:
    (one,) = read(tmp_path, AZUREML).imported
    assert one.draft.values == {
        "description": "A classifier of images. (imported from AzureML vision-train (job.yml))",
        "labels": {"migrated-from": "azureml", "project": "vision"},
        "image": "acpt-pytorch-2-2-cuda12-1",
        "command": [
            "python",
            "train.py",
            "--data",
            "/inputs/images",
            "--epochs",
            "10",
            "--out",
            "/outputs/model",
        ],
        "workers": 2,
        "gpus": 8,
        "gpu": {"model": "a100-80gb"},
        "data": {"vision-images": "/inputs/images", "vision-train-model": "/outputs/model"},
        "env": {"NCCL_DEBUG": "INFO"},
        "placement": {"nodePool": "a100"},
        "timeout": "2h",
    }
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences
    assert "# Trains the model; ask the vision group.\napiVersion:" in one.text


def test_a_curated_environment_is_an_image_of_microsoft(tmp_path: Path) -> None:
    found = {one.path[1]: one.value for one in read(tmp_path, AZUREML).suggestions if one.path[0] == "images"}
    assert found["acpt-pytorch-2-2-cuda12-1"]["repository"] == (
        "mcr.microsoft.com/azureml/curated/acpt-pytorch-2.2-cuda12.1"
    )


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ("type: pytorch, process_count_per_instance: 8", "type: mpi, process_count_per_instance: 4", "slots", 4),
        ("instance_type: Standard_ND96amsr_A100_v4, ", "", "gpus", 8),
        ("Standard_ND96amsr_A100_v4", "Standard_DS3_v2", "cpu", 3),
        ("  epochs: 10\n", "  epochs: {type: integer, default: 7}\n", "command", ["python", "train.py", "--data", "/inputs/images", "--epochs", "7", "--out", "/outputs/model"]),
        ("--epochs ${{inputs.epochs}}", "$[[--epochs ${{inputs.unset}}]]", "command", ["python", "train.py", "--data", "/inputs/images", "--out", "/outputs/model"]),
        ("limits: {timeout: 7200}", "queue_settings: {priority: high}", "priority", "high"),
        ("    type: uri_folder\n    path: azureml://datastores/vision/paths/images", "    type: uri_file\n    path: azureml://datastores/vision/paths/a.csv", "command", ["python", "train.py", "--data", "/inputs/images/a.csv", "--epochs", "10", "--out", "/outputs/model"]),
    ],
)  # fmt: skip
def test_fields_become_those_of_a_spec(tmp_path: Path, old: str, new: str, field: str, value: object) -> None:
    assert old in AZUREML
    assert read(tmp_path, AZUREML.replace(old, new)).imported[0].draft.values[field] == value


@pytest.mark.parametrize(
    ("stated", "added"),
    [
        ("{type: integer, optional: true}", []),
        ("{type: integer, optional: true, description: of the generator}", []),
        ("{type: uri_folder, optional: true, mode: ro_mount}", []),
        ("{type: integer, optional: true, default: 0}", ["--seed", "0"]),
        ("{type: string, optional: true, default: ''}", ["--seed", ""]),
        ("{type: boolean, optional: true, default: false}", ["--seed", "false"]),
        ("3", ["--seed", "3"]),
        ("null", []),
    ],
)
def test_a_part_is_there_if_its_input_has_a_value(tmp_path: Path, stated: str, added: list[str]) -> None:
    """Azure ML leaves out $[[...]] with an optional input that has neither a value nor a default."""
    text = AZUREML.replace("  epochs: 10\n", f"  seed: {stated}\n").replace(
        "--epochs ${{inputs.epochs}}", "$[[--seed '${{inputs.seed}}']]"
    )
    batch = read(tmp_path, text)
    (one,) = batch.imported
    assert one.draft.values["command"][4:-2] == added
    assert "seed" not in str(one.draft.values["data"])
    assert not [one for one in batch.everything if "inputs.seed" in one.message]


def test_a_required_input_without_a_value_is_asked_about(tmp_path: Path) -> None:
    batch = read(tmp_path, AZUREML.replace("  epochs: 10\n", "  epochs: {type: integer}\n"))
    assert "nothing says what ${{inputs.epochs}} is" in [one.message for one in batch.everything]


def test_variables_in_variables_need_no_value(tmp_path: Path) -> None:
    text = AZUREML.replace("NCCL_DEBUG: INFO", "CACHE: $HOME/cache")
    assert read(tmp_path, text).imported[0].draft.values["env"] == {"CACHE": "$HOME/cache"}


def test_tensorflow_starts_once_per_worker(tmp_path: Path) -> None:
    text = AZUREML.replace(
        "type: pytorch, process_count_per_instance: 8", "type: tensorflow, worker_count: 2"
    )
    found = {one.path[1]: one.value for one in read(tmp_path, text).suggestions if one.path[0] == "images"}
    assert found["acpt-pytorch-2-2-cuda12-1"]["framework"] == "tensorflow"


def test_jobs_that_are_not_runs_are_refused(tmp_path: Path) -> None:
    for kind in ("spark", "automl", "parallel"):
        (tmp_path / kind).mkdir()
        batch = read(tmp_path / kind, f"type: {kind}\ntrial: {{command: python a.py}}\n")
        assert [one.rule for one in batch.everything] == [IMPORT_SOURCE]
    ray = read(tmp_path, AZUREML.replace("type: pytorch, process_count_per_instance: 8", "type: ray"))
    assert "its distribution is ray" in ray.everything[0].message


def test_steps_of_a_pipeline_become_specs_that_share_a_claim(tmp_path: Path) -> None:
    batch = read(tmp_path, PIPELINE)
    first, second = (one.draft.values for one in batch.imported)
    assert first["data"] == {"prepare-clean": "/outputs/clean"}
    assert second["data"] == {"prepare-clean": "/inputs/clean"}
    assert second["command"] == ["python", "train.py", "--data", "/inputs/clean"]
    messages = [(one.rule, one.where.line) for one in batch.findings]
    assert (IMPORT_SOURCE, 14) in messages
    assert any(rule == IMPORT_ASKED for rule, _ in messages)


COMPONENTS = """\
type: pipeline
inputs:
  epochs: 20
  corpus: {type: uri_folder, path: "azureml:corpus@latest"}
jobs:
  train:
    type: command
    component: %s
    compute: azureml:a100
    inputs: {epochs: "${{parent.inputs.epochs}}", corpus: "${{parent.inputs.corpus}}"}
    resources: {instance_count: 3}
    environment_variables: {MODE: fast}
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: trainer
version: 4
inputs:
  corpus: {type: uri_folder}
  epochs: {type: integer, default: 1}
  rate: {type: number, default: 0.5}
outputs: {model: {type: uri_folder}}
environment: {image: registry.example.com/vision/train:1}
environment_variables: {MODE: slow, DEPTH: "2"}
resources: {instance_count: 1, shm_size: 2g}
command: python train.py --data ${{inputs.corpus}} --epochs ${{inputs.epochs}} --rate ${{inputs.rate}} --out ${{outputs.model}}
"""


@pytest.mark.parametrize("place", ["./parts/train.yml", "file:parts/train.yml"])
def test_a_step_is_its_component_with_the_pipeline_s_values_over_it(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / "sources", {"pipeline.yml": COMPONENTS % place, "parts/train.yml": COMPONENT})
    batch = read_import_batch(
        SOURCE_KINDS["azureml"], [folder / "pipeline.yml"], home(tmp_path / "workspace"), {}
    )
    judge_import_batch(batch, tmp_path / "workspace")
    (one,) = batch.imported
    values = one.draft.values
    assert values["command"] == [
        *("python", "train.py", "--data", "/inputs/corpus", "--epochs", "20", "--rate", "0.5"),
        *("--out", "/outputs/model"),
    ]
    assert (values["workers"], values["env"]) == (3, {"MODE": "fast", "DEPTH": "2"})
    assert values["data"] == {"corpus-corpus": "/inputs/corpus", "train-model": "/outputs/model"}
    assert one.draft.name == "migrated-train"
    states = {
        (entry.where.file.rpartition("/")[2], entry.name): entry.state for entry in one.draft.work.entries()
    }
    assert states["train.yml", "resources.instance_count"] == "dropped"
    assert states["train.yml", "environment.image"] == "mapped"
    assert "asked" not in states.values()
    assert one.is_right, one.findings


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("azureml:trainer@latest", "the step train is in azureml:trainer@latest"),
        ("./none.yml", "the step train is in ./none.yml"),
        ("./loop.yml", "the step train is in ./loop.yml"),
    ],
)
def test_missing_components_are_reported(tmp_path: Path, place: str, why: str) -> None:
    folder = write(tmp_path, {"pipeline.yml": COMPONENTS % place, "loop.yml": "type: pipeline\njobs: {}\n"})
    batch = read_import_batch(
        SOURCE_KINDS["azureml"], [folder / "pipeline.yml"], home(tmp_path / "workspace"), {}
    )
    assert [one.message for one in batch.findings] == [why]


def test_steps_of_other_kinds_are_refused_with_a_reason(tmp_path: Path) -> None:
    batch = read(
        tmp_path, "type: pipeline\njobs: {look: {type: automl}, tune: {type: sweep, trial: ./a.yml}}\n"
    )
    messages = [one.message for one in batch.everything]
    assert "no program of yours" in messages[0]
    assert "its trial is in ./a.yml" in messages[1]


INNER = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json
type: pipeline
name: twice
inputs: {epochs: {type: integer, default: 1}, corpus: {type: uri_folder}}
jobs:
  first: {type: command, component: "azureml:trainer@latest", inputs: {epochs: "${{parent.inputs.epochs}}", corpus: "${{parent.inputs.corpus}}"}}
"""


def test_components_of_a_registry_are_found_by_their_files(tmp_path: Path) -> None:
    """A pipeline that is a component has its steps imported, with the values from the outer one."""
    kept = "azureml://registries/azureml/components/twice/versions/0.2.1"
    files = {"pipeline.yml": COMPONENTS % kept, "trainer.yml": COMPONENT, "twice.yml": INNER}
    folder = write(tmp_path / "sources", files)
    batch = read_import_batch(SOURCE_KINDS["azureml"], [folder], home(tmp_path / "workspace"), {})
    judge_import_batch(batch, tmp_path / "workspace")
    (one,) = batch.imported
    assert one.draft.name == "migrated-train-first"
    command = list(one.draft.values["command"])
    assert command[: command.index("--rate")] == [
        *("python", "train.py", "--data", "/inputs/corpus", "--epochs", "20")
    ]
    files_told = {entry.where.file.rpartition("/")[2] for entry in one.draft.work.entries()}
    assert files_told == {"pipeline.yml", "trainer.yml", "twice.yml"}
    assert one.is_right, one.findings


SEARCH = """\
$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
display_name: rates-of-a-very-long-name-for-a-search
sampling_algorithm: %s
trial:
  command: python train.py --rate ${{search_space.rate}} --kind ${{search_space.kind}} --epochs ${{inputs.epochs}}
  environment: {image: registry.example.com/vision/train:1}
inputs: {epochs: 3}
search_space:
  rate: %s
  kind: {type: choice, values: [rbf, linear]}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 6, max_concurrent_trials: 2, trial_timeout: 600}
"""


@pytest.mark.parametrize(
    ("how", "space", "parameters"),
    [
        ("random", "{type: uniform, min_value: 0.1, max_value: 0.9}", {"random": {"samples": 6, "seed": 1, "of": {"rate": {"min": 0.1, "max": 0.9}, "kind": ["rbf", "linear"]}}}),
        ("{type: random, seed: 42}", "{type: loguniform, min_value: -6.907755279, max_value: 0}", {"random": {"samples": 6, "seed": 42, "of": {"rate": {"min": 0.001, "max": 1.0, "scale": "log"}, "kind": ["rbf", "linear"]}}}),
        ("grid", "{type: choice, values: [0.1, 0.2]}", {"grid": {"rate": [0.1, 0.2], "kind": ["rbf", "linear"]}}),
        ("grid", "{type: quniform, min_value: 1, max_value: 3, q: 1}", {"grid": {"rate": [1.0, 2.0, 3.0], "kind": ["rbf", "linear"]}}),
    ],
)  # fmt: skip
def test_a_search_becomes_a_sweep(tmp_path: Path, how: str, space: str, parameters: object) -> None:
    batch = read(tmp_path, SEARCH % (how, space))
    (one,) = batch.imported
    spec = plain.load(one.text)
    assert spec["kind"] == "Sweep"
    assert spec["maxConcurrent"] == 2
    found = spec["parameters"]
    for name, value in (found.get("random", {}).get("of") or {}).items():
        if isinstance(value, dict):  # exp(log(1e-3)) is not exactly 1e-3
            found["random"]["of"][name] = {
                key: round(each, 6) if isinstance(each, float) else each for key, each in value.items()
            }
    assert found == parameters
    words = ["--rate", "${{ parameters.rate }}", "--kind", "${{ parameters.kind }}", "--epochs", "3"]
    assert spec["template"]["command"] == ["python", "train.py", *words]
    assert spec["template"]["timeout"] == "10m"
    assert one.is_right, one.findings
    assert one.runs["lab"].percent == 100, one.runs["lab"].differences


def test_a_distribution_that_a_sweep_cannot_draw_is_refused(tmp_path: Path) -> None:
    batch = read(tmp_path, SEARCH % ("random", "{type: normal, mu: 0, sigma: 1}"))
    assert "rate is drawn by normal" in batch.everything[0].message


def test_the_output_of_az_ml_job_show_is_the_same_job(tmp_path: Path) -> None:
    text = (
        AZUREML + "status: Completed\ncreation_context: {created_by: someone}\nid: azureml:/subscriptions/x\n"
    )
    batch = read(tmp_path, text)
    assert entries(batch)["status"] == ("dropped", "it is of a job that was submitted")


def test_every_field_of_the_schemas_has_its_reason(tmp_path: Path) -> None:
    """These are the fields that azure-ai-ml knows; the test is skipped where the package is absent."""
    schema = pytest.importorskip(
        "azure.ai.ml._schema.job", reason="azure-ai-ml is not installed: its schemas are not there"
    ).CommandJobSchema
    fields = {one.data_key or name for name, one in schema._declared_fields.items()}
    page = (REPOSITORY / "docs/import-azureml.md").read_text(encoding="utf-8")
    known = set(_keys_of(tmp_path))
    assert fields - known == set(), page[:0]


def _keys_of(root: Path) -> list[str]:
    """Return the fields that the tables or the reader know, from a job that has all listed here."""
    text = AZUREML + "queue_settings: {job_tier: Spot}\n"
    text += "".join(f"{name}: x\n" for name in MORE if name != "queue_settings")
    return [
        name.partition(".")[0].partition("[")[0]
        for name, (_, why) in entries(read(root, text)).items()
        if "no place" not in why
    ]


# Fields of BaseJobSchema and CommandJobSchema that the source here lacks (azure-sdk-for-python, 2026).
MORE = ("creation_context", "services", "id", "display_name", "status", "properties", "log_files", "identity", "parameters", "parent_job_name", "queue_settings")  # fmt: skip


def test_every_known_field_has_its_reason(tmp_path: Path) -> None:
    known = set(_keys_of(tmp_path))
    assert set(MORE) <= known


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("type: command", "type: command_job", "type: command_job"),
        ("--data ${{inputs.images}}", "--data {inputs.images}", "{inputs.images}"),
        ("compute: azureml:a100", "compute: {target: azureml:a100, instance_count: 2}", "compute.instance_count"),
    ],
)  # fmt: skip
def test_the_form_of_the_preview_is_refused(tmp_path: Path, old: str, new: str, shown: str) -> None:
    """Nothing of today fills in {inputs.NAME}, so that the program would get it as it is."""
    assert old in AZUREML
    batch = imported(tmp_path, "azureml", AZUREML.replace(old, new))
    (error,) = [one for one in batch.everything if one.is_error]
    assert error.message.startswith(f"it cannot be imported: {shown} is a form of the preview")
    assert not batch.imported


def test_a_search_of_the_preview_is_refused(tmp_path: Path) -> None:
    text = "$schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json\ntype: sweep_job\ntrial: {command: 'a {search_space.lr}'}\n"
    (error,) = [one for one in imported(tmp_path, "azureml", text).everything if one.is_error]
    assert "type: sweep_job is a form of the preview" in error.message
