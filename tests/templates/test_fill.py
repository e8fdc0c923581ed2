# ruff: noqa: E501  one case in a line
"""A spec with a template: the run that it becomes, and each error at the file that has the wrong value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.templates.files import FILE, SPEC, TEMPLATE, WIDE, WRITTEN, workspace
from tests.workspaces import gangplan, render, rendered, stock, write


def runs(root: Path) -> dict[str, bytes]:
    """Return the texts of the runs of the job."""
    return {path: data for path, data in rendered(root).items() if "tuned" in path}


def test_a_spec_with_a_template_renders_the_run_of_a_plain_spec(tmp_path: Path) -> None:
    render(workspace(tmp_path / "by"))
    plain = stock(tmp_path / "plain", "specs/nlp/filings.yaml")
    render(write(plain, {FILE: WRITTEN}))
    assert runs(tmp_path / "by") == runs(plain)
    assert runs(plain)


CASES = [
    ("unknown", SPEC.replace("template: wide", "template: wild"), TEMPLATE, f"{FILE}:3:11", "template-unknown"),
    ("version", SPEC.replace("template: wide", "template: wide@2"), TEMPLATE, f"{FILE}:3:11", "template-unknown"),
    ("name", SPEC.replace("size:", "sise:"), TEMPLATE, f"{FILE}:5:3", "template-parameter-unknown"),
    ("missing", SPEC.replace("  rate: 1e-4\n", ""), TEMPLATE, f"{FILE}:3:11", "template-parameter-missing"),
    ("type", SPEC.replace("size: 4", "size: four"), TEMPLATE, f"{FILE}:5:9", "template-parameter-value"),
    ("fraction", SPEC.replace("size: 4", "size: 4.5"), TEMPLATE, f"{FILE}:5:9", "template-parameter-value"),
    ("truth", SPEC.replace("size: 4", "size: true"), TEMPLATE, f"{FILE}:5:9", "template-parameter-value"),
    ("small", SPEC.replace("size: 4", "size: 1"), TEMPLATE, f"{FILE}:5:9", "template-parameter-value"),
    ("large", SPEC.replace("size: 4", "size: 101"), TEMPLATE, f"{FILE}:5:9", "template-parameter-value"),
    ("no template", SPEC.replace("template: wide\n", ""), TEMPLATE, f"{FILE}:3:1", "template-parameter-unknown"),
    ("mapping", SPEC.replace("\n  size: 4\n  rate: 1e-4", " [4]"), TEMPLATE, f"{FILE}:4:13", "template-parameter-value"),
    # Values of the job, at the place where they are written.
    ("of the template", SPEC, TEMPLATE.replace("cpu: 8", "cpu: many"), f"{WIDE}:13:8", "spec-value"),
    ("its fields", SPEC, TEMPLATE.replace("  gpus: 2", "  gpu_count: 2"), f"{WIDE}:12:3", "spec-unknown-field"),
    ("of the spec", f"{SPEC}cpu: many\n", TEMPLATE, f"{FILE}:8:6", "spec-value"),
    ("filled in", SPEC.replace("size: 4", "size: 4\n  image: opemmpi"), TEMPLATE.replace("image: openmpi", "image: ${{ parameters.image }}").replace("  rate:", "  image: {type: string}\n  rate:"), f"{FILE}:6:10", "image-unknown"),
    ("a default", SPEC, TEMPLATE.replace("image: openmpi", "image: ${{ parameters.image }}").replace("  rate:", "  image: {type: string, default: opemmpi}\n  rate:"), f"{WIDE}:6:34", "image-unknown"),
    # Templates themselves.
    ("placeholder", SPEC, TEMPLATE.replace("parameters.size", "parameters.sise"), f"{WIDE}:11:12", "template-placeholder"),
    ("of other tools", SPEC, TEMPLATE.replace("${{ parameters.rate }}", "{{ parameters.rate }}"), f"{WIDE}:10:55", "template-placeholder"),
    ("never closed", SPEC, TEMPLATE.replace("${{ parameters.size }}", "${{ parameters.size"), f"{WIDE}:11:12", "template-placeholder"),
    ("own field", SPEC, TEMPLATE.replace("job:\n", "job:\n  state: stopped\n"), f"{WIDE}:9:3", "template-unusable"),
    ("name and file", SPEC, TEMPLATE.replace("kind: JobTemplate\n", "kind: JobTemplate\nname: broad\n"), f"{WIDE}:3:7", "template-unusable"),
    ("default out of bounds", SPEC, TEMPLATE.replace("default: 2,", "default: 1,"), f"{WIDE}:5:34", "template-parameter-value"),
    ("bounds of a text", SPEC, TEMPLATE.replace("{type: string,", "{type: string, min: 2,"), f"{WIDE}:7:26", "template-parameter-value"),
    ("itself", SPEC, TEMPLATE.replace("job:\n", "extends: wide\njob:\n"), f"{WIDE}:8:10", "template-extends"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "template", "place", "rule"), [one[1:] for one in CASES], ids=[one[0] for one in CASES]
)
def test_each_mistake_is_reported_at_the_wrong_value(
    tmp_path: Path, spec: str, template: str, place: str, rule: str
) -> None:
    outcome = gangplan("validate", "-C", workspace(tmp_path, spec, template))
    assert (place, rule) in outcome.errors(), outcome.err
    assert outcome.code == 2


def test_values_of_the_spec_override_mappings_merge_and_lists_replace(tmp_path: Path) -> None:
    spec = f"{SPEC}command: [python, other.py]\nmemory: 64Gi\ncheckpoint:\n"
    plain = WRITTEN.replace("[python, train.py, --lr=1e-4]", "[python, other.py]").replace("32Gi", "64Gi")
    render(workspace(tmp_path / "by", spec))
    render(
        write(
            stock(tmp_path / "plain", "specs/nlp/filings.yaml"),
            {FILE: plain.replace("checkpoint: {to: filings}\n", "")},
        )
    )
    assert runs(tmp_path / "by") == runs(tmp_path / "plain")


def test_a_template_can_extend_another_one(tmp_path: Path) -> None:
    child = (
        "apiVersion: gangplan.dev/v1\nkind: JobTemplate\nextends: wide\n"
        "parameters: {size: {type: integer, default: 4}}\njob: {env: {NCCL_DEBUG: INFO}}\n"
    )
    spec = (
        SPEC.replace("template: wide", "template: wider")
        .replace("  size: 4\n", "")
        .replace("env: {NCCL_DEBUG: INFO}\n", "")
    )
    render(workspace(tmp_path / "by", spec, **{"jobtemplates/wider.yaml": child}))
    render(write(stock(tmp_path / "plain", "specs/nlp/filings.yaml"), {FILE: WRITTEN}))
    assert runs(tmp_path / "by") == runs(tmp_path / "plain")


def test_nine_levels_of_templates_are_refused(tmp_path: Path) -> None:
    chain = {
        f"jobtemplates/t{number}.yaml": f"apiVersion: gangplan.dev/v1\nkind: JobTemplate\nextends: {f't{number - 1}' if number else 'wide'}\njob: {{}}\n"
        for number in range(9)
    }
    good = gangplan(
        "validate",
        "-C",
        workspace(tmp_path, SPEC.replace("wide", "t6"), **{k: v for k, v in chain.items() if int(k[14]) < 7}),
    )
    assert good.code == 0, good.err
    outcome = gangplan("validate", "-C", workspace(tmp_path, SPEC.replace("wide", "t8"), **chain))
    assert ("jobtemplates/t0.yaml:3:10", "template-extends") in outcome.errors(), outcome.err


def test_a_spec_keeps_its_template_version_or_takes_the_newest(tmp_path: Path) -> None:
    second = TEMPLATE.replace("parameters:\n", "version: 2\nparameters:\n", 1).replace("gpus: 2", "gpus: 4")
    root = workspace(tmp_path, SPEC.replace("wide", "wide@1"))
    render(root)
    before = runs(root)
    write(root, {"jobtemplates/wide@2.yaml": second, "specs/nlp/newest.yaml": SPEC})
    render(root)
    assert runs(root) == before
    plan = gangplan("plan", "-C", root, "specs/nlp/newest.yaml").out
    assert "template  wide@2 (size=4" in plan
    assert "16 GPUs" in plan


def test_a_template_of_the_team_takes_precedence(tmp_path: Path) -> None:
    own = TEMPLATE.replace("gpus: 2", "gpus: 1")
    root = workspace(tmp_path, **{"specs/nlp/templates/wide.yaml": own})
    assert "4 GPUs" in gangplan("plan", "-C", root, FILE).out
    assert gangplan("list", "specs", "-C", root).out.count("specs/") == 1


def test_why_names_the_line_of_the_template(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    render(root)
    out = gangplan("why", "-C", root, FILE).out
    assert re.search(r"gpus +2 +template wide@1 +jobtemplates/wide.yaml:12:9\n", out)
    assert "specs/nlp/tuned.yaml:5:9" in out
    of_line = gangplan("why", "-C", root, f"{WIDE}:12").out
    assert "nvidia.com/gpu" in of_line
    (run,) = runs(root)
    text = (root / "rendered" / run).read_text().splitlines()
    line = next(number for number, one in enumerate(text, 1) if "nvidia.com/gpu" in one)
    assert (
        "jobtemplates/wide.yaml:12:9: gpus in the template"
        in gangplan("why", "-C", root, f"rendered/{run}:{line}").out
    )


def test_a_mistake_in_a_template_is_reported_once_for_all_specs(tmp_path: Path) -> None:
    more = {f"specs/nlp/more{number}.yaml": SPEC for number in range(3)}
    outcome = gangplan(
        "validate",
        "-C",
        workspace(tmp_path, SPEC, TEMPLATE.replace("image: openmpi", "image: opemmpi"), **more),
    )
    assert outcome.errors() == [(f"{WIDE}:9:10", "image-unknown")]


def test_templates_are_listed_and_explained(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    assert "wide            1  size=2,rate,script=train.py" in gangplan("list", "templates", "-C", root).out
    page = gangplan("explain", "template", "wide", "-C", root).out
    for words in (
        "size    integer, from 2 to 100, default 2. Workers",
        "rate    number, required",
        "rate: 0.1",
        "--lr=0.1",
    ):
        assert words in page
    assert "Did you mean 'wide'?" in gangplan("explain", "template", "wild", "-C", root).err


def test_numbers_are_shown_as_the_template_has_them(tmp_path: Path) -> None:
    """A variable of 0.0001 is another run than one of 1e-4."""
    text = TEMPLATE.replace(
        "{type: number, ", "{type: number, default: 1e-4, min: 1e-6, enum: [1e-4, 0.10], "
    )
    root = workspace(tmp_path, template=text.replace("env: {", "env: {RATE: 1e-4, LIMIT: 0.10, "))
    assert "rate=1e-4," in gangplan("list", "templates", "-C", root).out
    page = gangplan("explain", "template", "wide", "-C", root).out
    assert "rate    number, one of 1e-4, 0.10, from 1e-6, default 1e-4." in page
    assert "--lr=1e-4" in page
    assert "env: {RATE: 1e-4, LIMIT: 0.10, OMP_NUM_THREADS: 4," in page


def test_a_template_file_among_specs_is_refused(tmp_path: Path) -> None:
    outcome = gangplan("validate", "-C", workspace(tmp_path, **{"specs/nlp/other.yaml": TEMPLATE}))
    assert ("specs/nlp/other.yaml:2:7", "spec-value") in outcome.errors(), outcome.err


def test_cached_results_follow_the_template(tmp_path: Path) -> None:
    root = workspace(tmp_path, **{"specs/nlp/plain.yaml": WRITTEN})
    render(root)
    before = runs(root)
    assert "same" in render(root).out or runs(root) == before
    write(root, {WIDE: TEMPLATE.replace("cpu: 8", "cpu: 10")})
    assert gangplan("render", "--check", "-C", root).code == 1
    render(root)
    assert runs(root) != before
    assert runs(root) == runs(fresh(tmp_path / "fresh", TEMPLATE.replace("cpu: 8", "cpu: 10")))


def fresh(root: Path, template: str) -> Path:
    """Render the same workspace for the first time."""
    render(workspace(root, SPEC, template))
    return root
