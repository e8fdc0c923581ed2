"""Grafana dashboards as ConfigMaps: use per project, workers of a run, depth of the queues.

templates/dashboards/ defines what each panel queries and shows; this module converts it to Grafana's own
model. Expressions use series that generators/alerts.py records, and series of exporters listed in
docs/observability.md.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from gangplan.generators.alerts import generate_prometheus_rule_annotations
from gangplan.generators.common import MANAGED_LABEL, render_to_objects
from gangplan.model.site import Monitor, Site
from gangplan.objects import Body

# Grafana 12 (apps/dashboard/pkg/migration/schemaversion); older versions ignore what they do not know.
SCHEMA_VERSION = 42
# Each name is also the uid in links and bookmarks, so it never changes.
TEMPLATES = {
    "gangplan-usage": "dashboards/gangplan-usage.yaml.j2",
    "gangplan-workers": "dashboards/gangplan-workers.yaml.j2",
    "gangplan-queues": "dashboards/gangplan-queues.yaml.j2",
}
WIDTH = 24
# The width of lines of JSON.
_JSON_WIDTH = 100
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Colours of values that are fine, near a fault, and faulty.
COLOURS = ("green", "orange", "red")
_LABEL = re.compile(r"\{(\w+)\}")


def generate_dashboards(site: Site) -> list[Body]:
    """Return one ConfigMap per dashboard, if the cluster has monitoring."""
    if site.monitor is None:
        return []
    return [_generate_grafana_dashboard_config_map(site, site.monitor, name) for name in TEMPLATES]


def _generate_grafana_dashboard_config_map(site: Site, monitor: Monitor, name: str) -> Body:
    labels = dict(monitor.dashboard_labels) | {MANAGED_LABEL: "gangplan"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": monitor.namespace,
            "labels": dict(sorted(labels.items())),
            "annotations": dict(generate_prometheus_rule_annotations(site)),
        },
        "data": {f"{name}.json": _write_grafana_dashboard(name, *_choose_grafana_panels(site))},
    }


@cache
def _write_grafana_dashboard(name: str, queues: bool, has_pending_resources: bool) -> str:
    """Return a dashboard as JSON, which most clusters have in common."""
    values = {"queues": queues, "has_pending_resources": has_pending_resources}
    return _format_grafana_json(_generate_grafana_dashboard(name, values)) + "\n"


def _choose_grafana_panels(site: Site) -> tuple[bool, bool]:
    """Return whether a cluster has queues, and whether its Kueue measures what pending runs ask for."""
    kueue = site.platform.kueue_line
    return bool(site.queues), bool(site.queues) and kueue is not None and kueue.has_pending_metric


def _format_grafana_json(value: Any, indent: str = "") -> str:
    """Return a value as JSON, filling lines; only entries that do not fit on one have lines of their own."""
    text = json.dumps(value, sort_keys=True)
    if not (isinstance(value, dict | list) and value) or len(indent) + len(text) <= _JSON_WIDTH:
        return text
    inner, lines = f"{indent} ", list[str]()
    entries = (
        [f"{json.dumps(key)}: {_format_grafana_json(item, inner)}" for key, item in sorted(value.items())]
        if isinstance(value, dict)
        else [_format_grafana_json(item, inner) for item in value]
    )
    for entry in entries:
        if lines and "\n" not in lines[-1] + entry and len(lines[-1]) + len(entry) + 3 <= _JSON_WIDTH:
            lines[-1] += f" {entry},"
        else:
            lines.append(f"{inner}{entry},")
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + "\n".join(lines)[len(inner) : -1] + closing


def _generate_grafana_dashboard(name: str, values: dict[str, bool]) -> dict[str, Any]:
    """Return a dashboard as Grafana stores it."""
    (plan,) = render_to_objects(TEMPLATES[name], values)
    return {
        "annotations": {"list": []},
        "description": plan["description"],
        "editable": False,
        "graphTooltip": 1,
        "links": [],
        "panels": _place_grafana_panels(plan["panels"]),
        "refresh": "1m",
        "schemaVersion": SCHEMA_VERSION,
        "tags": ["gangplan", "mpijob"],
        "templating": {
            "list": [
                _generate_grafana_datasource_variable(),
                *(_generate_grafana_label_variable(entry) for entry in plan["variables"]),
            ]
        },
        "time": {"from": f"now-{plan['window']}", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "title": plan["title"],
        "uid": name,
        "version": 1,
    }


def _generate_grafana_datasource_variable() -> dict[str, Any]:
    """Return the variable that chooses the Prometheus: a fixed one would work in one Grafana only."""
    return {
        "current": {},
        "hide": 0,
        "includeAll": False,
        "label": "Data source",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "type": "datasource",
    }


def _generate_grafana_label_variable(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a variable that chooses among the values of a label.

    If several values can be chosen, the first choice is all of them.
    """
    every = bool(entry.get("multi"))
    return {
        "allValue": ".*" if every else None,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]} if every else {},
        "datasource": SOURCE,
        "definition": entry["query"],
        "hide": 0,
        "includeAll": every,
        "label": entry["label"],
        "multi": every,
        "name": entry["name"],
        "options": [],
        "query": {"query": entry["query"], "refId": "variable"},
        # When the time range changes, because runs come and go.
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "type": "query",
    }


def _place_grafana_panels(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the panels, placed from left to right as they fit."""
    panels, x, y, tallest = [], 0, 0, 0
    for number, entry in enumerate(entries, 1):
        width, height = entry.get("width", 12), entry.get("height", 8)
        if x + width > WIDTH:
            x, y, tallest = 0, y + tallest, 0
        panels.append(_generate_grafana_panel(entry, number, {"h": height, "w": width, "x": x, "y": y}))
        x, tallest = x + width, max(tallest, height)
    return panels


def _generate_grafana_panel(entry: dict[str, Any], number: int, place: dict[str, int]) -> dict[str, Any]:
    kind = entry["kind"]
    return {
        "datasource": SOURCE,
        "description": entry["description"],
        "fieldConfig": {"defaults": _generate_grafana_panel_field_defaults(entry), "overrides": []},
        "gridPos": place,
        "id": number,
        "options": _OPTIONS[kind],
        "targets": [
            _generate_grafana_panel_query(query, index, kind) for index, query in enumerate(entry["queries"])
        ],
        "title": entry["title"],
        "transformations": _TIDY if kind == "table" else [],
        "type": kind,
    }


def _generate_grafana_panel_field_defaults(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the unit, limits and colours of a panel's values."""
    steps = entry.get("steps", [])
    field: dict[str, Any] = {
        "color": {"mode": "thresholds" if entry["kind"] != "timeseries" else "palette-classic"},
        "custom": _generate_grafana_time_series_style(entry) if entry["kind"] == "timeseries" else {},
        "thresholds": {
            "mode": "absolute",
            "steps": [
                {"color": colour, "value": value}
                for colour, value in zip(COLOURS, [None, *steps], strict=False)
            ],
        },
        "unit": entry["unit"],
    }
    return field | {name: entry[name] for name in ("min", "max", "decimals") if name in entry}


def _generate_grafana_time_series_style(entry: dict[str, Any]) -> dict[str, Any]:
    """Return how a time series is drawn; its steps, if any, are dashed lines."""
    return {
        "drawStyle": "line",
        "fillOpacity": 30 if entry.get("stack") else 5,
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if entry.get("stack") else "none"},
        "thresholdsStyle": {"mode": "dashed" if entry.get("steps") else "off"},
    }


def _generate_grafana_panel_query(query: dict[str, Any], index: int, kind: str) -> dict[str, Any]:
    is_range = kind == "timeseries"
    return {
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query["expr"],
        "format": "table" if kind == "table" else "time_series",
        "instant": not is_range,
        "legendFormat": _LABEL.sub(r"{{\1}}", query["legend"]),
        "range": is_range,
        "refId": chr(ord("A") + index),
    }


_LAST = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: dict[str, dict[str, Any]] = {
    "timeseries": {
        "legend": {
            "calcs": ["mean", "max"],
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": _LAST,
        "textMode": "auto",
    },
    "bargauge": {
        "displayMode": "basic",
        "orientation": "horizontal",
        "reduceOptions": _LAST,
        "showUnfilled": True,
    },
    "table": {"cellHeight": "sm", "showHeader": True, "sortBy": [{"desc": True, "displayName": "Value"}]},
}
_TIDY = [{"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}}}]
