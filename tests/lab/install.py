"""Put custom resources and webhooks into a cluster that has no cluster network."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import client
from .client import Client, Object

CRD = "CustomResourceDefinition"
CRD_GROUP = "apiextensions.k8s.io/v1"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def local(item: Object, port: int, bundle: str) -> Object:
    """Return an object whose webhooks are called on a loopback port, not through a Service."""
    result = copy.deepcopy(item)
    for config in _client_configs(result):
        path = config.get("service", {}).get("path", "/")
        config.clear()
        config |= {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return result


def _client_configs(item: Object) -> Iterable[dict[str, Any]]:
    """Return every place of an object that says how to reach a webhook."""
    if item["kind"] in WEBHOOKS:
        return [hook["clientConfig"] for hook in item["webhooks"]]
    conversion = item["spec"].get("conversion", {}) if item["kind"] == CRD else {}
    return [conversion["webhook"]["clientConfig"]] if "webhook" in conversion else []


def kinds(objects: Iterable[Object], *wanted: str) -> list[Object]:
    """Return the objects of some kinds."""
    return [item for item in objects if item["kind"] in wanted]


def create(api: Client, objects: Iterable[Object]) -> None:
    """Create objects in parallel; leave those alone that exist already."""

    def one(item: Object) -> None:
        try:
            api.create(item)
        except client.ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    with ThreadPoolExecutor(max_workers=8) as pool:
        list(pool.map(one, objects))


def served(api: Client, definitions: Iterable[Object]) -> bool:
    """Return whether the API server serves and lists every version of every kind that was defined."""
    known = api.discover()
    return all(
        f"{item['spec']['group']}/{version['name']}/{item['spec']['names']['kind']}" in known
        for item in definitions
        for version in item["spec"]["versions"]
        if version["served"]
    )
