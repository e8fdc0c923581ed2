"""`make bench` ends in its stated time, whatever the machine: it measures less where it must."""

from __future__ import annotations

import pytest

from benchmarks.budget import TRIAL, Speed, fitted

FAST, SLOW, CRAWLING = Speed(0.005, 0.029, 0.6), Speed(0.03, 0.15, 2.5), Speed(0.5, 2.0, 5.0)


def test_a_fast_machine_measures_all() -> None:
    assert fitted(1000, 3, FAST, 330) == (1000, 3)


@pytest.mark.parametrize("seconds", [120, 240, 600])
@pytest.mark.parametrize("speed", [FAST, SLOW], ids=["fast", "slow"])
def test_it_ends_in_time(speed: Speed, seconds: float) -> None:
    specs, times = fitted(1000, 3, speed, seconds)
    assert speed.needs(specs, times) <= seconds
    assert TRIAL <= specs <= 1000
    assert 1 <= times <= 3


def test_a_machine_that_crawls_measures_the_least() -> None:
    assert fitted(1000, 3, CRAWLING, 240) == (TRIAL, 1)


def test_more_time_never_measures_less() -> None:
    found = [fitted(1000, 3, SLOW, seconds) for seconds in range(30, 1200, 30)]
    assert found == sorted(found)
