"""Compare gangplan's and the API server's verdicts on random objects."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.policy.export import export_objects
from gangplan.policy.objects import POLICY_FILE
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.source import load_objects
from gangplan.validate.apiserver.policy.judge import Namespaces, PolicyEvaluator
from gangplan.validate.apiserver.policy.model import PlacedObject
from gangplan.validate.apiserver.policy.read import read_policy_objects
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests.e2e.policies.mutations import mutated
from tests.e2e.policies.server import Server, same, softened
from tests.lab.client import ApiError, Client

Object = dict[str, Any]
ROOT = Path(__file__).parents[3]
PACKS = "baseline, restricted, images, labels, lifecycle, priorities, network, data"
REGIMES = "hipaa, gdpr, fedramp, pci-dss, sox, residency"
KINDS = ("TrainingRuntime", "TrainJob", "NetworkPolicy", "PersistentVolumeClaim", "ConfigMap", "Namespace")


@dataclass(slots=True)
class Result:
    """Counts, and the disagreements in words."""

    judged: int = 0
    lost: int = 0
    refused: int = 0
    messages: int = 0
    wrong: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    policies: Counter[str] = field(default_factory=Counter)


def workspace(folder: Path, cluster: str) -> Path:
    """Create the sample workspace with every pack on one cluster."""
    for name in ("specs", "overlays", "images"):
        shutil.copytree(ROOT / name, folder / name)
    file = folder / "overlays" / cluster / "cluster.yaml"
    kept, is_inside = [], False
    for line in file.read_text().splitlines():
        is_inside = line.startswith("policies:") or (is_inside and line.startswith((" ", "#")))
        if not is_inside:
            kept.append(line)
    file.write_text("\n".join([*kept, f"policies: {{packs: [{PACKS}, {REGIMES}]}}", ""]))
    return folder


def random_objects(root: Path, cluster: str) -> list[Object]:
    """Return what gangplan renders for a cluster, except for its policies."""
    texts = preview_render(Request(root, (cluster,), engine="serial", jobs=1)).texts
    judged = [text for path, text in sorted(texts.items()) if not path.endswith(POLICY_FILE)]
    return [body for text in judged for body in load_objects(text)]


def ask(
    client: Client, cluster: str, seed: int, count: int, say: Callable[[str], None] = lambda _: None
) -> Result:
    """Ask about `count` mutated objects of a sample cluster whose versions are the lab's."""
    result, random, server = Result(), Random(seed), Server(client)
    with tempfile.TemporaryDirectory(prefix="gangplan-policies-") as folder:
        root = workspace(Path(folder), cluster)
        loaded = load_workspace(root)
        versions = choose_schema_versions_of(resolve_platform_of_cluster_file(loaded.clusters[cluster]))
        judges = [softened(body) for body in export_objects(loaded, cluster)]
        objects = random_objects(root, cluster)
    spaces = [_regimes(body, index) for index, body in enumerate(objects) if body["kind"] == "Namespace"]
    reading = read_policy_objects([PlacedObject(body) for body in judges], versions)
    assert not [one for one in reading.problems if "inert" not in one.rule], reading.problems
    evaluator = PolicyEvaluator(
        versions, reading.policies, reading.bindings, reading.others, Namespaces(spaces, versions)
    )
    for space in spaces:
        client.apply(space)
    server.install(judges)
    try:
        chosen = [body for body in objects if body["kind"] in KINDS]
        for number in range(count):
            body = mutated(random.choice(chosen), random)
            body["metadata"]["name"] = f"{str(body['metadata']['name'])[:40]}-{number}"
            _one(server, evaluator, body, result)
            say(f"{result.judged} judged, {len(result.wrong)} disagreements")
    finally:
        server.remove()
    return result


def _regimes(body: Object, index: int) -> Object:
    """Put every second namespace under compliance regimes."""
    regimes = ("hipaa", "gdpr", "fedramp", "pci-dss", "sox")
    marked = copy.deepcopy(body)
    if index % 2:
        marked["metadata"]["labels"] |= {f"gangplan.dev/{name}": "true" for name in regimes}
        marked["metadata"]["labels"]["gangplan.dev/residency"] = "eu"
    return marked


def _one(server: Server, evaluator: PolicyEvaluator, body: Object, result: Result) -> None:
    try:
        answer = server.ask(body)
    except (ApiError, LookupError, ValueError, TypeError, AttributeError):
        result.lost += 1
        return
    if answer.refusal and not answer.is_judged:
        result.lost += 1
        return
    ours = frozenset(
        (one.policy.name, one.binding.name, one.message)
        for one in evaluator.judge([body])
        if not one.is_undecided
    )
    result.judged += 1
    result.refused += bool(answer.said)
    result.messages += len(answer.said)
    result.kinds[body["kind"]] += 1
    result.policies.update(name for name, _, _ in answer.said)
    if not same(ours, answer):
        only = sorted(ours - answer.said), sorted(answer.said - ours)
        result.wrong.append(
            f"{body['kind']}: only we say {only[0]}, only the server says {only[1]}; {answer.refusal[:200]}"
        )


def lines(result: Result, title: str) -> list[str]:
    """Return the lines of the report."""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result.kinds.items()))
    refusals = (
        f"{result.refused} break a policy, {result.messages} messages of {len(result.policies)} policies"
    )
    return [
        f"policies, {title}: {result.judged} objects judged ({kinds}), {result.lost} refused before",
        f"  {refusals}; {len(result.wrong)} disagreements",
        *(f"  {text}" for text in result.wrong[:20]),
    ]
