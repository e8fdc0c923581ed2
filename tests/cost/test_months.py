"""How often a schedule starts in a month, compared with counting its starts one by one, in many zones."""

from __future__ import annotations

import re
from datetime import date
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.model.cron import iterate_cron_starts, parse_cron
from gangplan.model.months import (
    Month,
    count_starts,
    find_month_with_most_cron_starts,
    list_twelve_months_from,
    parse_months,
)
from gangplan.model.starts import find_time_zone
from tests.schedules.test_laws import EXPRESSIONS, ZONES

MONTHS = st.builds(Month, st.integers(2026, 2031), st.integers(1, 12))
MORE = st.sampled_from((*ZONES, "Pacific/Apia", "America/Havana", "Asia/Tehran", "Africa/Cairo"))


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, MORE, MONTHS)
def test_starts_of_a_month_equal_those_counted_one_by_one(expression: str, zone: str, month: Month) -> None:
    found = iterate_cron_starts(parse_cron(expression), month.begin - 1, find_time_zone(zone))
    assert count_starts(expression, zone, month) == sum(
        1 for _ in takewhile(lambda at: at < month.next.begin, found)
    )


@settings(max_examples=20, deadline=None)
@given(EXPRESSIONS, MORE, st.integers(2026, 2031))
def test_months_add_up_to_the_year(expression: str, zone: str, year: int) -> None:
    months = parse_months(str(year))
    last = months[-1].next.begin
    found = takewhile(
        lambda at: at < last,
        iterate_cron_starts(parse_cron(expression), months[0].begin - 1, find_time_zone(zone)),
    )
    assert sum(count_starts(expression, zone, one) for one in months) == sum(1 for _ in found)


@settings(max_examples=40, deadline=None)
@given(EXPRESSIONS, MORE, MONTHS)
def test_no_month_has_more_than_the_busiest(expression: str, zone: str, month: Month) -> None:
    most, when = find_month_with_most_cron_starts(expression, zone)
    assert count_starts(expression, zone, month) <= most == count_starts(expression, zone, when)


# Expression, zone, month, starts; Berlin's clocks go forward on 2026-03-29 and back on 2026-10-25.
COUNTED = {
    "every night": ("0 2 * * *", "Etc/UTC", "2026-12", 31),
    "every Sunday of a month with five": ("0 22 * * SUN", "Europe/Berlin", "2026-11", 5),
    "an hour that is left out": ("30 2 * * *", "Europe/Berlin", "2026-03", 30),
    "an hour that comes twice": ("30 2 * * *", "Europe/Berlin", "2026-10", 32),
    "a day that this month has not": ("0 0 31 * *", "Etc/UTC", "2026-11", 0),
    "the last day of a leap year's February": ("0 0 29 2 *", "Etc/UTC", "2028-02", 1),
    "the first, which is still the month before in UTC": ("30 0 1 * *", "Europe/Berlin", "2026-11", 1),
    "every minute": ("* * * * *", "Etc/UTC", "2026-02", 28 * 1440),
}


@pytest.mark.parametrize("name", COUNTED)
def test_each_month_has_the_listed_number_of_starts(name: str) -> None:
    expression, zone, month, wanted = COUNTED[name]
    assert count_starts(expression, zone, *parse_months(month)) == wanted


def test_the_busiest_month_is_the_first_with_the_most_starts() -> None:
    assert find_month_with_most_cron_starts("0 2 * * *", "Etc/UTC") == (31, Month(2026, 1))
    assert find_month_with_most_cron_starts("0 22 * * SUN", "Etc/UTC") == (5, Month(2026, 3))
    assert find_month_with_most_cron_starts("0 0 31 2 *", "Etc/UTC")[0] == 0


def test_months_and_years_are_read_and_other_texts_refused() -> None:
    assert [str(one) for one in parse_months("2026-12")] == ["2026-12"]
    assert len(parse_months("2026")) == 12
    assert [str(one) for one in list_twelve_months_from(date(2026, 11, 23))][::11] == ["2026-11", "2027-10"]
    for text in (
        "",
        "2026-13",
        "2026-1",
        "26-01",
        "٢٠٢٦-01",
        "2026-00",
        "0000",
        "9999",
        "2026-12-01",
        "2026-12\n",
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            parse_months(text)
