"""`make bench` ends in its stated time, and docs/performance.md agrees with its figures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import page, results
from benchmarks.__main__ import ALL_SIZES
from benchmarks.budget import TRIAL, Speed, plan
from benchmarks.chart import chart, scale
from benchmarks.corpus import PLACE, Corpus, documents, same, write_corpus
from benchmarks.libraries import libraries
from benchmarks.measure import Figure, ProgramError, Run, command
from benchmarks.peers import Peer, measured, peers
from benchmarks.results import Results, Section
from benchmarks.scaling import TEAMS, exponent
from benchmarks.workspace import write_workspace
from gangplan.workspace import load_workspace

FAST, SLOW, CRAWLING = Speed(0.002, 0.008, 0.3), Speed(0.02, 0.06, 0.5), Speed(0.5, 2.0, 5.0)


def figure(name: str, cpu_s: float, units: int = 0, base: float = 0.0) -> Figure:
    """Return a row with one run."""
    return Figure(name, (Run(cpu_s * 1.1, cpu_s, 30.0, 40.0),), units=units, base_cpu_s=base)


BARE = figure("python -c pass", 0.02)
SIZES = [figure(f"{specs} specs", 0.5 + specs / 100, specs, 0.5) for specs in (300, 1000, 3000)]
MADE = Results(
    "0123456789abcdef",
    {"cores": "2"},
    {"specs": 1000},
    (
        Section("More specs", "About.", (BARE, *SIZES), ("It is linear.",), {"exponent": 1.0}),
        Section("The same manifests made", "About.", (BARE, figure("gangplan render", 1.0, 200, 0.5))),
    ),
    ("helm: not on PATH",),
)


def test_a_fast_machine_runs_all_benchmarks() -> None:
    found = plan(1000, 3, FAST, 230)
    assert (found.specs, found.times) == (1000, 3)


@pytest.mark.parametrize("seconds", [150, 240, 600])
@pytest.mark.parametrize("speed", [FAST, SLOW], ids=["fast", "slow"])
def test_a_benchmark_ends_within_its_time(speed: Speed, seconds: float) -> None:
    found = plan(1000, 3, speed, seconds)
    assert sum(found.sections.values()) <= seconds
    assert TRIAL <= found.specs <= 1000
    assert 1 <= found.times <= 3


def test_a_slow_machine_measures_the_least_and_leaves_sections_out() -> None:
    found = plan(1000, 3, CRAWLING, 240)
    assert (found.specs, found.times) == (TRIAL, 1)
    assert found.fits("start", 240)
    assert not found.fits("sizes", 240)


def test_fewer_sections_fit_when_the_machine_gets_slower() -> None:
    found = plan(1000, 3, FAST, 230)
    assert found.fits("engines", 60)
    assert not found.fits("engines", 60, slower=10)


def test_more_time_never_measures_less() -> None:
    found = [plan(1000, 3, SLOW, seconds) for seconds in range(30, 1200, 30)]
    assert [(one.specs, one.times) for one in found] == sorted((one.specs, one.times) for one in found)


def test_the_committed_page_agrees_with_its_figures() -> None:
    kept = results.load()
    assert page.PAGE.read_text(encoding="utf-8") == page.text(kept), "run: make bench-page"
    assert page.CHART.read_text(encoding="utf-8") == chart(kept), "run: make bench-page"


def test_figures_are_unchanged_after_writing_and_reading(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(results.as_json(MADE), encoding="utf-8")
    assert results.as_json(results.load(tmp_path / "results.json")) == results.as_json(MADE)
    assert page.text(results.load(tmp_path / "results.json")) == page.text(MADE)


def test_figures_name_no_host_and_no_day() -> None:
    told = json.dumps(json.loads(results.RESULTS.read_text(encoding="utf-8"))["machine"])
    assert "/" not in told
    assert not any(f"20{year}-" in told for year in range(24, 40))


def test_ratios_are_relative_to_bare_python_and_exclude_the_base() -> None:
    rows = list(results.table(MADE.sections[1]))
    assert rows[0][3:5] == ("1.0", "1.0")
    assert rows[1][4:6] == ("50.0", f"{0.5 / 200 / 0.02:.3f}")


def test_the_digest_changes_with_sources_but_not_with_compiled_modules(tmp_path: Path) -> None:
    module = tmp_path / "gangplan" / "one.py"
    module.parent.mkdir()
    module.write_text("a = 1\n", encoding="utf-8")
    first = results.sources_digest(tmp_path)
    (module.parent / "__pycache__").mkdir()
    (module.parent / "__pycache__" / "one.pyc").write_bytes(b"compiled")
    assert results.sources_digest(tmp_path) == first
    module.write_text("a = 2\n", encoding="utf-8")
    assert results.sources_digest(tmp_path) != first


def test_the_exponent_of_linear_growth_is_one() -> None:
    assert math.isclose(exponent(*SIZES[:2]), 1.0)


def test_the_chart_is_valid_xml_within_its_canvas() -> None:
    root = ElementTree.fromstring(chart(MADE))
    wide, high = (float(one) for one in root.attrib["viewBox"].split()[2:])
    for text in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(text.attrib["x"]) <= wide
        assert 0 <= float(text.attrib["y"]) <= high
    axis = scale([3.0, 250.0], 0.0, 300.0)
    assert [label for _, label in axis.ticks()] == ["1", "10", "100", "1 000"]
    assert axis.at(1000.0) == 300.0


def test_the_error_of_a_failed_program_has_its_output() -> None:
    with pytest.raises(ProgramError, match="gone wrong"):
        command(["sh", "-c", "echo gone wrong; exit 3"])


def test_a_program_that_exceeds_its_limit_is_stopped() -> None:
    with pytest.raises(ProgramError, match="sleep 60 failed"):
        command(["sleep", "60"], limit_s=0.1)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Render a few runs of one form."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "workspace", 8)


def test_equal_inputs_are_cut_from_rendered_runs(corpus: Corpus) -> None:
    assert len(corpus.files) >= 4
    assert set(PLACE.findall(corpus.text)) == set(corpus.rows[0])
    assert len(corpus.objects()) == 3 * len(corpus.files)


def test_every_program_on_path_makes_the_same_objects(corpus: Corpus, tmp_path: Path) -> None:
    left_out: list[str] = []
    found = [*peers({}, left_out), *libraries({}, left_out)]
    for number, peer in enumerate(found):
        assert measured(peer, corpus, tmp_path / str(number), 1).units == len(corpus.files)
    assert len(found) + len(left_out) >= 6


def test_a_program_that_makes_other_objects_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    def other(folder: Path) -> Run:
        text = corpus.files[0].read_text(encoding="utf-8").replace("NetworkPolicy", "OtherPolicy")
        (folder / "out.yaml").write_text(text, encoding="utf-8")
        return Run(1.0, 1.0, 1.0)

    peer = Peer("another", lambda _corpus, _folder: None, other, lambda folder: folder.glob("out.yaml"))
    with pytest.raises(ProgramError, match="another makes other objects"):
        measured(peer, corpus, tmp_path / "other", 1)
    assert not same(corpus.objects(), documents(corpus.text))


def test_the_largest_row_fits_the_limit_of_runs_of_a_team(tmp_path: Path) -> None:
    """The default of 500 to a namespace ended the rows of more than 2500 specs with errors."""
    write_workspace(tmp_path / "work", 5, clusters=4, teams=TEAMS)
    clusters = load_workspace(tmp_path / "work").clusters
    assert len(clusters) == 4
    assert all(one.spec.limits.objects.runs >= max(ALL_SIZES) / TEAMS for one in clusters.values())
    assert clusters["eu-airgap"].spec.limits.workers == 64
