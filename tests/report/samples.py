"""Findings for tests of reports: of every kind, and with texts that try to break out of each format."""

from __future__ import annotations

from hypothesis import strategies as st

from gangplan.findings import Finding, Fix, Location, Waived
from gangplan.report.model import Report
from gangplan.rulebook import Rulebook
from gangplan.rules.model import Severity

WAIVER = Waived(Location("policies/waivers/legacy.yaml", 3, 1), "2027-01-31", "moves in spring", "platform")

NASTY = (
    "one\ntwo\r\nthree",
    "::error file=a::b",
    "\n::add-mask::x",
    "##[group]x ##vso[task.setvariable variable=a]b",
    "100% of a,b:c %0A%25",
    "<script>alert(1)</script> <!-- --> </details> &lt;",
    "[a](javascript:b) ![c](d) https://example.com www.example.com",
    "@somebody #12 :tada: `code` **bold** __x__ ~~y~~ | $a$ \\",
    "\x1b[31mred\x1b]8;;https://example.com\x07link\x00\x85\u2028\u202eesrever",
    "\ufffe\uffff]]>",
    "half \ud83d of a pair",
    "ends in a backslash \\",
    "'quoted' \"twice\" für Zürich, 東京 🚀",
)


def finding(
    message: str = "memory: '32GB' is not a quantity",
    severity: Severity = Severity.ERROR,
    rule: str = "spec-value",
    file: str = "specs/nlp/filings.yaml",
    line: int = 8,
    help: str = "Write 32Gi.",
) -> Finding:
    """Return a finding."""
    return Finding(
        Rulebook().policy(rule), Location(file, line, 9 if line else 0), message, help, level=severity
    )


_PATCH = Location("overlays/lab/kustomization.yaml", 5, 3)
_NOTES = Location("specs/nlp/notes.yaml", 3, 8)


def all_kinds() -> tuple[Finding, ...]:
    """Return findings of every kind: severities, an object, a whole file, waived, waiver expired, fixable."""
    where = Location("specs/nlp/filings.yaml", 8, 9)
    return (
        Finding(Rulebook().policy("spec-value"), where, "memory: '32GB' is not a quantity", "Write 32Gi.",
            fix=Fix(where.file, 8, 9, 8, 13, "32Gi", "GB is not a unit of Kubernetes"),
        ),
        Finding(Rulebook().policy("schema"), _PATCH, "unknown field 'sped'",
            "Correct the patch.", "TrainJob/nlp/filings", "spec.sped",
        ),
        Finding(Rulebook().policy("schema"), _PATCH, "unknown field 'sped'",
            "Correct the patch.", "TrainJob/nlp/notes", "spec.sped",
        ),
        finding("4 ranks share 2 GPUs on each worker", Severity.WARNING, "slots-not-gpus", line=9),
        finding("the run is kept as it was rendered", Severity.NOTE, "run-kept", line=1, help=""),
        finding("there is no image catalog", Severity.ERROR, "catalog-missing", "images/catalog.yaml", 0),
        Finding(Rulebook().policy("image-digest"), _NOTES, "the image has no digest",
            "Add one.", "TrainingRuntime/nlp/notes", "spec.template", WAIVER,
        ),
        Finding(Rulebook().policy("image-latest"), _NOTES, "the image is latest",
            "Name one.", level=Severity.WARNING,
            waiver=Waived(WAIVER.where, "2026-01-31", "was short", "platform", is_over=True),
        ),
    )  # fmt: skip


def report(*findings: Finding, folder: str = "", fail_on: Severity = Severity.ERROR) -> Report:
    """Return a report of two specs."""
    files = ("specs/nlp/filings.yaml", "specs/nlp/second.yaml")
    checked = {"specs": 2, "runs": 2, "objects": 31, "policies": 1}
    return Report(tuple(findings), checked, ("embedded validator",), files, folder, fail_on)


_TEXTS = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=30))
_FILES = st.one_of(
    st.sampled_from(["specs/nlp/filings.yaml", "specs/a b/c,d:e%f#.yaml", "overlays/lab/cluster.yaml"]),
    st.builds(
        "specs/nlp/{}.yaml".format,
        st.text(st.characters(codec="utf-8", exclude_characters="/\0"), max_size=8),
    ),
)
_WAIVERS = st.one_of(
    st.none(),
    st.builds(
        Waived,
        st.just(WAIVER.where),
        st.just("2027-01-31"),
        _TEXTS,
        st.just("platform"),
        is_over=st.booleans(),
    ),
)
FINDINGS = st.lists(
    st.builds(
        Finding,
        st.sampled_from(["spec-value", "schema", "image-digest", "quota-over-pool"]).map(Rulebook().policy),
        st.builds(Location, _FILES, st.integers(1, 99), st.integers(1, 99)),
        _TEXTS,
        _TEXTS,
        st.sampled_from(["", "TrainJob/nlp/filings", "Namespace/nlp"]),
        st.sampled_from(["", "spec.sped", "metadata.labels[a.b/c]"]),
        _WAIVERS,
        level=st.sampled_from(Severity),
    ),
    max_size=8,
)
