"""How a container starts its script: the check of the files, the options, and what the program gets."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gangplan.generators.launch import DEFAULT_WAIT_S
from gangplan.generators.scripts import read_launch_scripts
from gangplan.model.exits import LAUNCH_EXITS, PREFLIGHT_EXITS
from gangplan.model.profiles import DEFAULT_GRACE_S
from tests import plain, workspaces
from tests.launch.scripts import SHELLS, Pod, container
from tests.launch.test_launch import SPECS
from tests.mpijob.base import OPERATOR
from tests.resolve.test_identity import AWS, STS

SCRIPTS = LAUNCH_EXITS["scripts"].code
TEXTS = read_launch_scripts()
ROLES = {
    "launcher.sh": ("launcher", SPECS["openmpi"]),
    "worker.sh": ("node", SPECS["openmpi"]),
    "program.sh": ("node", SPECS["openmpi"].replace("image: openmpi", "image: pytorch")),
}
# Everything that a launch needs of an image with Open MPI, apart from the shell and MPI itself.
PROGRAMS = ("cat", "date", "grep", "sed", "sort", "timeout", "uname", "wc")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    """A shell that images have as /bin/sh."""
    return str(request.param)


def pod_of(script: str, folder: Path, shell: str) -> Pod:
    """The pod that starts with a script, and ends with the code of its program."""
    role, spec = ROLES[script]
    return Pod.of(folder, shell, container(spec, role, folder))


# The files


@pytest.mark.parametrize("script", ROLES)
def test_the_mounted_scripts_start(script: str, shell: str, tmp_path: Path) -> None:
    pod = pod_of(script, tmp_path, shell)
    assert pod.box.command[3] == script
    assert (pod.start("program", "a b").returncode, pod.log[-1]) == (7, "program 1 a b")


@pytest.mark.parametrize("changed", TEXTS)
def test_changed_scripts_do_not_start(changed: str, shell: str, tmp_path: Path) -> None:
    """A ConfigMap that was deleted and created again may hold anything."""
    pod = pod_of("launcher.sh", tmp_path, shell)
    words = pod.placed()
    with (tmp_path / "launch" / changed).open("a") as file:
        file.write("true\n")
    done = pod.run([*words, "program"])
    assert done.returncode == SCRIPTS
    assert done.stderr == f"gangplan: {tmp_path}/launch does not hold the launch scripts of this run\n"
    assert pod.log == []


@pytest.mark.parametrize("script", ROLES)
def test_texts_that_moved_to_another_file_do_not_start(script: str, shell: str, tmp_path: Path) -> None:
    """An empty script would succeed without its program."""
    pod = pod_of(script, tmp_path, shell)
    words = pod.placed()
    folder = tmp_path / "launch"
    before = max(name for name in TEXTS if name < script)
    with (folder / before).open("a") as file:
        file.write((folder / script).read_text())
    (folder / script).write_text("")
    done = pod.run([*words, "program"])
    assert (done.returncode, pod.log) == (SCRIPTS, [])


@pytest.mark.parametrize(("name", "text"), [("also.sh", ""), ("zero.sh", "true\n")])
def test_another_script_in_the_folder_does_not_start(
    name: str, text: str, shell: str, tmp_path: Path
) -> None:
    pod = pod_of("launcher.sh", tmp_path, shell)
    words = pod.placed()
    (tmp_path / "launch" / name).write_text(text)
    assert pod.run([*words, "program"]).returncode == SCRIPTS
    assert pod.log == []


def test_a_folder_without_scripts_is_reported(shell: str, tmp_path: Path) -> None:
    pod = pod_of("launcher.sh", tmp_path, shell)
    words = pod.placed()
    shutil.rmtree(tmp_path / "launch")
    done = pod.run([*words, "program"])
    assert done.returncode == SCRIPTS
    assert f"gangplan: {tmp_path}/launch does not hold the launch scripts of this run\n" in done.stderr
    assert pod.log == []


def test_a_script_that_is_absent_is_reported(shell: str, tmp_path: Path) -> None:
    pod = pod_of("launcher.sh", tmp_path, shell)
    words = pod.placed()
    (tmp_path / "launch/ranks.sh").unlink()
    assert pod.run([*words, "program"]).returncode == SCRIPTS
    assert pod.log == []


@pytest.mark.parametrize("script", ROLES)
def test_an_image_without_sha256sum_starts_unchecked(script: str, shell: str, tmp_path: Path) -> None:
    pod = pod_of(script, tmp_path, shell)
    for name in PROGRAMS:
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    pod.path = str(tmp_path / "bin")
    words = pod.placed()
    with (tmp_path / "launch/common.sh").open("a") as file:
        file.write("true\n")
    done = pod.run([*words, "program"])
    assert (done.returncode, done.stderr) == (7, "")
    assert pod.log[-1] == "program 0 "


@pytest.mark.parametrize("name", TEXTS)
def test_scripts_are_written_alike(name: str) -> None:
    """As `shfmt -ln posix -i 2` writes them, as far as lines show it."""
    assert TEXTS[name].endswith("\n")
    for line in TEXTS[name].splitlines():
        blanks = len(line) - len(line.lstrip())
        assert blanks % 2 == 0, line
        assert line == line.rstrip(), line
        assert "\t" not in line, line
        assert not line.startswith("#") or len(line) <= 110, line


# The options


@pytest.mark.parametrize("script", ROLES)
def test_an_unknown_option_is_refused(script: str, shell: str, tmp_path: Path) -> None:
    pod = pod_of(script, tmp_path, shell)
    pod.box.command.insert(4, "--patience=3")
    done = pod.start("program")
    assert (done.returncode, done.stderr) == (2, "gangplan: the launch script has no option --patience=3\n")
    assert pod.log == []


def read_options() -> set[str]:
    """The options that common.sh reads."""
    return set(re.findall(r"^  --([a-z-]+)(?:=\*)?\) gp_", TEXTS["common.sh"], re.MULTILINE))


def test_every_option_is_described() -> None:
    described = re.findall(r"^#   --([a-z-]+)", TEXTS["common.sh"], re.MULTILINE)
    assert sorted(described) == sorted(read_options())


def test_options_that_a_run_leaves_out_have_the_defaults_of_the_generator() -> None:
    text = read_launch_scripts()["common.sh"]
    assert re.findall(r" gp_(grace|wait)=(\d+)", text) == [
        ("grace", str(DEFAULT_GRACE_S)),
        ("wait", str(DEFAULT_WAIT_S)),
    ]


def test_every_option_is_used_by_a_script() -> None:
    values = dict(re.findall(r"^  --([a-z-]+)(?:=\*)?\) (gp_\w+)=", TEXTS["common.sh"], re.MULTILINE))
    assert values.keys() == read_options()
    for option, value in values.items():
        used = [name for name, text in TEXTS.items() if re.search(rf"\$\{{?{value}\b", text)]
        assert used, option


def commands(value: Any) -> Iterator[list[str]]:
    """The commands of all containers of an object that start with a launch script."""
    if isinstance(value, dict):
        if value.get("command", [])[3:4] and value["command"][3] in TEXTS:
            yield value["command"]
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from commands(one)


NODE = "env: {NODE: {field: spec.nodeName}}\n"
LAB = "overlays/lab/cluster.yaml"
LOOKS = workspaces.CATALOG.replace('"}\n', '"}\n    preflight: /usr/local/bin/look\n')
DEEPSPEED = SPECS["openmpi"].replace("image: openmpi", "image: deepspeed").replace("[python,", "[deepspeed,")
ACCOUNT = workspaces.TEAM + f"identity: {{{AWS}}}\n"
CLOUD = workspaces.CLUSTER.replace("teams:\n", STS) + "workloadIdentity: {provider: aws, egress: [sts]}\n"
# Specs, each with the files of its workspace.
OPTIONED: tuple[tuple[str, dict[str, str]], ...] = (
    (SPECS["openmpi"] + "retries: 1\ngracePeriod: 5m\nlauncher: {runsRanks: true}\n", {}),
    (SPECS["intel"] + NODE, {}),
    (
        SPECS["openmpi"] + 'debug: {until: "2999-12-31"}\n',
        {LAB: workspaces.CLUSTER.replace("region:", "environment: dev\nregion:")},
    ),
    (SPECS["mpich"], {LAB: OPERATOR}),
    (SPECS["openmpi"] + "preflight: true\n", {"images/catalog.yaml": LOOKS}),
    (SPECS["openmpi"], {LAB: CLOUD, "specs/nlp/team.yaml": ACCOUNT}),
    (DEEPSPEED + "env: {PLAIN: a}\n", {}),
)


def test_every_option_is_produced_by_some_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("gangplan.generators.launch"), "WORKER_WAIT_S", 3)
    found = []
    for number, (spec, files) in enumerate(OPTIONED):
        root = workspaces.stock(tmp_path / str(number))
        workspaces.write(root, {"specs/nlp/filings.yaml": spec, **files})
        text = workspaces.render(root, "-o", "-", "specs/nlp/filings.yaml").out
        for words in commands(list(plain.load_all(text))):
            found += words[4 : words.index("--")]
    assert {option[2:].partition("=")[0] for option in found} == read_options()
    assert not [option for option in found if option.endswith("=")], "what is not needed is left out"


# What the program gets


def variables() -> set[str]:
    """The names that scripts assign."""
    found: set[str] = set()
    for text in TEXTS.values():
        code = re.sub(r"(?m)(^|\s)#.*", "", text)
        for place in re.findall(r"\b(?:for|read -r) ([\w ]+)", code):
            found |= set(place.partition(" in ")[0].split())
        code = re.sub(r"'[^']*'|-o \w+=", "''", re.sub(r'"[^"]*"', '""', code))
        found |= set(re.findall(r"(?<![\w$-])([A-Za-z_]\w*)=", code))
    return found


def test_scripts_assign_only_names_of_their_own() -> None:
    found = variables()
    assert {"gp_mpi", "gp_kind", "gp_host", "gp_word", "gp_slots"} <= found
    # mpirun's -x wants the one; the other, a shell assigns all the time.
    assert {name for name in found if not name.startswith("gp_")} == {"LD_LIBRARY_PATH", "_"}


@pytest.mark.parametrize("script", ROLES)
def test_variables_of_the_job_stay_as_they_are(script: str, shell: str, tmp_path: Path) -> None:
    """The templates of former releases assigned these, and changed those of the job with these names."""
    names = {"code", "command", "folder", "grace", "host", "hosts", "left", "name", "program", "self", "sum"}
    names |= {name.removeprefix("gp_") for name in variables()} | {"mpi", "workers", "one", "line", "rest"}
    names -= {"LD_LIBRARY_PATH", "_"}
    given = {name: f"the job's '{name}' $HOME" for name in sorted(names)}
    pod = pod_of(script, tmp_path, shell)
    pod.env = given
    (tmp_path / "bin/program").write_text("#!/bin/sh\nexec env -0\n")
    done = pod.start("program")
    assert done.returncode == 0, done.stderr
    got = dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry)
    assert {name: got.get(name) for name in given} == given
    new = got.keys() - given.keys() - {"PATH", "HOME", "LOG", "FACTS", "PWD", "OLDPWD", "SHLVL", "_"}
    assert new == ({"LD_LIBRARY_PATH"} if script == "launcher.sh" else set())


# The codes


def test_scripts_use_the_codes_of_the_table() -> None:
    """One table for scripts, for the Job's rules and for the page; no code that a signal or a shell makes."""
    bare = {name: re.sub(r"^\s*#.*", "", text, flags=re.M) for name, text in TEXTS.items()}
    used = {
        name: {int(code) for code in re.findall(r"\b(?:exit|gp_fail) (\d+)", text)} - {0, 1, 2, 143}
        for name, text in bare.items()
    }
    looks = dict(PREFLIGHT_EXITS)
    ends = {looks.pop(name).code for name in ("unstarted", "unfinished")}
    of_launch = {one.code for name, one in LAUNCH_EXITS.items() if name != "scripts"}
    assert used.pop("launcher.sh") == of_launch | ends
    assert not any(used.values())
    (listed,) = re.findall(r"^  ([\d |]+)\) gp_fail \"\$gp_code\" ;;$", bare["launcher.sh"], re.MULTILINE)
    assert {int(code) for code in listed.split(" | ")} == {one.code for one in looks.values()}
    assert all(128 + 64 < one.code < 200 for one in LAUNCH_EXITS.values())
    page = (workspaces.REPOSITORY / "docs/exit-codes.md").read_text()
    for name, one in LAUNCH_EXITS.items():
        (row,) = re.findall(rf"^\| {one.code} \| (.+) \| (yes|no) \|$", page, re.MULTILINE)
        assert row[1] == ("no" if one.is_final else "yes")
        assert name == "scripts" or row[0] == one.meaning


def test_the_header_of_the_launcher_names_its_codes() -> None:
    header = TEXTS["launcher.sh"].partition("\n. ")[0]
    wanted = {one.code for name, one in LAUNCH_EXITS.items() if name != "scripts"}
    wanted |= {PREFLIGHT_EXITS[name].code for name in ("unstarted", "unfinished")}
    assert {int(code) for code in re.findall(r"\b1\d\d\b", header)} == wanted
