"""Secrets in files: each form and name is found and never shown; what only looks similar passes."""

from __future__ import annotations

import random
import re
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.commands.reports import FORMATS
from gangplan.errors import Exit
from gangplan.findings import Finding, Location
from gangplan.model.secret_words import compute_entropy
from gangplan.pipeline.scan import hide_found_secrets
from gangplan.validate.secrets import HIDDEN, extract_secret_text, find_secrets, mask_secrets
from tests import plain, workspaces
from tests.workspaces import REPOSITORY, gangplan

CASES: list[dict[str, Any]] = plain.load(Path(__file__).with_name("secrets.yaml").read_text(encoding="utf-8"))
TOKEN = "hf_" + "abcdefghijABCDEFGHIJabcdefghijABCD"


def text_of(case: dict[str, Any]) -> str:
    """Return the text with its two parts joined; a line break before `|` belongs to YAML's own syntax."""
    head, bar, tail = case["text"].rpartition("|")
    return f"{head}{tail}" if bar else tail


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_each_secret_is_found_at_its_place(case: dict[str, Any]) -> None:
    text = text_of(case)
    found = find_secrets(text)
    if "is" not in case:
        assert found == []
        return
    assert [one.what for one in found] == [case["is"]]
    line, column = found[0].place(text)
    assert line == case.get("line", 1)
    assert column == case.get("column", column)
    secret = text[found[0].offset :][: found[0].length]
    assert len(secret) >= 6
    # Never more than four characters of it.
    assert secret[:4] not in found[0].what + found[0].name


def test_there_are_many_secrets_and_near_misses() -> None:
    assert sum("is" not in case for case in CASES) >= 25
    assert sum("is" in case for case in CASES) >= 22


def test_no_file_of_the_repository_has_one() -> None:
    checked = 0
    for folder in ("specs", "overlays", "images", "rendered", "tests/examples", "docs"):
        for path in (REPOSITORY / folder).rglob("*"):
            # docs/rules.md shows what a secret looks like.
            if path.is_file() and path.suffix in (".yaml", ".md", ".json") and path.name != "rules.md":
                assert find_secrets(path.read_text(encoding="utf-8")) == [], path
                checked += 1
    assert checked > 100


@given(st.text(alphabet="ghp_hf-sk:=@/ \"'nameKEYTOKENvalue{}\n", max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_searched(text: str) -> None:
    for one in find_secrets(text):
        assert 0 <= one.offset < len(text)
        assert one.length > 0


def test_random_tokens_are_found_by_name() -> None:
    source = random.Random(11)
    missed = 0
    for _ in range(500):
        value = "".join(source.choices(string.ascii_letters + string.digits, k=24))
        missed += not find_secrets(f"env: {{API_KEY: {value}}}")
    # Now and then, chance writes words.
    assert missed <= 5


@pytest.mark.parametrize(
    "text",
    [
        "token ",
        "key: x",
        "name: ",
        "PASSWORD=",
        "a:b@",
        "http://a:",
        "eyJ",
        "-----BEGIN ",
        "://a?b&",
        "curl -u ",
        "sshpass -p ",
    ],
)
def test_time_grows_linearly_with_length(text: str) -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        find_secrets(text * (size // len(text)))
        return time.process_time() - start

    assert seconds(400_000) < 40 * max(seconds(40_000), 0.01)


@pytest.mark.parametrize("value", ["a" * 50_000, "Ab" * 50_000, "a-" * 50_000, "aB1" * 30_000, "AB" * 50_000])
def test_a_long_value_is_checked_fast(value: str) -> None:
    start = time.process_time()
    find_secrets(f"API_KEY: {value}!")
    assert time.process_time() - start < 2


def test_entropy_of_equal_and_distinct_characters() -> None:
    assert compute_entropy("aaaa") == 0
    assert compute_entropy("abcd") == 2


# In a workspace


@pytest.mark.parametrize(
    ("file", "place"),
    [
        ("specs/nlp/filings.yaml", "9:17"),
        ("specs/nlp/team.yaml", "13:28"),
        ("overlays/lab/cluster.yaml", "17:17"),
    ],
)
def test_a_secret_in_a_workspace_is_reported_at_its_place(file: str, place: str, root: Path) -> None:
    line = f"env: {{HF_TOKEN: {TOKEN}}}\n"
    line = f"defaults: {{env: {{HF_TOKEN: {TOKEN}}}}}\n" if "team" in file else line
    (root / file).write_text((root / file).read_text() + line)
    for command in ("validate", "render", "plan"):
        outcome = gangplan(command, "-C", root)
        assert (outcome.errors(), outcome.code) == ([(f"{file}:{place}", "secret-literal")], Exit.FINDINGS)
        assert TOKEN[:4] not in outcome.err
        assert not re.search(r"[0-9]+ characters", outcome.err)
        assert "HF_TOKEN holds a Hugging Face token\n" in outcome.err
        assert outcome.findings[0].help
    assert not (root / "rendered").exists()


def test_no_other_finding_repeats_a_secret(root: Path) -> None:
    spec = root / "specs/nlp/filings.yaml"
    spec.write_text(spec.read_text().replace("workers: 4", f"workers: {TOKEN}"))
    outcome = gangplan("validate", "-C", root)
    assert ("specs/nlp/filings.yaml:5:10", "spec-type") in outcome.errors()
    assert ("specs/nlp/filings.yaml:5:10", "secret-literal") in outcome.errors()
    assert TOKEN[:12] not in outcome.err + outcome.out


@pytest.mark.parametrize("value", ["hunter2", "correct-horse-battery"])
def test_no_letter_and_no_length_of_a_secret_is_shown(value: str, root: Path) -> None:
    """One letter and a length reveal much of a short password, and reports end up in comments."""
    spec = workspaces.SPEC.replace("workers: 4", f"workers: {value}")
    workspaces.write(root, {"specs/nlp/filings.yaml": spec + f"env: {{DB_PASSWORD: {value}}}\n"})
    for format in FORMATS:
        outcome = gangplan("validate", "-C", root, "--format", format)
        text = outcome.out + outcome.err
        assert "secret-literal" in text
        assert value[:4] not in text
        assert f"{len(value)} characters" not in text
        assert "(hidden)" in text  # in the place of the value of workers


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_secret_that_is_part_of_another_is_hidden(is_turned: bool) -> None:
    short = "ghp_" + "a" * 36
    long = f"https://u:{short}tail-of-the-longer-one@h"
    secrets = [short, long][:: -1 if is_turned else 1]
    assert mask_secrets(f"bad {long}, {short}", secrets) == f"bad {HIDDEN}, {HIDDEN}"
    finding = Finding("spec-value", Location("x", 1, 1), f"bad {long}", f"not {short}")
    (told,) = hide_found_secrets([finding], dict.fromkeys(secrets).keys())
    assert (told.message, told.help) == (f"bad {HIDDEN}", f"Not {HIDDEN}.")


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("e", f"the test '{{http://svc:{HIDDEN}@10.1.1.1:3128}}' never ends"),
        ("test", f"the test '{{http://svc:{HIDDEN}@10.1.1.1:3128}}' never ends"),
        ("test-never", f"the test '{{http://svc:{HIDDEN}@10.1.1.1:3128}}' never ends"),
    ],
)
def test_a_short_password_of_an_address_is_hidden_in_addresses_alone(password: str, expected: str) -> None:
    written = f"proxy: {{http: 'http://svc:{password}@10.1.1.1:3128'}}"
    (secret,) = find_secrets(written)
    hidden = extract_secret_text(written, secret)
    told = f"the test '{{http://svc:{password}@10.1.1.1:3128}}' never ends"
    assert mask_secrets(told, [hidden]) == expected
    assert (mask_secrets(f"not {password}", [hidden]) == f"not {password}") == (len(password) < 8)


@pytest.mark.parametrize("file", ["overlays/lab/tls.pem", "policies/waivers/tls.pem", "images/tls.pem"])
def test_a_secret_in_any_file_of_the_platform_is_reported(file: str, root: Path) -> None:
    workspaces.write(root, {file: "-----BEGIN " + "PRIVATE KEY-----\nMIIE\n"})
    for _ in range(2):  # once more with what the first one kept
        outcome = gangplan("validate", "-C", root)
        assert (f"{file}:1:1", "secret-literal") in outcome.errors()


def test_a_secret_in_a_waiver_is_reported(root: Path) -> None:
    reason = f"The token {TOKEN} is needed until the registry has its own"
    waiver = f"apiVersion: gangplan.dev/v1\nkind: Waiver\nrule: image-digest\nreason: {reason}\n"
    workspaces.write(root, {"policies/waivers/token.yaml": waiver})
    outcome = gangplan("validate", "-C", root)
    assert "secret-literal" in [rule for _, rule in outcome.errors()]
    assert TOKEN not in outcome.out + outcome.err


def test_a_secret_in_an_unmanaged_rendered_file_is_reported(root: Path) -> None:
    workspaces.render(root)
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {a: Yg==}\n"
    workspaces.write(root, {"rendered/lab/mine.yaml": text})
    outcome = gangplan("validate", "-C", root)
    place = "rendered/lab/mine.yaml:1:1"
    assert outcome.errors() == [(place, "rendered-foreign"), (place, "secret-literal")]


def test_only_the_selected_specs_are_searched(root: Path) -> None:
    workspaces.write(root, {"specs/nlp/other.yaml": workspaces.SPEC + f"env: {{HF_TOKEN: {TOKEN}}}\n"})
    assert gangplan("validate", "-C", root, "specs/nlp/filings.yaml").code == Exit.CLEAN
    assert gangplan("validate", "-C", root, "specs/nlp/other.yaml").code == Exit.FINDINGS


# A variable of a spec -> the rule that reports it.
NAMED: dict[str, str] = {
    "AUTH_TOKEN: mytoken": "secret-suspected",
    "DB_PASSWORD: changeme": "secret-suspected",
    "LICENSE_KEY: AB12-CD34": "secret-suspected",
    "WANDB_API_KEY: dummy": "secret-suspected",
    "CLIENT_SECRET: x": "secret-suspected",
    "DB_PASSWORD: correct-horse-battery": "secret-literal",
    'DB_PASSWORD: ""': "",
    "DB_PASSWORD_FILE: /etc/secret/password": "",
    "DB_PASSWORD: /etc/secret/password": "",
    "AUTH_TOKEN: $(OTHER)": "",
    'AUTH_TOKEN: "true"': "",
    'PAD_TOKEN: "[PAD]"': "",
    "EOS_TOKEN: eos": "",
    "MAX_TOKENS: many": "",
    "TOKENIZERS_PARALLELISM: maybe": "",
    "PARTITION_KEY: customer": "",
    "KEYBOARD: us": "",
}


@pytest.mark.parametrize("variable", NAMED)
def test_a_variable_named_like_a_secret_is_reported_once(variable: str, root: Path) -> None:
    workspaces.write(root, {"specs/nlp/filings.yaml": f"{workspaces.SPEC}env:\n  {variable}\n"})
    outcome = gangplan("validate", "-C", root)
    found = [one for one in outcome.findings if one.rule.startswith("secret-")]
    assert [one.rule for one in found] == [NAMED[variable]] * bool(NAMED[variable]), outcome.err
    name, _, value = variable.partition(": ")
    assert all(name in one.message and value not in one.message + one.help for one in found)


@pytest.mark.parametrize(
    "block",
    [
        "setup:\n- command: [python, a.py]\n  ",
        "sidecars:\n- command: [python, a.py]\n  ",
        "steps:\n- command: [python, a.py]\n  ",
        "roles:\n  ps:\n    workers: 1\n    command: [python, a.py]\n    ",
    ],
)
def test_such_a_variable_is_reported_in_other_containers_and_pods(block: str, root: Path) -> None:
    spec = f"{workspaces.SPEC}{block}env: {{DB_PASSWORD: changeme, LEVEL: info}}\n"
    workspaces.write(root, {"specs/nlp/filings.yaml": spec})
    found = [one for one in gangplan("validate", "-C", root).findings if one.rule.startswith("secret-")]
    assert [one.message for one in found] == ["DB_PASSWORD is named like a secret, and its value is in Git"]
    assert found[0].place.startswith(f"specs/nlp/filings.yaml:{len(spec.splitlines())}:")
