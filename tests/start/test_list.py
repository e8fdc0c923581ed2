"""`gangplan list`: what a workspace has and what a team may use, without reading more than needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.commands.listing import NAMES
from gangplan.contents import outline as outlines
from gangplan.contents.allowed import LIMITS
from gangplan.contents.outline import read_spec_outline
from gangplan.errors import Exit
from gangplan.source import ManifestError, load_objects
from gangplan.spec.cluster import Limits
from tests.schedules import worlds
from tests.test_start import imported
from tests.workspaces import CATALOG, CLUSTER, REPOSITORY, SPEC, TEAM, gangplan, render, stock, write

FIELDS = ("name", "clusters", "image", "workers", "gpus", "state")
# Lines that a spec may have, and lines that could mislead a reader by lines.
LINES = (
    "apiVersion: gangplan.dev/v1",
    "image: openmpi",
    "image: openmpi  # why",
    "image: open#mpi",
    "image:",
    "image: open\n  mpi",
    "image: 'openmpi'",
    'description: "two\nworkers: 9"',
    "description: it's",
    "description: |\n  workers: 9\nname: x",
    "description: >\n\n  text",
    "workers: 8",
    "workers: 08",
    "workers: 1e1",
    "workers: 8: 9",
    "workers:8",
    "workers: ~",
    "workers: yes",
    "workers: .inf",
    "workers: &a 8",
    "gpus: *a",
    "gpus: -1",
    "gpus: 0x10",
    "gpus: [1,\n2]",
    "clusters: [a, b]",
    "clusters: [a, b,]",
    "clusters: []",
    "clusters: [a, [b]]",
    "clusters: [a #b]",
    "clusters:\n- a",
    "clusters:\n  - a\n  - on",
    "clusters: [a,\n  b]",
    "data: {a: /data}",
    "data: {a: /data,\nworkers: 4}",
    "data:\n  workers: 3",
    "state: archived",
    "state: !!str archived",
    "# workers: 4",
    "  # indented",
    "",
    "---",
    "--- # two",
    "...",
    "%YAML 1.1",
    "\tworkers: 4",
    " workers: 4",
    "x\u2028workers: 4",
    "name: tr\u00e4in",
    "? name\n: x",
    "- a",
    "{image: a}",
    "command: [python, train.py, --lr, 1e-4]",
    "command: python train.py --name=a:b",
)


def rows(root: Path, what: str, *flags: str) -> list[dict[str, Any]]:
    """Return the rows of a table."""
    outcome = gangplan("list", what, "-C", root, "--format", "json", *flags)
    assert outcome.code == Exit.CLEAN, outcome.err
    found: list[dict[str, Any]] = json.loads(outcome.out)[what]
    return found


def names(root: Path, what: str, *flags: str) -> list[str]:
    """Return the first column of a table."""
    return [str(next(iter(row.values()))) for row in rows(root, what, *flags)]


# Tables


def test_every_table_of_the_sample_has_rows(tmp_path: Path) -> None:
    for what in NAMES:
        found = rows(REPOSITORY, what)
        assert found, what
        outcome = gangplan("list", what, "-C", REPOSITORY)
        lines = outcome.out.splitlines()
        assert len(lines) == len(found) + 1
        assert outcome.err == ""
        assert lines[0].split()[0] == next(iter(found[0]))
        assert all(line == line.rstrip() for line in lines)
    counts = json.loads(gangplan("list", "-C", REPOSITORY, "--format", "json").out)["lists"]
    assert {row["list"]: row["count"] for row in counts} == {
        name: len(rows(REPOSITORY, name)) for name in NAMES
    }


def test_rows_of_specs_match_their_files(root: Path) -> None:
    write(root, {"specs/nlp/deep/other.yaml": SPEC + "state: archived\nname: x\nclusters: [lab]\n"})
    first, second = rows(root, "specs")
    assert first == {
        "job": "x",
        "team": "nlp",
        "clusters": ["lab"],
        "image": "openmpi",
        "workers": 4,
        "gpus": 2,
        "priority": None,
        "state": "archived",
        "file": "specs/nlp/deep/other.yaml",
    }
    assert (second["job"], second["clusters"], second["state"]) == ("filings", ["lab"], "active")


def test_only_rendered_runs_are_listed(root: Path) -> None:
    assert (
        gangplan("list", "runs", "-C", root).err == "there are no runs; gangplan render makes them of specs\n"
    )
    write(root, {f"specs/nlp/{state}.yaml": f"{SPEC}state: {state}\n" for state in ("archived", "stopped")})
    render(root)
    states = {row["spec"]: row["state"] for row in rows(root, "runs")}
    assert states == {
        "specs/nlp/filings.yaml": "active",
        "specs/nlp/archived.yaml": "archived",
        "specs/nlp/stopped.yaml": "stopped",
    }
    assert all((root / row["file"]).is_file() for row in rows(root, "runs"))


def test_scheduled_and_waiting_runs_are_not_active(root: Path) -> None:
    """For a scheduled or waiting run, Git has only a template."""
    late = f"{SPEC}after: [filings]\n"
    worlds.stock(
        root, **{"specs/nlp/late.yaml": late, "specs/nlp/off.yaml": worlds.SPEC + "state: stopped\n"}
    )
    write(root, {"specs/nlp/nightly.yaml": worlds.SPEC, "specs/nlp/filings.yaml": SPEC})
    render(root)
    states = {Path(row["spec"]).stem: row["state"] for row in rows(root, "runs")}
    assert states == {"filings": "active", "late": "waiting", "nightly": "scheduled", "off": "stopped"}


def test_files_that_cannot_be_read_are_named(root: Path) -> None:
    write(root, {"specs/nlp/broken.yaml": "a: b: c\n", "specs/nlp/list.yaml": "- a\n"})
    outcome = gangplan("list", "specs", "-C", root)
    assert outcome.code == Exit.CLEAN
    said = "note: specs/nlp/broken.yaml and 1 other file cannot be read; `gangplan validate` says why\n"
    assert outcome.err == said
    assert len(outcome.out.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["jobs"], "fatal: there is nothing to list by the name 'jobs'\n  help: Known: "),
        (["spec"], "Did you mean 'specs'?"),
        (["specs", "--team", "npl"], "fatal: there is no team 'npl'\n  help: Did you mean 'nlp'?"),
        (["specs", "--cluster", "lib"], "fatal: there is no cluster 'lib'\n  help: Did you mean 'lab'?"),
        (["specs", "--format", "xml"], "fatal: there is no format 'xml'\n  help: Formats: table, json."),
    ],
)
def test_unknown_names_are_refused_with_suggestions(arguments: list[str], said: str, root: Path) -> None:
    outcome = gangplan("list", *arguments, "-C", root)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err


def test_list_outside_a_workspace_suggests_init(tmp_path: Path) -> None:
    outcome = gangplan("list", "specs", "-C", tmp_path)
    assert outcome.code == Exit.INPUT
    assert "gangplan init" in outcome.err


# What a team may use


TWO = CLUSTER.replace(
    "  nlp: {queue: training}", "  nlp: {queue: training, quota: {a100: {gpus: 8}}}\n  cv: {queue: cv}"
)


def test_a_team_sees_only_what_it_may_use(tmp_path: Path) -> None:
    root = stock(tmp_path)
    other = (
        CLUSTER.replace("  nlp: {queue: training}", "  cv: {queue: cv}")
        + "registries: [mirror.example.com]\n"
    )
    write(
        root,
        {
            "overlays/lab/cluster.yaml": TWO,
            "overlays/far/cluster.yaml": other,
            "specs/cv/team.yaml": TEAM.replace(
                "clusters: [lab]", "clusters: [lab, far]\ncompliance: [hipaa]"
            ),
            "images/catalog.yaml": CATALOG.replace("  openmpi4:\n", "  openmpi4:\n    approved: [hipaa]\n"),
        },
    )
    assert names(root, "pools", "--team", "nlp") == ["a100"]
    assert [row["quota"] for row in rows(root, "pools", "--team", "nlp")] == ["8 gpus"]
    assert names(root, "pools", "--team", "cv") == 2 * ["cpu", "a100", "a100-spot"]
    assert names(root, "clusters", "--team", "nlp") == ["lab"]
    assert [row["cluster"] for row in rows(root, "queues", "--team", "cv")] == ["far", "lab"]
    assert names(root, "teams", "--cluster", "far") == ["cv"]
    assert names(root, "images", "--team", "cv") == ["openmpi4"]
    assert rows(root, "images", "--team", "cv")[0]["clusters"] == ["lab"]  # far has another registry
    assert len(names(root, "images", "--team", "nlp")) == CATALOG.count("repository:")
    assert names(root, "images", "--cluster", "far") == []
    assert set(names(root, "claims", "--team", "nlp")) == {
        "filings", "notes", "archive", "lidar-files", "lidar", "radar"
    }  # fmt: skip
    assert names(root, "specs", "--team", "cv") == []
    assert names(root, "specs", "--cluster", "far") == []


def test_policies_of_a_team_are_those_of_its_clusters(root: Path) -> None:
    other = CLUSTER.replace("  nlp: {queue: training}", "  {}").replace("teams:\n  {}\n", "")
    write(root, {"overlays/lab/cluster.yaml": CLUSTER + "policies: {packs: [baseline]}\n"})
    write(root, {"overlays/far/cluster.yaml": other + "policies: {packs: [images]}\n"})
    own = rows(root, "policies", "--team", "nlp")
    assert {row["pack"] for row in own} == {"baseline"}
    assert "far" not in own[0]
    assert {row["pack"] for row in rows(root, "policies")} == {"baseline", "images"}


# Reading


@given(st.lists(st.sampled_from(LINES), max_size=6).map("\n".join))
def test_reading_by_lines_agrees_with_the_parser(text: str) -> None:
    assert_same(text)


@given(st.text("aw:- #[]{},'\n\t|\u2028", max_size=24))
def test_reading_any_text_by_lines_agrees_with_the_parser(text: str) -> None:
    assert_same("image: a\n" + text)
    assert_same(text + "\nimage: a")


def assert_same(text: str) -> None:
    """Check that reading by lines gives what the parser gives; `validate` reports what the parser refuses."""
    fast = outlines._read_spec_outline_from_lines(text, FIELDS)
    if fast is None:
        return
    try:
        documents = load_objects(text)
    except ManifestError:
        return
    assert len(documents) == 1, (text, fast)
    whole = {name: documents[0][name] for name in FIELDS if name in documents[0]}
    assert fast == whole, text
    assert read_spec_outline(text.encode(), FIELDS) == whole


def test_usual_specs_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlines, "load_objects", lambda text: pytest.fail("parsed"))
    files = [*REPOSITORY.glob("specs/*/*.yaml"), *REPOSITORY.glob("tests/examples/*/input/specs/*/*.yaml")]
    specs = [file.read_bytes() for file in files if file.name != "team.yaml"]
    texts = [data for data in specs if b'"' not in data and b"\n- " not in data]
    assert len(texts) >= 10
    read = [outlines._read_spec_outline_from_lines(data.decode(), FIELDS) for data in texts]
    assert sum(one is not None for one in read) >= 0.7 * len(read)
    assert read_spec_outline(SPEC.encode(), FIELDS) == {"image": "openmpi", "workers": 4, "gpus": 2}


def test_listing_specs_imports_no_models(root: Path) -> None:
    modules = imported("list", "specs", root=root)
    assert not modules & {"jinja2", "jsonschema", "jsonschema_rs"}
    assert not modules & {"gangplan.workspace", "gangplan.spec.job", "gangplan.spec.cluster"}


PRICED = (
    CLUSTER.replace("  a100: {count: 4,", "  a100: {price: {perGpuHour: 2.5, discount: 20}, count: 4,")
    + "limits: {workers: 8, timeoutHours: 12}\n"
)


def test_one_screen_has_all_that_a_team_may_use(tmp_path: Path) -> None:
    root = write(stock(tmp_path), {
        "overlays/lab/cluster.yaml": PRICED,
        "specs/nlp/team.yaml": TEAM + "configMaps: [settings]\n",
        "specs/vision/team.yaml": TEAM.replace("huggingface", "other"),
    })  # fmt: skip
    outcome = gangplan("list", "--team", "nlp", "-C", root)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    for words in (
        "images\n  image", "openmpi", "secrets\n  name         team  kind\n  huggingface  nlp   Secret\n",
        "settings     nlp   ConfigMap\n", "2.5 per GPU-hour less 20%", "queues\n  queue",
        "endpoints\n  endpoint  cluster  ports  addresses\n  s3        lab      443    10.40.8.0/24\n",
        "limits\n  cluster  workers  timeout  trials  teamShare\n  lab            8  12h         500  100%\n",
    ):  # fmt: skip
        assert words in outcome.out
    assert "other" not in outcome.out
    found = json.loads(gangplan("list", "--team", "nlp", "-C", root, "--format", "json").out)
    assert list(found) == ["images", "claims", "secrets", "pools", "queues", "endpoints", "limits"]
    assert found["endpoints"] == [
        {"endpoint": "s3", "cluster": "lab", "ports": ["443"], "addresses": ["10.40.8.0/24"]}
    ]
    for name in found:
        one = json.loads(gangplan("list", name, "--team", "nlp", "-C", root, "--format", "json").out)
        assert one == {name: found[name]}


def test_empty_lists_of_a_team_share_one_line(tmp_path: Path) -> None:
    root = write(stock(tmp_path), {"specs/ml/team.yaml": "apiVersion: gangplan.dev/v1\nkind: Team\n"})
    said = gangplan("list", "--team", "ml", "-C", root).out
    assert said.endswith("no claims, secrets, pools, queues, endpoints, limits\n")


FIELDS_OF_LIMITS = {
    "workers": "workers",
    "timeoutHours": "timeout_hours",
    "trials": "trials",
    "teamShare": "team_share",
}


def test_default_limits_match_the_format() -> None:
    assert {name: Limits.model_fields[field].default for name, field in FIELDS_OF_LIMITS.items()} == LIMITS
