"""Flags whose values become part of files for engines and forges: values accepted, values refused, and
messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from gangplan.delivery.engine import list_engines
from gangplan.errors import Exit
from gangplan.gitops.source import format_flux_url, strip_login
from gangplan.source import load_objects
from tests import workspaces
from tests.gitops.scripts import git
from tests.workspaces import begin, gangplan, tree

URL = "https://git.example.com/ml/jobs.git"
DIGEST = "@sha256:" + "1" * 64
ARGO, FLUX, OCI = (
    ("argocd", "--repo", URL),
    ("flux", "--repo", URL),
    ("flux", "--repo", "oci://a.example.com/b"),
)
OWNERS, TEKTON, INIT = ("codeowners",), ("tekton",), ("init", "--team", "nlp", "--cluster", "lab")
# A command with valid flags, the flag, values that are accepted, and refused ones with their messages. Values
# of a row are as similar to each other as possible.
CASES: list[tuple[tuple[str, ...], str, tuple[str, ...], dict[str, str]]] = [
    (("argocd",), "--repo",
     (URL, "http://git.example.com:8080/a", "ssh://git@git.example.com:2222/a/b.git", "git@git.example.com:a/b.git",
      "https://dev.example.com/o/my%20project/_git/jobs"),
     {"": "--repo is missing", "*": "is not the address", f"{URL}\nx": r"'https://git.example.com/ml/jobs.git\nx'",
      "https://git.example.com": "is not", "https://git.example.com/a b": "is not", "jobs": "Write it as https://",
      "https://git.example.com/*": "is not", "!https://git.example.com/a": "is not", f"{URL}?token=s3cret": "is not",
      "https://me:s3cret@git.example.com/a": "Write https://git.example.com/a; the engine",
      "https://s3cret@git.example.com/a": "has a user or a password in it, which would be committed",
      "ssh://git:s3cret@git.example.com/a": "Write ssh://git@git.example.com/a;",
      "file:///srv/jobs.git": "is not"}),
    (("flux",), "--repo", (URL, "git@git.example.com:a/b.git", "oci://a.example.com/b"),
     {"oci://me:s3cret@a.example.com/b": "Write oci://a.example.com/b;", "https://*": "is not the address of a Git",
      "oci://a.example.com/b:main": "is not the address of an OCI artifact"}),
    (INIT, "--repo", (URL, "git@git.example.com:a/b.git"),
     {"": "is not the address", "oci://a.example.com/b": "is not the address of a Git repository",
      "https://me:s3cret@git.example.com/a": "Write https://git.example.com/a;"}),
    (INIT, "--branch", ("main", "release/1.0"), {"": "''", "a..b": "is not the name of a branch", "a b": "is not",
                                                 "a/": "is not", "a.lock": "is not", "a\nb": r"'a\nb' is not"}),
    (ARGO, "--revision", ("main", "v1.0", "release/1.0", "HEAD", "1" * 40),
     {"": "''", "a b": "is not the name of a branch", "a\nb": r"'a\nb' is not", "a..b": "Write --revision main.",
      "-x": "is not", "v1.*": "is not", "a~1": "is not", "a/.b": "is not", "a`b": "is not", "a@{1}": "is not"}),
    (OCI, "--revision", ("main", "v1.0_2", "sha256:" + "1" * 64),
     {"sha256:1": "Write --revision main.", "a b": "is not"}),
    (FLUX, "--namespace", ("flux-system", "a", "1a", "a" * 63),
     {"": "''", "A B": "'A B' cannot be the name of a namespace", "a" * 64: "cannot be", "a.b": "cannot be", "-a": "cannot be"}),
    ((*TEKTON, "--wait", "flux"), "--namespace", ("ci", "tools"), {"CI": "cannot be the name of a namespace"}),
    (FLUX, "--secret", ("", "git", "bank.git-1"), {"A": "cannot be the name of an object", "a/b": "Write --secret flux-git."}),
    (OCI, "--ca", ("registry-ca",), {"-a": "cannot be the name of an object"}),
    (FLUX, "--ca", ("",), {"registry-ca": "Add the key ca.crt to that Secret"}),
    (FLUX, "--proxy", ("squid",), {"http://10.1.2.3": "cannot be the name of an object"}),
    (FLUX, "--provider", ("", "aws", "azure", "github"), {"gcp": "Write one of aws, azure, github", "gihub": "Did you mean 'github'?"}),
    (OCI, "--provider", ("gcp",), {"github": "provider github cannot read an OCI artifact"}),
    (FLUX, "--after", ("operators",), {"Operators": "cannot be the name of an object"}),
    (FLUX, "--prefix", ("", "ml/jobs", "ml/größe", "/ml/"), {"../ml": "cannot be the folder", "a b": "cannot be"}),
    (ARGO, "--destination",
     ("lab=prod-us", "lab=prod eu", "lab=arn:aws:eks:eu-central-1:1:cluster/a", "lab=https://k8s.example.com:6443",
      "lab=https://kubernetes.default.svc"),
     {"lab=*": "'*' is not what Argo CD calls a cluster", "lab=prod-?": "without * ? [ ]", "lab=!prod": "is not what",
      "lab=a\nb": r"'a\nb' is not", "lab= a": "is not what", "lab=https://*": "is not", "lab=": "not of the form",
      "lab=https://me:a@k8s.example.com": "is not", "leb=prod": "there is no cluster 'leb'", "=a": "not of the form"}),
    (ARGO, "--notify", ("slack=ml-runs", "email=a@example.com", "slack=ml-runs;ml-ops", "teams=ML runs"),
     {"slack": "Write --notify slack=ml-runs.", "my service=a": "'my service' is not what Argo CD calls a service",
      "slack\n=a": "is not what Argo CD calls a service", "slack=a\nb": "cannot be a recipient", "slack=a ": "cannot be a recipient",
      "a" * 33 + "=b": "is not what Argo CD calls a service"}),
    (ARGO, "--plugin", (f"registry.example.com/gangplan{DIGEST}", f"registry.example.com:5000/a:1{DIGEST}"),
     {"A B": "Write --plugin registry.example.com/", "registry.example.com/a:1": "a tag can be moved",
      f"registry.example.com/a{DIGEST}1": "is not the name of an image"}),
    (TEKTON, "--image", ("python:3.13", f"registry.example.com/ci{DIGEST}"),
     {"A": "Write --image registry.example.com/", "a:b:c": "is not the name of an image", "a\n": "is not", "a//b": "is"}),
    (TEKTON, "--forge", ("gitlab", "none"), {"githup": "Did you mean 'github'?"}),
    (TEKTON, "--start", ("pac", "triggers"), {"trigger": "Did you mean 'triggers'?", "jenkins": "there is no starter"}),
    (TEKTON, "--sync", ("kubeconfig",), {"ssh": "there is no way to a cluster 'ssh'"}),
    (TEKTON, "--wait", ("argocd",), {"argo": "there is no sync engine 'argo'", "none": "there is no sync engine"}),
    (("github",), "--python", ("3.13", "3.12.1", "3"), {"3..1": "is not a version", "4": "is not", "3.x": "is not"}),
    (("github",), "--pin", (f"actions/cache={'1' * 40}",),
     {"actions/cache=main": "does not pin an action", f"actions/cash={'1' * 40}": "does not pin an action"}),
    (("github",), "--schedules", ("*/15 * * * *", "7,37 2 1-15 * MON-FRI"),
     {"*/15 * * *": "it has no five fields of numbers and names", "@hourly": "it has no five fields", "@every 1h": "no five",
      "61 * * * *": "'61' is not a minute from 0 to 59", "* * * * *\nx": "it has no five fields", "0 0 * * L": "is neither a number"}),
    (OWNERS, "--organisation", ("acme", "acme/ml"),
     {"@acme": "Write --organisation acme.", "": "Write --organisation acme.", "a b": "is not the name of an", "a/": "a."}),
    (OWNERS, "--owner", ("nlp=@acme/nlp", "platform=@acme/ml-ops @anna", "nlp=nlp@example.com", "nlp=@@developer"),
     {"nlp=The Team": "'The Team' does not name owners", "nlp=@a\n* @b": "does not name owners", "nlp=acme": "does not",
      "nlp=@a  @b": "does not name owners", "nip=@a": "there is no team 'nip'", "nlp": "not of the form nlp=@acme/nlp"}),
]  # fmt: skip
TAKEN = [(words, flag, value) for words, flag, taken, _ in CASES for value in taken]
REFUSED = [(words, flag, value, said) for words, flag, _, bad in CASES for value, said in bad.items()]


def called(words: tuple[str, ...], root: Path, out: Path, *more: str) -> workspaces.Outcome:
    """Run a command that writes into a folder; a second --repo replaces the first."""
    kept = list(words[1:])
    for flag in more[::2]:
        if flag in kept and flag == "--repo":
            del kept[kept.index(flag) : kept.index(flag) + 2]
    if words[0] == "init":
        return gangplan("init", out, *kept, *more)
    return gangplan("gitops", words[0], "-C", root, "-o", out, *kept, *more)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create and render the small workspace."""
    root = workspaces.stock(tmp_path_factory.mktemp("flags"))
    workspaces.render(root)
    return root


@pytest.mark.parametrize(("words", "flag", "value"), TAKEN)
def test_a_valid_value_is_written(
    words: tuple[str, ...], flag: str, value: str, stock: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    outcome = called(words, stock, out, flag, value)
    assert (outcome.code, outcome.err) == (Exit.CLEAN, "")
    for path, data in tree(out).items():
        if path.startswith(("lab", "argocd/", "flux/", "settings/")):
            assert load_objects(data.decode())


@pytest.mark.parametrize(("words", "flag", "value", "said"), REFUSED)
def test_an_invalid_value_is_refused_before_anything_is_written(
    words: tuple[str, ...], flag: str, value: str, said: str, stock: Path, tmp_path: Path
) -> None:
    outcome = called(words, stock, tmp_path / "out", flag, value)
    assert (outcome.code, outcome.out) == (Exit.INPUT, "")
    assert said in outcome.err
    assert "s3cret" not in outcome.err
    assert outcome.err.startswith("fatal: ")
    assert outcome.err.count("\n") == 2, "a message and a help, a line each"
    assert not (tmp_path / "out").exists()


def test_every_option_has_cases() -> None:
    tried = {flag for _, flag, _, _ in CASES}
    assert {option.flag for one in list_engines() for option in one.options} - tried == {"--retries"}, (
        "a number"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("argocd", "--repo", "*", "--revision", "a b", "--namespace", "A", "--prefix", "..", "--cluster", "leb",
             "--destination", "lib=a", "--destination", "lab=*", "--notify", "slack", "--plugin", "A"),
            ("'*' is", "'a b' is", "'A' cannot be the name of a namespace", "'..' cannot", "cluster 'leb'", "cluster 'lib'",
             "'*' is not what", "--notify slack: not", "'A' is not the name of an image"),
        ),
        (("flux", "--repo", "", "--revision", "", "--cluster", "leb"), ("--repo is missing", "'' is not the n", "'leb'")),
        (
            ("tekton", "--branch", "-", "--image", "A", "--forge", "x", "--wait", "y", "--namespace", "Z", "--cluster", "leb"),
            ("'-' is", "'A' is", "forge 'x'", "engine 'y'", "'Z' cannot", "cluster 'leb'"),
        ),
        (("github", "--branch", "-", "--prefix", "..", "--python", "2", "--pin", "a=b"), ("'-'", "'..'", "'2'", "'a=b'")),
        (
            ("codeowners", "--organisation", "@a", "--owner", "nip=@a", "--owner", "nlp=a", "--prefix", ".."),
            ("'@a' is", "team 'nip'", "'a' does not", "'..'"),
        ),
        (("argocd", "--repo", URL, "--notify", "slack=a", "--notify", "slack=b"), ("--notify names slack twice",)),
        (("argocd", "--repo", URL, "--destination", "lab=a", "--destination", "lab=b"), ("names lab twice",)),
        (("codeowners", "--owner", "nlp=@a", "--owner", "nlp=@b"), ("--owner names nlp twice",)),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_all_invalid_values_are_reported_at_once(
    words: tuple[str, ...], said: tuple[str, ...], stock: Path, tmp_path: Path
) -> None:
    outcome = called(words, stock, tmp_path / "out")
    assert outcome.code == Exit.INPUT
    assert [one for one in said if one not in outcome.err] == [], outcome.err
    assert outcome.err.splitlines()[0].count("; ") == len(said) - 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "flux"),
    [
        ("git@git.example.com:ml/jobs.git", "ssh://git@git.example.com/ml/jobs.git"),
        ("git@git.example.com:/srv/jobs.git", "ssh://git@git.example.com/srv/jobs.git"),
        ("ssh://git@git.example.com:2222/ml/jobs.git", "ssh://git@git.example.com:2222/ml/jobs.git"),
        (URL, URL),
    ],
)
def test_flux_gets_every_address_in_the_form_that_it_reads(
    given: str, flux: str, stock: Path, tmp_path: Path
) -> None:
    assert format_flux_url(given) == flux
    outcome = gangplan("gitops", "flux", "-C", stock, "--repo", given, "-o", tmp_path)
    assert outcome.code == Exit.CLEAN, outcome.err
    text = (tmp_path / "lab.yaml").read_text()
    assert next(body["spec"]["url"] for body in load_objects(text) if "url" in body["spec"]) == flux
    assert f"--repo {flux}`" in text.splitlines()[0]


def test_a_password_of_the_remote_is_left_out(tmp_path: Path) -> None:
    for number, remote in enumerate(
        ("https://s3cret@git.example.com/a/b.git", "ssh://git:s3cret@git.example.com/a/b")
    ):
        root = tmp_path / str(number)
        root.mkdir()
        git(root, "init", "-q")
        git(root, "remote", "add", "origin", remote)
        begin(root)
        assert f'repoURL: "{strip_login(remote)}"' in (root / "argocd/lab.yaml").read_text()
        assert b"s3cret" not in b"".join(
            data for path, data in tree(root).items() if not path.startswith(".git/")
        )
