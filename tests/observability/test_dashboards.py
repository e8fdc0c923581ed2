"""Dashboards: Grafana's shape, panels that do not overlap, expressions that read series that exist."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gangplan.generators.dashboards import generate_dashboards
from gangplan.model.site import Site
from tests.observability.known import known, names_in
from tests.observability.sites import NEW, SITES
from tests.observability.test_rules import each_site, kueue_of, recorded

SCHEMA = json.loads((Path(__file__).parent / "dashboard.schema.json").read_text(encoding="utf-8"))
TITLES = [
    "MPIJob Resource Usage by Project",
    "MPIJob Worker Performance",
    "MPIJob Scheduler Queue Depth",
]
# Values that Grafana fills in before it asks Prometheus.
VARIABLES = {
    "$__rate_interval": "5m",
    "$__range": "1h",
    "$team": ".*",
    "$queue": ".*",
    "$run": "resnet-1a2b3c4d",
}


def models(site: Site) -> list[dict[str, Any]]:
    """Return the dashboards of a site as Grafana reads them."""
    return [json.loads(text) for body in generate_dashboards(site) for text in body["data"].values()]


def expressions(site: Site) -> list[str]:
    """Return every expression of every panel, as Prometheus gets it."""
    found = [
        target["expr"] for model in models(site) for panel in model["panels"] for target in panel["targets"]
    ]
    return [re.sub(r"\$\w+", lambda match: VARIABLES[match[0]], text) for text in found]


@each_site
def test_dashboards_satisfy_grafanas_schema(site: Site) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert [model["title"] for model in models(site)] == TITLES
    for model in models(site):
        assert [error.message for error in validator.iter_errors(model)] == []


def test_the_schema_refuses_broken_dashboards() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    model = models(NEW)[0]
    for broken in (
        {**model, "panels": []},
        {**model, "uid": "a b"},
        {
            **model,
            "panels": [*model["panels"], {**model["panels"][0], "datasource": {"type": "loki", "uid": "x"}}],
        },
        {**model, "templating": {"list": model["templating"]["list"][:1]}},
    ):
        assert list(validator.iter_errors(broken))


@each_site
def test_ids_are_unique_and_panels_do_not_overlap(site: Site) -> None:
    for model in models(site):
        panels = model["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert len({panel["title"] for panel in panels}) == len(panels)
        for one, two in combinations([panel["gridPos"] for panel in panels], 2):
            apart_x = one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
            apart_y = one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"]
            assert apart_x or apart_y
        assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


@each_site
def test_every_series_and_variable_exists(site: Site) -> None:
    there = known(kueue_of(site)) | recorded(site)
    for model in models(site):
        variables = {f"${entry['name']}" for entry in model["templating"]["list"]}
        variables |= {"$__rate_interval", "$__range"}
        queries = [entry["definition"] for entry in model["templating"]["list"][1:]]
        asked = [target["expr"] for panel in model["panels"] for target in panel["targets"]]
        for text in [*queries, *asked]:
            assert set(re.findall(r"\$\w+", text)) <= variables, text
        for text in asked:
            assert names_in(text) <= there, text
        for text in queries:
            series, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", text).groups()  # type: ignore[union-attr]
            assert series in there
            assert label in ("team", "run", "cluster_queue")


def test_the_run_can_be_chosen() -> None:
    names = [entry["name"] for entry in models(NEW)[1]["templating"]["list"]]
    assert names == ["datasource", "team", "run"]


def test_pending_resources_are_shown_since_kueue_0_18() -> None:
    texts = {name: json.dumps(models(SITES[name])) for name in ("new", "old", "bare")}
    assert "kueue_cluster_queue_resource_pending" in texts["new"]
    assert "kueue_cluster_queue_resource_pending" not in texts["old"]
    assert "kueue_" not in texts["bare"]


@each_site
def test_dashboards_are_small_and_always_the_same(site: Site) -> None:
    for body in generate_dashboards(site):
        assert len(json.dumps(body)) < 100_000, "a ConfigMap holds 1 MiB"
    assert generate_dashboards(site) == generate_dashboards(site)


@pytest.mark.parametrize("name", ["uid", "title"])
def test_uids_and_titles_are_unique(name: str) -> None:
    assert len({model[name] for model in models(NEW)}) == 3
    assert [model["uid"] for model in models(NEW)] == [
        "gangplan-usage",
        "gangplan-workers",
        "gangplan-queues",
    ]
