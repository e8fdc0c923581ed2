"""Mounts inside other mounts, and a workdir inside one: what the kubelet and runc can create."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import workspaces
from tests.resolve.test_volumes import OFFERED
from tests.resolve.test_workdir import SPEC
from tests.workspaces import gangplan

TEAM = workspaces.TEAM + "configMaps: [tuning, more]\n"
FILE = "files: {./ds.json: %s}\n"
WITH_FILE = "files: {./ds.json: %s, tuning: /etc/tuning}\n"
# What is written: the rule, or nothing, and words of its message.
CASES = {
    "a file in a ConfigMap": (
        WITH_FILE % "/etc/tuning/ds.json",
        "mount-inside",
        "only folders can be mounted",
    ),
    "a file in a secret": (
        "secrets: {files: {huggingface: /etc/hf}}\n" + FILE % "/etc/hf/ds.json",
        "mount-inside",
        "'./ds.json' is mounted at /etc/hf/ds.json, inside 'huggingface' (/etc/hf)",
    ),
    "a file further down in a ConfigMap": (WITH_FILE % "/etc/tuning/a/b/ds.json", "mount-inside", ""),
    "a file beside a ConfigMap": (WITH_FILE % "/etc/tuning-ds.json", "", ""),
    "a file in a folder in a ConfigMap": (
        WITH_FILE % "/etc/tuning/data/ds.json" + "data: {filings: /etc/tuning/data}\n",
        "",
        "",
    ),
    "a file in a secret in a ConfigMap": (
        WITH_FILE % "/etc/tuning/hf/ds.json" + "secrets: {files: {huggingface: /etc/tuning/hf}}\n",
        "mount-inside",
        "inside 'huggingface'",
    ),
    "a claim in a ConfigMap": ("files: {tuning: /etc/tuning}\ndata: {filings: /etc/tuning/data}\n", "", ""),
    "a ConfigMap in a secret": (
        "secrets: {files: {huggingface: /etc/hf}}\nfiles: {tuning: /etc/hf/tuning}\n",
        "",
        "",
    ),
    "a ConfigMap in a ConfigMap": ("files: {tuning: /etc/tuning, more: /etc/tuning/more}\n", "", ""),
    "a folder in a file": (
        FILE % "/etc/ds" + "data: {filings: /etc/ds/x}\n",
        "mount-inside",
        "which is a file",
    ),
    "a file in a file": (
        "files: {./ds.json: /etc/ds, ./b.json: /etc/ds/b}\n",
        "mount-inside",
        "which is a file",
    ),
    "a file in a writable claim": ("data: {filings: /data}\n" + FILE % "/data/ds.json", "", ""),
    "a file in scratch": ("scratch: 9Gi\n" + FILE % "/scratch/ds.json", "", ""),
    "a file in a read-only claim": (
        "data: {archive: /data}\n" + FILE % "/data/conf/ds.json",
        "mount-point",
        "unless that has file 'conf/ds.json'",
    ),
    "a folder in a read-only claim": (
        "data: {archive: /data, filings: /data/new}\n",
        "mount-point",
        "unless that has folder 'new'",
    ),
    "scratch in a read-only claim": (
        "data: {archive: /data}\nscratch: {size: 9Gi, path: /data/tmp}\n",
        "mount-point",
        "",
    ),
    "a file in a read-only volume of a driver": (
        "volumes: {vault: /mnt/vault}\n" + FILE % "/mnt/vault/ds.json",
        "mount-point",
        "",
    ),
    "a folder in a read-only volume of a driver": (
        "volumes: {vault: /mnt/vault}\ndata: {filings: /mnt/vault/a}\n",
        "mount-point",
        "",
    ),
    "a folder in a writable volume of a driver": (
        "volumes: {plain: /mnt/plain}\ndata: {filings: /mnt/plain/a}\n",
        "",
        "",
    ),
    "a read-only claim in a writable one": ("data: {archive: /data/old, filings: /data}\n", "", ""),
    "a file in scratch in a ConfigMap, which the launcher has without scratch": (
        "scratch: {size: 9Gi, path: /etc/tuning/tmp}\n" + WITH_FILE % "/etc/tuning/tmp/ds.json",
        "mount-inside",
        "inside 'tuning'",
    ),
    "the same where all pods have scratch": (
        "launcher: {runsRanks: true}\nscratch: {size: 9Gi, path: /etc/tuning/tmp}\n"
        + WITH_FILE % "/etc/tuning/tmp/ds.json",
        "",
        "",
    ),
    "a workdir that is a file": (
        FILE % "/etc/ds.json" + "workdir: /etc/ds.json\n",
        "workdir-unusable",
        "'./ds.json' is mounted there, which is a file",
    ),
    "a workdir below a file": (
        FILE % "/etc/ds" + "workdir: /etc/ds/run\n",
        "workdir-unusable",
        "'./ds.json' is mounted at /etc/ds, which is a file",
    ),
    "a workdir beside a file": (FILE % "/app/ds.json" + "workdir: /app\n", "", ""),
    "a workdir that is a ConfigMap": ("files: {tuning: /etc/tuning}\nworkdir: /etc/tuning\n", "", ""),
    "a workdir below a ConfigMap": (
        "files: {tuning: /etc/tuning}\nworkdir: /etc/tuning/run\n",
        "workdir-unusable",
        "ConfigMap 'tuning' is mounted at /etc/tuning, for reading, and contains no folders",
    ),
    "a workdir below a secret": (
        "secrets: {files: {huggingface: /etc/hf}}\nworkdir: /etc/hf/a/b\n",
        "workdir-unusable",
        "secret 'huggingface'",
    ),
    "a workdir that is a claim in a ConfigMap": (
        "files: {tuning: /etc/tuning}\ndata: {filings: /etc/tuning/data}\nworkdir: /etc/tuning/data\n",
        "",
        "",
    ),
    "a workdir above a claim in a ConfigMap": (
        "files: {tuning: /etc/tuning}\ndata: {filings: /etc/tuning/a/data}\nworkdir: /etc/tuning/a\n",
        "",
        "",
    ),
    "a workdir below a claim in a ConfigMap": (
        "files: {tuning: /etc/tuning}\ndata: {filings: /etc/tuning/data}\nworkdir: /etc/tuning/data/x\n",
        "",
        "",
    ),
    "a workdir below a read-only claim, which has it": (
        "data: {archive: /code}\nworkdir: /code/train\n",
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_mount_inside_another_breaks_the_rule_listed_or_none(case: str, root: Path) -> None:
    lines, rule, words = CASES[case]
    cluster = workspaces.CLUSTER.replace("topology:", f"{OFFERED}topology:", 1)
    cluster = cluster.replace("memory: 1900Gi,", "memory: 1900Gi, disk: 900Gi,")
    files = {"specs/nlp/team.yaml": TEAM, "overlays/lab/cluster.yaml": cluster}
    beside = {"specs/nlp/ds.json": "{}", "specs/nlp/b.json": "{}"}
    workspaces.write(root, {SPEC: workspaces.SPEC + lines, **files, **beside})
    found = list(gangplan("validate", "-C", root).findings)
    assert [one.rule for one in found] == ([rule] if rule else [])
    for one in found:
        assert words in one.message
        assert one.severity == ("warning" if rule == "mount-point" else "error")
        assert one.place.startswith(f"{SPEC}:")
