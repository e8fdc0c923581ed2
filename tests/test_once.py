"""What runs have in common is processed once: counted, because times differ between machines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan import workspace
from gangplan.generators.common import escape_kubelet_variable_references
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.plan import command
from gangplan.spec.digest import compute_spec_digest
from gangplan.spec.job import TrainingJob
from gangplan.validate.apiserver.defaulting import omitted
from gangplan.validate.promise import needs

SAMPLE = Path(__file__).resolve().parents[1]


def test_a_spec_is_hashed_once_for_all_its_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[TrainingJob] = []

    def counted(spec: TrainingJob, files: Any) -> str:
        hashed.append(spec)
        return compute_spec_digest(spec, files)

    monkeypatch.setattr(workspace, "compute_spec_digest", counted)
    result = preview_render(Request(SAMPLE, engine="serial"))
    assert len(hashed) == result.specs < len(result.runs)
    specs = {run.unit.job.source: run.unit.job.spec_hash for run in result.runs}
    assert all(run.unit.job.spec_hash == specs[run.unit.job.source] for run in result.runs)


def test_needs_of_unpatched_pods_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Any] = []
    plain = needs._find_pod_object_needs

    def counted(spec: Any) -> Any:
        looked.append(spec)
        return plain(spec)

    monkeypatch.setattr(needs, "_find_pod_object_needs", counted)
    assert preview_render(Request(SAMPLE, clusters=("onprem-a100",), engine="serial")).runs
    assert not looked


@given(st.text() | st.text(alphabet="$()aé{", max_size=12))
def test_literal_escapes_only_dollars_that_would_be_expanded(text: str) -> None:
    assert escape_kubelet_variable_references(text) == re.sub(r"\$(?=[$(]|[^\x00-\x7f])", "$$", text)


_LEAVES = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a"])
_NAMES = st.sampled_from(["value", "labels", "replicas", "ports", "podSelector"])


@given(st.dictionaries(_NAMES, st.recursive(_LEAVES, lambda some: st.dictionaries(_NAMES, some))))
def test_empty_values_are_left_out_of_a_copy(value: dict[str, Any]) -> None:
    before = repr(value)
    kept = omitted.convert_to_go_form(value)
    assert repr(value) == before
    assert kept is not value
    assert None not in kept.values()
    assert repr(omitted.convert_to_go_form(kept)) == repr(kept)


def test_a_command_without_braces_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = preview_render(Request(SAMPLE, engine="serial")).runs
    plain = [run.unit.job for run in runs if "{" not in " ".join(run.unit.job.command)]
    copied: list[Any] = []
    monkeypatch.setattr(command.dataclasses, "replace", lambda *given, **_: copied.append(given))
    finals = [command.build_final_command(job) for job in plain]
    assert finals.count(None) < len(plain)
    assert len(copied) == finals.count(None)  # commands with a finding are copied, to record it
