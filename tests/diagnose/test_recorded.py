"""For each sample that a real program wrote (tests/diagnose/recorded/), the right cause comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.diagnose.causes import list_diagnosis_causes
from tests.diagnose.samples import Sample, causes_of, samples, save
from tests.diagnose.test_causes import judged

ALL = samples()


@pytest.mark.parametrize(("group", "sample"), ALL, ids=[f"{group}-{one.name}" for group, one in ALL])
def test_a_real_sample_names_its_cause(group: str, sample: Sample, tmp_path: Path) -> None:
    (verdict,) = judged(save(tmp_path, sample)) or (None,)
    assert verdict is not None
    assert [one.cause.id for one in verdict.found][:1] == [sample.cause], verdict.found


@pytest.mark.parametrize(("group", "sample"), ALL, ids=[f"{group}-{one.name}" for group, one in ALL])
def test_a_sample_names_its_program_and_no_path_of_the_machine(group: str, sample: Sample) -> None:
    assert sample.cause in list_diagnosis_causes()
    assert any(letter.isdigit() for letter in sample.by), f"{sample.name}: no version"
    assert sample.how
    text = f"{sample.log}{sample.objects}"
    assert "/root/." not in text.replace("/root/.ssh", "")
    assert "/tmp/pytest" not in text
    assert "/cache/" not in text


def test_enough_causes_have_a_real_sample() -> None:
    found = causes_of(one for _, one in ALL)
    assert len(found) >= 60, sorted(set(list_diagnosis_causes()) - found)
