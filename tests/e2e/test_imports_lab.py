"""Jobs of other systems and the runs that are imported from them, on a real control plane.

Their pods are equal except for the differences that the report names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gangplan.imports.batch import ImportedSource, judge_import_batch, read_import_batch
from gangplan.imports.draft import ImportTarget
from gangplan.imports.kinds import SOURCE_KINDS
from gangplan.imports.write import write_imported_files
from gangplan.objects import dump_all
from gangplan.pipeline.render import preview_render
from gangplan.pipeline.request import Request
from gangplan.source import load_objects
from gangplan.spec.cluster import Cluster
from gangplan.workspace import load_workspace
from tests import plain
from tests.e2e import world
from tests.imports.sources import JOBSET, MPIJOB, TRAINJOB
from tests.lab import fixtures
from tests.lab.client import poll
from tests.lab.lab import Lab
from tests.lab.stages import Plot, Story
from tests.wild.differences import Pair, compare
from tests.wild.makers import maker_of
from tests.workspaces import STOCK, write

pytestmark = pytest.mark.e2e
THEIRS = "theirs"
# Without what the simulated nodes lack: a label of blocks, and what only Kueue would do for them.
TIDE = JOBSET.replace("  annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: example.com/block}\n", "")
PLAIN = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: sand}
spec:
  replicatedJobs:
  - name: grains
    template:
      spec:
        parallelism: 3
        completions: 3
        template:
          spec:
            terminationGracePeriodSeconds: 60
            containers:
            - name: sand
              image: registry.example.com/sea/sand:1
              command: [count, --all]
              workingDir: /beach
              env:
              - {name: GRAINS, value: "7"}
              - name: NODE
                valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
              resources: {limits: {cpu: 4, memory: 8Gi}, requests: {cpu: 4, memory: 8Gi}}
              volumeMounts:
              - {name: room, mountPath: /room}
            volumes:
            - {name: room, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
"""
# Without what Kueue writes itself, and without a scheduler that the lab does not have.
GANG = "  podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 100}}\n"
BEES = (
    TRAINJOB.replace(GANG, "")
    .replace("  suspend: true\n", "")
    .replace(TRAINJOB[TRAINJOB.index("  - manager: kueue") : TRAINJOB.index("---")], "")
)
# Without the queue that it has in its own namespace only.
HEAT = MPIJOB.replace(", kueue.x-k8s.io/queue-name: training", "")
CASES = {"jobset": (TIDE, PLAIN), "trainjob": (BEES,), "mpijob": (HEAT,)}
PODS = {"tide": 4, "sand": 3, "bees": 3, "heat": 5}


def claims_of(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the same claims for the other namespace, each with a volume of its own."""
    found = []
    for body in plain.load_all(dump_all(objects)):
        if body["kind"] == "PersistentVolumeClaim":
            body["metadata"]["namespace"] = THEIRS
            body["spec"]["volumeName"] = f"{THEIRS}-{body['metadata']['name']}"
        else:
            body["metadata"]["name"] = f"{THEIRS}-{body['spec']['claimRef']['name']}"
            body["spec"]["claimRef"]["namespace"] = THEIRS
        found.append(body)
    return found


def imported(root: Path) -> list[ImportedSource]:
    """Import all cases into a workspace."""
    write(root, STOCK)
    (root / "specs/nlp/filings.yaml").unlink()
    done: list[ImportedSource] = []
    for kind, texts in CASES.items():
        folder = root.parent / kind
        write(folder, {f"{number}.yaml": text for number, text in enumerate(texts)})
        batch = read_import_batch(SOURCE_KINDS[kind], [folder], ImportTarget(load_workspace(root), "nlp"), {})
        judge_import_batch(batch, root)
        assert not [one for one in batch.everything if one.is_error]
        write_imported_files(
            root, {one.draft.file: one.text for one in batch.imported}, batch.before, batch.after
        )
        done += batch.imported
    return done


def _with_room_for_both(spec: Cluster) -> Cluster:
    """Return a cluster with twice its nodes: the sources know no pools, and may take those of the runs."""
    pools = {
        name: pool.model_copy(update={"count": 2 * pool.count}) for name, pool in spec.node_pools.items()
    }
    return spec.model_copy(update={"node_pools": pools})


def test_pods_of_imported_runs_equal_those_of_their_sources(tmp_path: Path) -> None:
    profile = fixtures.chosen()
    fixtures.require(profile)
    if profile.name != "new":
        pytest.skip("the workspace is for the versions of profile new")
    runs = imported(tmp_path / "workspace")
    workspace = load_workspace(tmp_path / "workspace")
    spec = workspace.clusters["lab"].spec
    result = preview_render(Request(tmp_path / "workspace", engine="serial"))
    texts = result.texts
    with Lab(profile) as lab:
        lab.tell(Story(Plot.RUN, namespace=None, run=None))  # all pods are there at one time
        lab.add_nodes(world.nodes(_with_room_for_both(spec)))
        for path in sorted(texts, key=lambda one: ("platform/" not in one, "tenants/" not in one, one)):
            for body in load_objects(texts[path]):
                lab.client.apply_patiently(body)
        lab.client.apply_all(world.claims(spec, [("nlp", workspace.teams["nlp"].spec)]))
        lab.client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": THEIRS}})
        lab.client.apply_all(claims_of(world.claims(spec, [("nlp", workspace.teams["nlp"].spec)])))
        bodies = [body for some in CASES.values() for text in some for body in plain.load_all(text)]
        for body in sorted(bodies, key=lambda one: one["kind"] == "TrainJob"):
            body["metadata"]["namespace"] = THEIRS
            lab.client.apply_patiently(body)

        def pods(namespace: str, label: str, value: str) -> list[dict[str, Any]]:
            return list(lab.client.list("Pod", namespace, f"{label}={value}"))

        for one in runs:
            name, job = one.draft.work.name, one.draft.name
            source = next(body for body in bodies if body["metadata"]["name"] == name)
            maker = maker_of(source["kind"])

            def found(
                name: str = name, job: str = job, label: str = maker.label
            ) -> list[list[dict[str, Any]]]:
                return [pods(THEIRS, label, name), pods("nlp", "gangplan.dev/job", job)]

            def state(name: str = name) -> str:
                theirs, ours = found()
                said = [
                    body.get("status")
                    for body in lab.client.list("TrainJob")
                    if name in body["metadata"]["name"]
                ]
                return f"{name}: {len(ours)} pods of the run, {len(theirs)} of the source; {said}"

            poll(lambda count=PODS[name]: [len(some) for some in found()] == [count, count], 60, state)
            pair = Pair(name, one.draft.file)
            compare(pair, one, source, *found())
            assert not pair.silent, (name, pair.silent)
