"""Images of `images/`, built by buildah on a Debian of debootstrap, and started as pods are (`make built`).

The MPI's own tarball is replaced: the build stage takes the wheel's tree. Images on UBI are built on Debian
as well, where a dnf of the tests installs Debian's packages of the same programs. Every other instruction is
the Containerfile's own. Needs root, buildah, debootstrap and the package index; GANGPLAN_BUILT names a
folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import workspaces
from tests.reality import hosts
from tests.reality.families import UnavailableError, installed
from tests.reality.hosts import Fabric, Host
from tests.reality.running import SSH_PORT, keys
from tests.reality.test_images import (  # noqa: F401
    ADDRESSES,
    IMAGES,
    MPIS,
    RANDOM,
    SAVES,
    SAYS,
    WORKERS,
    mpirun,
    random_user,
    wait,
)
from tests.workspaces import gangplan

PLACE = os.environ.get("GANGPLAN_BUILT", "")
pytestmark = pytest.mark.skipif(
    not PLACE, reason="GANGPLAN_BUILT is not set: `make built` builds images (minutes, 2 GB)"
)
BUILD_TIMEOUT_S = 1800
SUITE = "bookworm"
#: UBI's packages by Debian's names, without the host keys that only Debian's packages create on installation.
DNF = """\
#!/bin/sh
[ "$1" = install ] || exit 0
shift 2
names=$(echo "$@" | sed 's/openssh-clients/openssh-client/; s/procps-ng/procps/; s/3.11-pip/3-pip/')
apt-get update && apt-get install -y --no-install-recommends $names
rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*
"""


def buildah(*words: str) -> str:
    """Run buildah on a separate store; return what it prints."""
    own = ["--root", f"{PLACE}/store", "--runroot", f"{PLACE}/runroot", "--storage-driver", "vfs"]
    done = subprocess.run(
        ["buildah", *own, *words], capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout.strip()


def has(image: str) -> bool:
    """Return whether the store has an image."""
    listed = json.loads(buildah("images", "--json") or "[]") or []
    return any(image in (one.get("names") or ()) for one in listed)


def base() -> str:
    """Build the base image, a small Debian, if the store lacks it; return its name."""
    name = f"localhost/debian:{SUITE}-base"
    if has(name):
        return name
    folder = Path(PLACE, "base")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "root").mkdir(parents=True)
    words = ["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE, str(folder / "root")]
    subprocess.run(words, check=True, capture_output=True, timeout=BUILD_TIMEOUT_S)
    (folder / "dnf").write_text(DNF)
    (folder / "dnf").chmod(0o755)
    (folder / "Containerfile").write_text(
        # COPY gives everything to root: what group 0 may not read goes back to its own group.
        "FROM scratch\nCOPY root /\nRUN chgrp shadow /etc/shadow /etc/gshadow\n"
        'COPY dnf /usr/local/bin/dnf\nCMD ["/bin/bash"]\n'
    )
    buildah("build", "--isolation", "chroot", "-t", name, str(folder))
    shutil.rmtree(folder)
    return name


@pytest.fixture(scope="module", params=["mpich", "openmpi", "openmpi4"])
def image(request: pytest.FixtureRequest) -> str:
    """The name of a folder of images/."""
    return str(request.param)


@pytest.fixture(scope="module")
def built(image: str) -> str:
    """Build the image from its Containerfile, unless the store has the same build; return its name."""
    for program in ("buildah", "debootstrap"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: apt-get install buildah debootstrap")
    family, prefix = MPIS[image]
    try:
        hosts.check()
        tree = installed(family) / "usr/local"
    except UnavailableError as reason:
        pytest.skip(str(reason))
    texts = [path.read_bytes() for path in sorted((IMAGES / image).iterdir())]
    texts += [DNF.encode(), base().encode()]
    name = f"localhost/{image}:{hashlib.sha256(b''.join(texts)).hexdigest()[:12]}"
    if has(name):
        return name
    context = Path(PLACE, "context")
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(IMAGES / image, context)
    shutil.copytree(tree, context / "mpi", symlinks=True)
    text = (context / "Containerfile").read_text()
    begin, end = text.index("FROM ${BASE} AS build"), text.rindex("FROM ${BASE}\n")
    text = f"{text[:begin]}FROM scratch AS build\nCOPY mpi {prefix}\n\n{text[end:]}"
    (context / "Containerfile").write_text(text)
    buildah("build", "--isolation", "chroot", "--build-arg", f"BASE={base()}", "-t", name, str(context))
    shutil.rmtree(context)
    return name


@pytest.fixture(scope="module")
def root(built: str) -> Iterator[Path]:
    """Mount the files of the image."""
    container = buildah("from", built)
    try:
        yield Path(buildah("mount", container))
    finally:
        buildah("rm", container)


@contextmanager
def run(
    folder: Path, root: Path, built: str, launcher: Sequence[str]
) -> Iterator[tuple[Host, list[Host], Path]]:
    """Yield two workers that serve and a launcher, on the files of the image, with keys mounted as by
    Trainer."""
    secret, reports = folder / "secret", folder / "reports"
    for path in (secret, reports):
        path.mkdir()
    reports.chmod(0o777)
    for name, text in keys().items():
        (secret / name).write_text(text)
        (secret / name).chmod(0o640)
        os.chown(secret / name, 0, hosts.USER)
    sign = ":" if "/mpich:" in built else " slots="
    files = {
        "/etc/hosts": "127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in ADDRESSES.items()),
        "/etc/mpi/hostfile": "".join(f"{name}{sign}2\n" for name in WORKERS),
        "/usr/local/bin/says": SAYS,
        "/usr/local/bin/saves": SAVES,
    }
    modes = dict.fromkeys(("/usr/local/bin/says", "/usr/local/bin/saves"), 0o755)
    config = json.loads(buildah("inspect", "--type", "image", "--format", "{{.Config}}", built))["config"]
    env = dict(one.split("=", 1) for one in config["Env"]) | {"HOME": "/home/mpiuser"}
    serve = [*config["Entrypoint"], *config["Cmd"]]
    binds = {"/home/mpiuser/.ssh": secret, "/reports": reports}
    (folder / "hosts").mkdir()
    with Fabric(folder / "hosts", {}) as fabric:
        made = {}
        for name, address in ADDRESSES.items():
            words = [*config["Entrypoint"], *launcher] if name == "launcher" else serve
            made[name] = fabric.start(name, address, words, env, files, modes, binds=binds, base=root)
        workers = [made[name] for name in WORKERS]
        fabric.plug(workers)
        for worker in workers:
            wait(lambda worker=worker: worker.listens(SSH_PORT) or not worker.is_running, worker, 60)
        fabric.plug([made["launcher"]])
        yield made["launcher"], workers, reports


def check(launcher: Host, user: int) -> None:
    """Check that two ranks ran on each worker as this user, who has a name."""
    code = launcher.wait(120)
    assert code == 0, f"{code}: {launcher.out}{launcher.err}"
    said = sorted(line for line in launcher.out.splitlines() if line.startswith("rank on"))
    assert said == sorted([f"rank on {name} as {user} mpiuser" for name in WORKERS] * 2), launcher.out


def test_ranks_start_on_two_hosts(tmp_path: Path, image: str, built: str, root: Path) -> None:
    with run(tmp_path, root, built, mpirun(image, 4, "says")) as (launcher, _, _):
        check(launcher, 1000)


def test_ranks_start_as_any_user_of_group_0(
    random_user: None,  # noqa: F811
    tmp_path: Path,
    image: str,
    built: str,
    root: Path,
) -> None:
    with run(tmp_path, root, built, mpirun(image, 4, "says")) as (launcher, _, _):
        check(launcher, RANDOM)


def test_sigterm_reaches_the_ranks(tmp_path: Path, image: str, built: str, root: Path) -> None:
    with run(tmp_path, root, built, mpirun(image, 4, "saves")) as (launcher, workers, reports):
        wait(lambda: all((reports / f"{name}.up").exists() for name in WORKERS), launcher, 120)
        workers[0].terminate()
        wait(lambda: (reports / "w0.saved").exists(), launcher, 60)
        assert workers[0].wait(30) != 124


def test_the_image_has_no_host_keys(root: Path) -> None:
    """Debian's openssh-server creates host keys on installation."""
    assert (root / "etc/ssh/ssh_config.d/mpi.conf").is_file()
    assert list((root / "etc/ssh").glob("ssh_host_*")) == []


def test_images_inspect_confirms_the_catalog(tmp_path: Path, image: str, built: str) -> None:
    if image != "mpich":
        pytest.skip("the wheels of Open MPI have other versions than the Containerfiles build")
    layout = tmp_path / "layout"
    buildah("push", built, f"oci:{layout}:latest")
    entry = """\
apiVersion: gangplan.dev/v1
kind: ImageCatalog
images:
  mpich:
    repository: registry.example.com/hpc/mpich
    tag: "5.0.2"
    digest: sha256:1b0f7c64e0a3fe2d1c2d9a4b8a37f1f3f5d3a2b1c0998877665544332211ffee
    mpi: {implementation: MPICH, version: "5.0.2"}
"""
    home = workspaces.write(tmp_path / "workspace", workspaces.STOCK | {"images/catalog.yaml": entry})
    done = gangplan("images", "inspect", f"oci:{layout}:latest", "--image", "mpich", "-C", home)
    assert (done.code, done.findings) == (0, []), done.err
    assert re.search(r"^users +.*mpiuser \(1000\)", done.out, re.M), done.out
    # The replacement wheel has no mpich.pc, which a build from source installs.
    assert "MPICH (version not known) by /opt/mpich/bin/mpichversion" in done.out
