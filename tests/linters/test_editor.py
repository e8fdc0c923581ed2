"""yaml-language-server on a schema that gangplan prints, asked as an editor asks it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.linters import programs
from tests.workspaces import REPOSITORY, gangplan

Object = dict[str, Any]
HEAD = "apiVersion: gangplan.dev/v1\nkind: TrainingJob\ncommand: [python, train.py]\n"


@dataclass
class Editor:
    """A session of the language server over its standard streams."""

    process: subprocess.Popen[bytes]
    folder: Path
    settings: Object
    number: int = 0

    def send(self, method: str, params: Any, *, asks: bool = False) -> int:
        """Send a notification, or a request with its number; return the last request's number."""
        self.number += asks
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        self._write(body | ({"id": self.number} if asks else {}))
        return self.number

    def _write(self, body: Object) -> None:
        data = json.dumps(body).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self.process.stdin.flush()

    def _read(self) -> Object:
        """Return the next message for the client; answer the server's requests for settings."""
        assert self.process.stdout is not None
        while True:
            size = 0
            while line := self.process.stdout.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    size = int(line.split(b":")[1])
            assert size, "the server ended"
            body: Object = json.loads(self.process.stdout.read(size))
            if "id" not in body or "method" not in body:
                return body
            asked = [self.settings.get(item.get("section"), {}) for item in body["params"].get("items", ())]
            self._write({"jsonrpc": "2.0", "id": body["id"], "result": asked or None})

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its answer."""
        number = self.send(method, params, asks=True)
        while True:
            body = self._read()
            if body.get("id") == number:
                assert "error" not in body, body
                return body["result"]

    def marks(self, name: str, text: str) -> list[str]:
        """Open a file, and return what the editor would underline."""
        where = self._uri(name)
        item = {"uri": where, "languageId": "yaml", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": item})
        while True:
            body = self._read()
            if body.get("method") == "textDocument/publishDiagnostics" and body["params"]["uri"] == where:
                return [one["message"] for one in body["params"]["diagnostics"]]

    def offers(self, name: str, text: str) -> dict[str, str]:
        """Return what is offered at the end of a file, with its documentation."""
        self.marks(name, text)
        last = text.split("\n")
        at = {"line": len(last) - 1, "character": len(last[-1])}
        found = self.ask(
            "textDocument/completion", {"textDocument": {"uri": self._uri(name)}, "position": at}
        )
        shown = {}
        for item in found["items"]:
            told = item.get("documentation") or ""
            shown[item["label"]] = told["value"] if isinstance(told, dict) else told
        return shown

    def hover(self, name: str, text: str, line: int) -> str:
        """Return what is shown over the first word of a line."""
        self.marks(name, text)
        at = {"line": line, "character": 1}
        found = self.ask("textDocument/hover", {"textDocument": {"uri": self._uri(name)}, "position": at})
        return str((found or {}).get("contents", {}).get("value", ""))

    def _uri(self, name: str) -> str:
        return (self.folder / name).as_uri()


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """Run the server with the schema of the sample's team nlp for its specs, as docs/editor.md binds it."""
    folder = tmp_path_factory.mktemp("editor")
    printed = gangplan("schema", "print", "spec", "-C", REPOSITORY, "--team", "nlp")
    assert printed.code == 0, printed.err
    (folder / "nlp.json").write_text(printed.out)
    bound = {(folder / "nlp.json").as_uri(): "*.yaml"}
    yaml = {
        "schemas": bound,
        "validate": True,
        "completion": True,
        "hover": True,
        "schemaStore": {"enable": False},
    }
    command = [*programs.package("yaml-language-server"), "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder) as process:
        found = Editor(process, folder, {"yaml": yaml})
        able = {"workspace": {"configuration": True}, "textDocument": {"completion": {}, "hover": {}}}
        found.ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": able})
        found.send("initialized", {})
        found.send("workspace/didChangeConfiguration", {"settings": {"yaml": yaml}})
        yield found
        process.kill()


def test_no_spec_of_the_sample_is_underlined(editor: Editor) -> None:
    files = [path for path in sorted((REPOSITORY / "specs/nlp").rglob("*.yaml")) if path.name != "team.yaml"]
    jobs = [path for path in files if "\nkind: TrainingJob\n" in path.read_text()]
    assert jobs
    for path in jobs:
        text = path.read_text()
        kept = "".join(
            line for line in text.splitlines(True) if not line.startswith("# yaml-language-server")
        )
        assert editor.marks(path.name, kept) == [], path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("image: tensorflow", "deepspeed"),
        ("memory: 32GB", ""),
        ("worker: 4", "worker"),
        ("data: {camera-frames: /data}", "camera-frames"),
        ("team: vision", "nlp"),
        ("workers:", ""),
    ],
)
def test_values_that_a_team_does_not_have_are_underlined(line: str, said: str, editor: Editor) -> None:
    marks = editor.marks(f"{abs(hash(line))}.yaml", f"{HEAD}{line}\n")
    assert marks
    assert said in " ".join(marks)
    # Patterns come with a sentence, and no field may be null.
    assert "null" not in " ".join(marks)
    assert "does not match the pattern" not in " ".join(marks)


def test_names_of_the_team_are_offered_with_descriptions(editor: Editor) -> None:
    found = editor.offers("image.yaml", f"{HEAD}image: ")
    assert "deepspeed" in found
    assert "tensorflow" not in found
    assert "Open MPI" in found["deepspeed"]
    fields = editor.offers("fields.yaml", f"{HEAD}wor")
    assert "workers" in fields


def test_fields_have_descriptions(editor: Editor) -> None:
    shown = editor.hover("hover.yaml", f"{HEAD}workers: 4\n", 3)
    assert "Pods that run ranks" in shown
    assert len(shown) > 20
