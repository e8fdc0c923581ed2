"""Run every comparison of policies, for `python -m tests.e2e.fidelity --what policies`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from gangplan.policy.export import export_objects
from gangplan.resolve.platform import resolve_platform_of_cluster_file
from gangplan.validate.versions import choose_schema_versions_of
from gangplan.workspace import load_workspace
from tests.e2e import story
from tests.e2e.policies import ask, broken, case_check, crd_rules
from tests.lab.client import Client
from tests.lab.profiles import Profile


def run(
    client: Client, profile: Profile, seed: int, count: int, say: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Return how many disagreements there are, and the report. Profiles without a sample cluster have
    none."""
    cluster = story.cluster_of(profile.trainer, profile.kueue)
    if cluster is None:
        return 0, [f"no sample cluster has the versions of profile {profile.name}"]
    judged, lost, wrong = case_check.compare(client, ask.ROOT, profile.trainer)
    said = [f"cases of policies: {judged} judged, {lost} not, {len(wrong)} disagreements", *wrong[:20]]
    objects = ask.ask(client, cluster, seed, count, say)
    with tempfile.TemporaryDirectory(prefix="gangplan-policies-") as folder:
        root = ask.workspace(Path(folder), cluster)
        loaded = load_workspace(root)
        versions = choose_schema_versions_of(resolve_platform_of_cluster_file(loaded.clusters[cluster]))
        judges, bodies = export_objects(loaded, cluster), ask.random_objects(root, cluster)
    admission = [body for body in judges if body["apiVersion"].startswith("admissionregistration")]
    mistakes = broken.ask(client, admission, versions, seed, count)
    rules = crd_rules.ask(client, bodies, versions, seed, count)
    asked = f"{mistakes.asked} asked, {mistakes.refused} refused, {len(mistakes.wrong)} disagreements"
    said += [
        *ask.lines(objects, cluster),
        f"broken policies: {asked}",
        *mistakes.wrong[:20],
        *crd_rules.lines(rules, cluster),
    ]
    return len(wrong) + len(objects.wrong) + len(mistakes.wrong) + len(rules.wrong), said
