"""What is read of a run's output: secrets, the ranks of lines, and how much waits to be shown."""

from __future__ import annotations

from pathlib import Path

from tests.local.base import plain_workspace, run


def test_each_line_of_a_secret_is_hidden(tmp_path: Path) -> None:
    root = plain_workspace(
        tmp_path, "import os\nprint(os.environ['KEY'], repr(os.environ['KEY']))\n", workers=1
    )
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text() + "secrets: {env: {KEY: huggingface/token}}\n")
    done = run(root, env={"KEY": "line-one\n  line-two\r\nabc\n"})
    assert done.code == 0, done.err
    assert done.out.splitlines()[1:3] == ["[0] ***", "[0]   ***"]
    assert "line-" not in done.out + done.err
    assert "[0] abc\n" in done.out  # too short: the same letters are in other words
