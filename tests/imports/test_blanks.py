"""What the author of a source leaves to its reader is asked for at its line, in sources of every kind."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gangplan.errors import UserError
from gangplan.findings import Finding
from gangplan.imports.batch import Batch, judge_import_batch, read_import_batch
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.rules.imports import IMPORT_ASKED, IMPORT_TEMPLATE
from tests.imports.sources import AZUREML, MPIJOB, PYTORCHJOB, SAGEMAKER, home, imported

IMAGE = "registry.example.com/optics/lens:7"


def filled(root: Path, kind: str, text: str, name: str, **given: str) -> Batch:
    """Import a source with values of `--set`."""
    workspace = home(root / "workspace")
    (root / name).write_text(text, encoding="utf-8")
    batch = read_import_batch(SOURCE_KINDS[kind], [root / name], workspace, given)
    judge_import_batch(batch, root / "workspace")
    return batch


def blanks(batch: Batch) -> list[Finding]:
    return [one for one in batch.everything if one.rule == IMPORT_TEMPLATE]


@pytest.mark.parametrize(
    ("blank", "name"),
    [
        ("<image>", "image"),
        ("YOUR_IMAGE", "YOUR_IMAGE"),
        ("YOUR-IMAGE", "YOUR-IMAGE"),
        ("your-registry/lens:7", "your-registry"),
        ('"{{ image }}"', "image"),
        ("{{ image }}", "image"),
        ("${IMAGE}", "IMAGE"),
        ("$IMAGE", "IMAGE"),
        ("CHANGE_ME", "CHANGE_ME"),
        ("<CHANGE ME>", "CHANGE ME"),
    ],
)
def test_an_image_that_is_left_open_is_asked_for(tmp_path: Path, blank: str, name: str) -> None:
    text = PYTORCHJOB.replace(IMAGE, blank)
    (error, *_) = blanks(imported(tmp_path / "open", "pytorchjob", text))
    assert error.where.line == text[: text.index(blank)].count("\n") + 1
    assert f"--set {shlex.quote(f'{name}=VALUE')}" in str(error.help)
    value = "registry.example.com" if "/" in blank else IMAGE
    batch = filled(tmp_path, "pytorchjob", text, "job.yaml", **{name: value})
    assert [one for one in batch.everything if one.is_error] == []


@pytest.mark.parametrize(
    ("name", "help"),
    [("IMAEG", "Did you mean 'IMAGE'?"), ("UNUSED", "Known: IMAGE, ")],
)
def test_a_value_that_nothing_reads_is_refused(tmp_path: Path, name: str, help: str) -> None:
    """A misspelled name would leave the blank of the source as it is."""
    text = PYTORCHJOB.replace(IMAGE, "${IMAGE}")
    given = {"IMAGE": IMAGE, name: "1"}
    with pytest.raises(UserError) as caught:
        filled(tmp_path, "pytorchjob", text, "job.yaml", **given)
    assert caught.value.message == f"--set {name}=1: nothing in the source reads {name}"
    assert str(caught.value.help).startswith(help)


def test_a_value_is_of_use_if_one_of_the_sources_reads_it(tmp_path: Path) -> None:
    workspace = home(tmp_path / "workspace")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/one.yaml").write_text(PYTORCHJOB.replace(IMAGE, "$IMAGE"), encoding="utf-8")
    (tmp_path / "sources/two.yaml").write_text(PYTORCHJOB.replace("lens", "lens-2"), encoding="utf-8")
    named = [tmp_path / "sources"]
    read_import_batch(SOURCE_KINDS["pytorchjob"], named, workspace, {"IMAGE": IMAGE})
    with pytest.raises(UserError, match="nothing in the sources reads OTHER"):
        read_import_batch(SOURCE_KINDS["pytorchjob"], named, workspace, {"IMAGE": IMAGE, "OTHER": ""})


def test_a_variable_in_small_letters_is_filled_in(tmp_path: Path) -> None:
    """The import asks for its value by this flag."""
    text = PYTORCHJOB.replace("--epochs 3", "--epochs $epochs")
    assert text != PYTORCHJOB
    (question,) = [
        one for one in imported(tmp_path / "open", "pytorchjob", text).everything if "$epochs" in one.message
    ]
    assert "--set epochs=VALUE" in str(question.help)
    batch = filled(tmp_path, "pytorchjob", text, "job.yaml", epochs="7")
    assert "--epochs 7" in batch.imported[0].draft.values["command"][2]


def test_a_template_of_helm_is_rendered_first(tmp_path: Path) -> None:
    text = PYTORCHJOB.replace(IMAGE, '"{{ .Values.image }}"')
    (error, *_) = blanks(imported(tmp_path, "pytorchjob", text))
    assert str(error.help).startswith("Render the template first (helm template)")


def test_a_blank_of_sagemaker_is_asked_for(tmp_path: Path) -> None:
    """A field that the run does not need, such as the role, may stay open."""
    request = json.loads(SAGEMAKER)
    request["AlgorithmSpecification"]["TrainingImage"] = "<ECR_IMAGE_URI>"
    request["RoleArn"] = "<SAGEMAKER_ROLE_ARN>"
    text = json.dumps(request, indent=1)
    (error,) = blanks(imported(tmp_path / "open", "sagemaker", text, "job.json"))
    assert error.where.line == text[: text.index("<ECR")].count("\n") + 1
    assert "--set ECR_IMAGE_URI=VALUE" in str(error.help)
    batch = filled(tmp_path, "sagemaker", text, "job.json", ECR_IMAGE_URI=IMAGE)
    assert [one for one in batch.everything if one.is_error] == []


def test_a_blank_of_azure_ml_is_asked_for(tmp_path: Path) -> None:
    """Azure ML's own ${{inputs.NAME}} are not blanks."""
    assert blanks(imported(tmp_path / "none", "azureml", AZUREML)) == []
    text = AZUREML.replace("instance_count: 2", "instance_count: <nodes>")
    (error,) = blanks(imported(tmp_path / "open", "azureml", text))
    assert "--set nodes=VALUE" in str(error.help)
    text = AZUREML.replace("cuda12.1/versions/22", "<cuda>/versions/22")
    assert "--set cuda=VALUE" in str(blanks(imported(tmp_path / "image", "azureml", text))[0].help)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("value: efa", "value: <YOUR PROVIDER>", "YOUR PROVIDER"),
        ("value: efa", "value: s3://YOUR_BUCKET/x", "YOUR_BUCKET"),
        ("--epochs 3", "--token YOUR_TOKEN", "YOUR_TOKEN"),
    ],
)
def test_a_blank_in_a_variable_or_a_command_is_a_question(
    tmp_path: Path, old: str, new: str, name: str
) -> None:
    batch = imported(tmp_path, "pytorchjob", PYTORCHJOB.replace(old, new))
    (one, *_) = [one for one in batch.everything if "nothing has filled in" in one.message]
    assert one.rule == IMPORT_ASKED
    assert f"--set {shlex.quote(f'{name}=VALUE')}" in str(one.help)
    assert batch.imported


@pytest.mark.parametrize(
    "script", ["sort <a.txt >b.txt", "YOUR_NAME=1 solve $YOUR_NAME ${YOUR_NAME}", "cat <<EOF >x\nEOF"]
)
def test_what_a_shell_reads_is_not_a_blank(tmp_path: Path, script: str) -> None:
    text = MPIJOB.replace('[/opt/heat/solve, --steps, "1000"]', json.dumps(["bash", "-c", script]))
    assert text != MPIJOB
    batch = imported(tmp_path, "mpijob", text)
    assert not [one for one in batch.everything if "nothing has filled in" in one.message]
