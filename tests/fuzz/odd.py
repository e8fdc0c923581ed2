"""kustomize and kubeconform fail in every way: nothing is written or left behind, and the error helps."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from gangplan.tools import kubeconform, kustomize, run, versions
from tests import workspaces
from tests.fuzz.base import Stories
from tests.tools.programs import fake

# What a program does instead of its work; `$last` is its last argument.
WAYS = {
    "nothing": "exit 0",
    "code 7": "echo 'it is broken' >&2; exit 7",
    "an error without a word": "exit 1",
    "garbage": "printf '\\377\\376 what \\200 is this {'",
    "prose": "echo 'Usage: tool [flags]'; echo '  --help  show help'",
    "a list": "echo '- a'; echo '- b'",
    "other objects": "printf 'kind: Pod\\nmetadata: {name: x}\\n'",
    "a number": "echo 42",
    "JSON of another kind": """echo '{"resources": "none", "summary": []}'""",
    "half of it": 'head -c SIZE "$last"',
    "half of it, and a line's end": 'head -c SIZE "$last"; echo',
    "a signal": "kill -SEGV $$",
    "killed": "kill -KILL $$",
    "a crash": "printf 'panic: runtime error: x\\n\\ngoroutine 1 [running]:\\nmain.main()\\n' >&2; exit 2",
    "a hang": "trap '' TERM; while :; do sleep 0.05; done",
    "a child that hangs": "(trap '' TERM; while :; do sleep 0.05; done) & exit 0",
    "no end": "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
    "no end of complaints": "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; done",
    "a wall of text": "head -c 3000000 /dev/zero",
    "files of its own": 'echo x > "$(dirname "$last")/more.yaml"; exit 3',
}
LAST = 'for last; do :; done; [ -d "$last" ] && last=$last/objects.yaml\n'
PINNED = {"kustomize": "v5.8.1", "kubeconform": "v0.7.0"}


def tried(root: Path, folder: Path, program: str, way: str) -> workspaces.Outcome:
    """Run render (kustomize) or validate (kubeconform) with a program that fails as WAYS or a script says."""
    how = LAST + WAYS.get(way, way)
    path = fake("odd", program, folder / "bin", how=how, version=f"{PINNED[program]}\n")
    command = "render" if program == "kustomize" else "validate"
    before = workspaces.rendered(root)
    with _impatient(folder / "temporary", f"GANGPLAN_{program.upper()}", path):
        outcome = workspaces.gangplan(command, "-C", root, "--no-cache", "--engine", "serial")
        assert os.listdir(folder / "temporary") == [], f"{way}: files are left"
    assert outcome.code == 0 or workspaces.rendered(root) == before, f"{way}: something was written"
    assert _left(str(path)) == [], f"{way}: processes are left"
    return outcome


def assert_helpful(outcome: workspaces.Outcome, program: str, way: str) -> None:
    """Check that the error blames the machine, or a patch, and names the program."""
    assert "bug in gangplan" not in outcome.err, f"{way}: {outcome.err}"
    assert program in outcome.err, f"{way}: {outcome.err}"
    # With code 1 kustomize says that a patch is wrong.
    refused = program == "kustomize" and way == "an error without a word"
    assert outcome.code == (2 if refused else 3), f"{way}: {outcome}"
    assert "\x00" not in outcome.err
    assert len(outcome.err) < 2000, f"{way}: {outcome.err[:500]}"


@contextmanager
def _impatient(temporary: Path, variable: str, path: Path) -> Iterator[None]:
    """Give programs half a second and 2 MB, and temporary files a folder of their own."""
    temporary.mkdir(exist_ok=True)

    def impatient(*arguments: object, **options: object) -> run.CompletedProgram:
        return run.run_program(*arguments, **{**options, "timeout_s": 0.5})  # type: ignore[arg-type]

    with (
        mock.patch.object(kustomize, "run_program", impatient),
        mock.patch.object(kubeconform, "run_program", impatient),
        mock.patch.object(versions, "_TIMEOUT_S", 5),
        mock.patch.object(run, "_MOST_BYTES", 2 << 20),
        mock.patch.object(run, "_LOOK_S", 0.02),
        mock.patch.object(run, "_GRACE_S", 0.05),
        mock.patch.object(tempfile, "tempdir", str(temporary)),
        mock.patch.dict(os.environ, {variable: str(path), "TMPDIR": str(temporary)}),
    ):
        yield


def _left(path: str) -> list[int]:
    """Return the processes of this file that are still alive after ten seconds.

    Killing a group does not wait for its members.
    """
    for _ in range(500):
        if not (found := _alive(path)):
            break
        time.sleep(0.02)
    return found


def _alive(path: str) -> list[int]:
    """Return the processes that were started from this file; a zombie has no command line."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            if name.isdigit() and path.encode() in Path(f"/proc/{name}/cmdline").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def story(chance: random.Random, folder: Path) -> None:
    """Let a random program fail in a random way; the sizes of half a document differ, too."""
    root = workspaces.stock(folder / "workspace")
    program = chance.choice(sorted(PINNED))
    if program == "kustomize":
        workspaces.write(root, {"overlays/lab/kustomization.yaml": workspaces.KUSTOMIZATION})
    else:
        workspaces.render(root)
    way = chance.choice(list(WAYS))
    how = WAYS[way].replace("SIZE", str(chance.choice((1, 10, 100, chance.randrange(2000)))))
    outcome = tried(root, folder, program, how)
    assert_helpful(outcome, program, way)
    shutil.rmtree(root)


TOOLS = Stories(story)
