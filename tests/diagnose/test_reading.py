"""Evidence that is read: objects in all forms, logs with any prefixes of lines, files that are neither."""

from __future__ import annotations

import copy
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.diagnose import scan as scanning
from gangplan.diagnose.causes import list_diagnosis_causes
from gangplan.diagnose.checklist import list_checked_causes
from gangplan.diagnose.evidence import (
    Evidence,
    Log,
    RunPart,
    SavedObject,
    parse_run_part_from_evidence_pod_name,
)
from gangplan.diagnose.read import all_signs, read_evidence
from gangplan.diagnose.scan import scan_log_for_signs, split_off_log_line_prefixes
from gangplan.diagnose.verdict import diagnose_runs
from gangplan.errors import Exit
from gangplan.report.diagnosis import build_diagnosis_json, render_diagnosis_text
from tests.diagnose.test_causes import RUN
from tests.gitops.recorded import recorded
from tests.workspaces import gangplan

OOM = {"exitCode": 137, "reason": "OOMKilled"}
LABELS = {
    "jobset.sigs.k8s.io/jobset-name": RUN,
    "jobset.sigs.k8s.io/replicatedjob-name": "node",
    "batch.kubernetes.io/job-completion-index": "3",
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": f"{RUN}-node-0-3-abcde", "labels": LABELS},
    "status": {"phase": "Failed", "containerStatuses": [{"name": "node", "state": {"terminated": OOM}}]},
}


QUOTA = {"type": "QuotaReserved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
WORKLOAD = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "Workload",
    "metadata": {"name": "w", "ownerReferences": [{"kind": "TrainJob", "name": RUN}]},
    "spec": {"active": True},
    "status": {
        "conditions": [QUOTA],
        "admissionChecks": [{"name": "nodes", "state": "Pending", "message": "wait"}],
    },
}
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "nlp"},
    "reason": "FailedScheduling",
    "message": "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
    "involvedObject": {"kind": "Pod", "name": f"{RUN}-node-0-3-abcde"},
}


def read(*names: object, stdin: bytes = b"") -> tuple[int, int]:
    """Return the number of objects and of logs."""
    found = read_evidence([str(name) for name in names], lambda: io.BytesIO(stdin))
    return len(found.things), len(found.logs)


def log_of(data: bytes) -> Log:
    """Return the log of some bytes."""
    found = scan_log_for_signs("a.log", io.BytesIO(data).read, all_signs())
    assert found is not None
    return found


def test_objects_are_read_in_all_forms(tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text(json.dumps(POD))
    assert read(one) == (1, 0)
    one.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, POD]}, indent=4))
    assert read(one) == (2, 0)
    bare = {key: POD[key] for key in ("metadata", "status")}
    one.write_text(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [bare]}))
    assert read(one) == (1, 0)
    one.write_text(json.dumps(POD) + "\n" + json.dumps(POD))  # kubectl get twice into one file
    assert read(one) == (2, 0)
    several = tmp_path / "several.yaml"
    several.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"
    )
    assert read(several) == (2, 0)
    assert read("-", stdin=several.read_bytes()) == (2, 0)
    assert read("-", stdin=b"just\na log\n") == (0, 1)
    assert read(tmp_path) == (4, 0)


def test_lines_of_json_are_a_log(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    path.write_text('{"level": "error", "message": "CUDA out of memory. Tried to allocate 2.00 GiB"}\n' * 3)
    assert read(path) == (0, 1)


def test_an_exception_is_shown_by_its_last_line(tmp_path: Path) -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    main()\n'
    (tmp_path / "a.log").write_text(f"{trace}ValueError: batch must be positive\n")
    outcome = gangplan("diagnose", tmp_path / "a.log")
    assert "seen   ValueError: batch must be positive\n" in outcome.out


def test_a_truncated_file_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(POD, indent=2)[:-20])
    outcome = gangplan("diagnose", path)
    assert outcome.code == Exit.INPUT
    assert f"{path}:" in outcome.err
    assert "Save it again" in outcome.err
    path.write_text("[" * 100_000)
    assert gangplan("diagnose", path).code in (Exit.INPUT, Exit.FINDINGS, Exit.CLEAN)


def test_a_diagnosis_without_evidence_is_an_error(tmp_path: Path) -> None:
    assert gangplan("diagnose").code == Exit.INPUT
    assert gangplan("diagnose", tmp_path).code == Exit.INPUT
    assert gangplan("diagnose", tmp_path / "none.json").code == Exit.INPUT
    (tmp_path / "empty.log").write_text("")
    assert gangplan("diagnose", tmp_path).code == Exit.INPUT
    (tmp_path / "a.log").write_text("a line\n")
    outcome = gangplan("diagnose", tmp_path)
    assert (outcome.code, "not known" in outcome.out, "| a line" in outcome.out) == (
        Exit.FINDINGS,
        True,
        True,
    )
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    assert gangplan("diagnose", tmp_path, "--run", "other").code == Exit.INPUT
    assert gangplan("diagnose", tmp_path, "--format", "xml").code == Exit.INPUT
    assert gangplan("diagnose", "--server").code == Exit.INPUT


def test_binary_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "a.log").write_text("all is well\n")
    outcome = gangplan("diagnose", tmp_path)
    assert "not read, because it is not text" in outcome.out
    # Sometimes Open MPI 5 writes a zero byte.
    assert log_of(b"There are not enough slots available in the system to satisfy the 64\0\n").sightings


@pytest.mark.parametrize(
    ("line", "text", "who"),
    [
        ("plain", "plain", RunPart()),
        (f"[pod/{RUN}-node-0-3-abcde/node] text", "text", RunPart(RUN, "node", 3)),
        (
            f"[pod/{RUN}-launcher-0-0-abcde/node] [1,5]<stderr>: text",
            "text",
            RunPart(RUN, "launcher", None, 5),
        ),
        ("worker 12 | text", "text", RunPart("", "node", 12)),
        ("launcher  | text", "text", RunPart("", "launcher")),
        ("[1,3]<stdout>:text", "text", RunPart(rank=3)),
        ("[prterun-launcher-36@1,3]<stderr>: text", "text", RunPart(rank=3)),
        ("[rank7]: text", "text", RunPart(rank=7)),
        ("[rank7]:[E1 02:03] text", "[E1 02:03] text", RunPart(rank=7)),
        ("[4] text", "text", RunPart(rank=4)),
        ("\x1b[31mred\x1b[0m", "red", RunPart()),
        ("[2026-01-01 10:00] text", "[2026-01-01 10:00] text", RunPart()),
    ],
)
def test_prefixes_of_lines_name_pods_and_ranks(line: str, text: str, who: RunPart) -> None:
    assert split_off_log_line_prefixes(line) == (text, "", who)
    assert split_off_log_line_prefixes(f"2026-01-01T10:00:00.123Z {line}") == (
        text,
        "2026-01-01T10:00:00.123Z",
        who,
    )


@pytest.mark.parametrize(
    ("name", "who"),
    [
        ("a-b-1a2b3c4d-node-0-3-abcde", RunPart("a-b-1a2b3c4d", "node", 3)),
        ("a-b-1a2b3c4d-node-0-12.a-b-1a2b3c4d.nlp.svc", RunPart("a-b-1a2b3c4d", "node", 12)),
        ("a-1a2b3c4d-launcher-0-0-zz9zz", RunPart("a-1a2b3c4d", "launcher")),
        ("a-1a2b3c4d-ps-0-1-zz9zz", RunPart("a-1a2b3c4d", "ps", 1)),
        ("gpu-node-7", RunPart()),
        ("10.0.0.1", RunPart()),
    ],
)
def test_names_of_pods_are_parsed(name: str, who: RunPart) -> None:
    assert parse_run_part_from_evidence_pod_name(name) == who


def test_names_of_files_name_workers_and_ranks(tmp_path: Path) -> None:
    for name in ("worker-3.log", "launcher.txt", f"{RUN}-node-0-2-abcde.log", "rank_5.out", "train.log"):
        (tmp_path / name).write_text("ModuleNotFoundError: No module named 'x'\n")
    found = read_evidence([str(tmp_path)], lambda: io.BytesIO())
    words = {log.sightings[0].who.words for log in found.logs}
    assert words == {"worker 3", "launcher", "worker 2", "rank 5", ""}


SAMPLES = st.sampled_from(
    [
        "epoch 3 loss 2.1",
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File 'x'\n[rank3]: ValueError: no",
        "Per user-direction\n  Process name: [[1,1],3]\n  Exit code:    9",
        "mpirun detected that one or more processes exited with non-zero status, thus\n\n  Process name: [[1,1],3]\n  Exit code:    9",
        "OSError: [Errno 28] No space left on device",
        "é" * 50,
        "a bar\rof progress\r",
        "",
    ]
)


# Four pieces hold all lines that a sign may need; a log with fewer line breaks is cut anywhere.
@settings(max_examples=60, deadline=None)
@given(st.lists(SAMPLES, max_size=60), st.integers(512, 2000))
def test_the_size_of_pieces_makes_no_difference(lines: list[str], piece: int) -> None:
    """A log is read in pieces: wherever they end, the sightings and their lines are the same."""
    data = ("\n".join(lines) + "\n").encode()
    whole = log_of(data)
    before = scanning.PIECE
    scanning.PIECE = piece
    try:
        parts = log_of(data)
    finally:
        scanning.PIECE = before
    seen = [(one.cause, one.line, one.facts) for one in whole.sightings]
    assert [(one.cause, one.line, one.facts) for one in parts.sightings] == seen
    assert (parts.lines, parts.last) == (whole.lines, whole.last)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_can_be_read(data: bytes) -> None:
    log = scan_log_for_signs("a", io.BytesIO(data).read, all_signs())
    assert log is None or log.lines >= 0


#: Causes for statuses that real controllers wrote, by their cases; the others have none.
LAB = {
    "ClusterQueue-held": "queue-inactive",
    "ClusterQueue-no-flavor": "queue-inactive",
    "LocalQueue-held": "queue-inactive",
    "LocalQueue-cluster-queue-held": "queue-inactive",
    "Workload-queued": "quota-wait",
    "Workload-preempted": "preempted",
    "Workload-deactivated": "deactivated",
    "TrainJob-failed": "job-failed",
    "JobSet-failed": "job-failed",
}


@pytest.mark.parametrize(("name", "body"), [(name, body) for name, _, body in recorded()])
def test_statuses_of_the_lab_have_their_causes(name: str, body: dict[str, Any]) -> None:
    found = diagnose_runs(Evidence((SavedObject(body, name),), ()))
    causes = [one.cause.id for verdict in found for one in verdict.found]
    assert causes[:1] == [cause for case, cause in LAB.items() if name.endswith(case)][:1]


def paths_in(value: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of everything in a value, including keys that an object of its kind may have."""
    found = [at]
    for key, one in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        found += paths_in(one, (*at, key))
    return found


@given(st.data())
def test_edited_objects_are_read(data: st.DataObject) -> None:
    """One field of another type is left out; what the rest says still counts, and nothing crashes."""
    bodies = [*(body for _, _, body in recorded()), POD, WORKLOAD, EVENT]
    body = copy.deepcopy(data.draw(st.sampled_from(bodies)))
    *parents, last = data.draw(st.sampled_from(paths_in(body)[1:]))
    holder: Any = body
    for key in parents:
        holder = holder[key]
    holder[last] = data.draw(
        st.sampled_from([None, 1, True, "x", "", [], [1], [None], [{}], {}, {"a": 1}, [["a"]]])
    )
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [body]}).encode()
    evidence = read_evidence(["-"], lambda: io.BytesIO(text))
    verdicts = diagnose_runs(evidence)
    assert render_diagnosis_text(verdicts, evidence.skipped)
    json.dumps(build_diagnosis_json(verdicts, evidence.skipped))


def test_a_field_of_another_type_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "pod.json"
    labels = LABELS | {"batch.kubernetes.io/job-completion-index": 3}
    metadata = {"name": "x", "labels": labels, "ownerReferences": [1]}
    path.write_text(json.dumps(POD | {"metadata": metadata, "spec": {"containers": "node"}}))
    outcome = gangplan("diagnose", path)
    assert outcome.code == Exit.FINDINGS
    assert "[out-of-memory]" in outcome.out
    assert "worker 3" in outcome.out


def test_long_logs_and_lines_are_read() -> None:
    """Counts lines, not time: each needle is searched for once per piece."""
    line = b"step 100 loss 2.31 tokens per second 12000 financial news of the day\n"
    assert log_of(line * 20_000).lines == 20_000
    assert log_of(b"x" * 3_000_000).lines == 1


def test_a_file_of_a_folder_that_cannot_be_parsed_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    (tmp_path / "cut.json").write_text(json.dumps(POD, indent=2)[:-20])
    (tmp_path / "chart.yaml").write_text("a: [1\n{{ if .Values.x }}\nb: {")
    (tmp_path / "worker-3.log").write_text("CUDA out of memory\n")
    outcome = gangplan("diagnose", tmp_path)
    assert outcome.code == Exit.FINDINGS
    assert "[out-of-memory]" in outcome.out
    assert "[gpu-memory]" in outcome.out
    assert f"not read: {tmp_path}/chart.yaml:" in outcome.out
    assert f"not read: {tmp_path}/cut.json:" in outcome.out
    assert "this is not JSON" in outcome.out
    found = json.loads(gangplan("diagnose", tmp_path, "--format", "json").out)
    assert [Path(one.partition(":")[0]).name for one in found["broken"]] == ["chart.yaml", "cut.json"]
    assert "cut" in gangplan("diagnose", tmp_path, "--format", "markdown").out
    # Named itself, or with nothing else to read, it is an error.
    assert gangplan("diagnose", tmp_path / "cut.json").code == Exit.INPUT
    for name in ("pod.json", "worker-3.log"):
        (tmp_path / name).unlink()
    outcome = gangplan("diagnose", tmp_path)
    assert outcome.code == Exit.INPUT
    assert "chart.yaml:" in outcome.err


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-8"])
def test_evidence_in_the_encoding_of_its_byte_order_mark_is_read(encoding: str, tmp_path: Path) -> None:
    """Windows PowerShell's `>` writes UTF-16."""
    (tmp_path / "pod.json").write_bytes(f"\ufeff{json.dumps(POD, indent=4)}\r\n".encode(encoding))
    text = "Größe 3\r\n" * 700_000 + "[rank3]: torch.OutOfMemoryError: CUDA out of memory\r\n"
    (tmp_path / "run.log").write_bytes(f"\ufeff[rank1]: all is well\r\n{text}".encode(encoding))
    found = read_evidence([str(tmp_path)], lambda: io.BytesIO(b""))
    assert [thing.kind for thing in found.things] == ["Pod"]
    (log,) = found.logs
    assert (log.lines, [(one.line, one.who.rank) for one in log.sightings]) == (700_002, [(700_002, 3)])
    assert found.skipped == ()


def test_lines_that_end_in_cr_lf_count_once() -> None:
    assert log_of(b"one\r\ntwo\r\nCUDA out of memory\r\n").sightings[0].line == 3
    assert log_of(b"one\rtwo\rCUDA out of memory\r\n").sightings[0].line == 3


def test_a_pipe_that_is_named_is_refused(tmp_path: Path) -> None:
    """Opening a pipe that nothing writes to waits forever."""
    os.mkfifo(tmp_path / "events")
    outcome = gangplan("diagnose", tmp_path / "events")
    assert outcome.code == Exit.INPUT
    assert "is a pipe" in outcome.err
    assert "gangplan diagnose -" in outcome.err
    outcome = gangplan("diagnose", "/dev/zero")
    assert outcome.code == Exit.INPUT
    assert "is a device" in outcome.err


def test_a_pipe_of_the_shell_is_read() -> None:
    """`gangplan diagnose <(kubectl logs ...)` names a descriptor of its own, whose other end is open."""
    out, into = os.pipe()
    os.write(into, b"CUDA out of memory\n")
    os.close(into)
    try:
        assert read(f"/dev/fd/{out}") == (0, 1)
    finally:
        os.close(out)


def test_many_sightings_of_one_cause_hide_no_other() -> None:
    harmless = b"h:1:1 [0] NCCL INFO NET/IB : No device found.\n" * 300_000
    found = log_of(harmless + b"OSError: [Errno 28] No space left on device\n").sightings
    assert [one.cause for one in found][-1] == "disk-full"
    assert len(found) < 3_000


def test_the_document_gives_the_topic_of_each_cause(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("Host key verification failed.\n")
    (run,) = json.loads(gangplan("diagnose", tmp_path, "--format", "json").out)["runs"]
    assert [(one["id"], one["topic"]) for one in run["causes"]] == [("ssh-host-key", "MPI and SSH")]


def test_the_first_questions_are_answered_from_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(POD))
    outcome = gangplan("diagnose", tmp_path, "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    assert [one["answer"] for one in run["checks"][1:]] == ["not known"] * 3
    (tmp_path / "run.log").write_text("ssh: connect to host worker-3 port 2222: Connection refused\n")
    outcome = gangplan("diagnose", tmp_path / "run.log", "--format", "json")
    (run,) = json.loads(outcome.out)["runs"]
    assert run["checks"] == [
        {"question": "pods started", "answer": "no sign of trouble", "causes": []},
        {"question": "network", "answer": "trouble", "causes": ["ssh-refused"]},
        {"question": "GPU memory", "answer": "no sign of trouble", "causes": []},
        {"question": "data", "answer": "no sign of trouble", "causes": []},
    ]
    assert (
        "checks pods started: no sign of trouble; network: trouble (ssh-refused)"
        in gangplan("diagnose", tmp_path).out
    )
    assert "Checks: pods started" in gangplan("diagnose", tmp_path, "--format", "markdown").out


OFF = {
    "kind": "Workload",
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "metadata": {"name": "w", "namespace": "nlp", "ownerReferences": [{"kind": "TrainJob", "name": RUN}]},
    "spec": {"active": False},
    "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "message": "out of retries"}]},
}
SEEN = {
    "a Workload that is off": (OFF, "trouble"),
    "a Workload that says nothing": ({**OFF, "spec": {}, "status": {}}, "not known"),
}


@pytest.mark.parametrize("name", SEEN)
def test_pods_that_were_not_seen_are_not_known_to_have_started(name: str, tmp_path: Path) -> None:
    body, answer = SEEN[name]
    (tmp_path / "run.json").write_text(json.dumps(body))
    (run,) = json.loads(gangplan("diagnose", tmp_path, "--format", "json").out)["runs"]
    assert run["checks"][0]["answer"] == answer


DESCRIBED = """\
Name:         trainjob-train-1a2b3c4d-12345
Namespace:    nlp
Kind:         Workload
Status:
  Conditions:
    Message:  {}
    Type:     Evicted
"""


def test_a_description_of_objects_says_nothing_of_a_program(tmp_path: Path) -> None:
    file = tmp_path / "run.txt"
    file.write_text(
        DESCRIBED.format("The workload is deactivated due to exceeding the maximum number of retries")
    )
    (run,) = json.loads(gangplan("diagnose", file, "--format", "json").out)["runs"]
    assert [one["id"] for one in run["causes"]] == ["deactivated"]
    assert [one["answer"] for one in run["checks"]] == ["trouble", *["not known"] * 3]


@pytest.mark.parametrize(
    "text",
    [
        "No resources found in nlp namespace.",
        'Error from server (NotFound): pods "train-1a2b3c4d-node-0-0" not found',
        "Unable to connect to the server: dial tcp 10.0.0.1:443: i/o timeout",
    ],
)
def test_an_answer_of_kubectl_is_not_a_log(text: str, tmp_path: Path) -> None:
    file = tmp_path / "run.log"
    file.write_text(f"{text}\n")
    outcome = gangplan("diagnose", file)
    assert outcome.code == Exit.INPUT
    assert f"neither a log nor objects, but an answer of kubectl: {text}" in outcome.err
    (tmp_path / "other.log").write_text("Host key verification failed.\n")
    assert f"answer of kubectl: {text}" in gangplan("diagnose", tmp_path).out
    file.write_text(f"starting\n{text}\n")
    assert gangplan("diagnose", file).code != Exit.INPUT, "a program may print it, too"


def test_every_checked_cause_is_known() -> None:
    assert list_checked_causes() <= set(list_diagnosis_causes())
