"""What scripts make: in all ranks at once, on the launcher alone, or once where it should be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gangplan.findings import Problem
from gangplan.model.pods import Mount
from tests.plan.asking import decided
from tests.workspaces import stock


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stock workspace, whose job has 4 workers with 2 GPUs each; its claim is at /data."""
    return stock(tmp_path_factory.mktemp("made"))


# What a script of torch begins with | what of it runs in both ranks of each worker at once
BEFORE = [
    ("git clone https://github.com/a/b &&", "git clone"),
    ("git clone https://github.com/a/b;", "git clone"),
    ("git -c http.sslVerify=true clone https://github.com/a/b;", "git -c"),
    ("mkdir out &&", "mkdir out"),
    ("set -e; mkdir out;", "mkdir out"),
    ("ln -s a b &&", "ln -s"),
    ("pip install -e . &&", "pip install"),
    ("python -m pip install x;", "pip install"),
    ("uv pip install x;", "uv pip install"),
    ("conda env create -f e.yaml &&", "conda env"),
    ("make -j8 &&", "make -j8"),
    ("cmake -B build && cmake --build build &&", "cmake -B"),
    ("python setup.py build_ext --inplace &&", "setup.py build_ext"),
    ("nvcc -o k k.cu &&", "nvcc -o"),
    ("tar xzf a.tgz &&", "tar xzf a.tgz"),
    ("tar -C d -xf a.tar;", "tar -C d"),
    ("curl https://a/b | tar x;", "tar x"),
    ("unzip -q a.zip;", "unzip -q"),
    ("wget -q https://a/b;", "wget -q"),
    ("curl -sL -o b https://a/b;", "curl -sL"),
    ("curl -LO https://a/b;", "curl -LO"),
    ("export A=1; cd src && CC=gcc make &&", "make"),
    # succeed in all ranks
    ("mkdir out;", ""),
    ("mkdir -p out &&", ""),
    ("mkdir -pv out &&", ""),
    ("ln -sfn a b &&", ""),
    ("git pull;", ""),
    ("pip list;", ""),
    ("make -n;", ""),
    ("tar tf a.tar;", ""),
    ("tar cf a.tar d;", ""),
    ("unzip -l a.zip;", ""),
    ("wget -O - https://a/b;", ""),
    ("wget -qO- https://a/b;", ""),
    ("curl -s https://a/b;", ""),
    ("curl -so /dev/null https://a/b;", ""),
    ("gcc --version;", ""),
    # not in every rank, or in a folder of its own
    ("[ -d b ] || git clone https://github.com/a/b;", ""),
    ("git clone https://github.com/a/b || true;", ""),
    ("if test -e x; then pip install x; fi;", ""),
    ("if [ $LOCAL_RANK = 0 ]; then pip install x; fi;", ""),
    ("flock /tmp/lock pip install x;", ""),
    ("cd $(mktemp -d); git clone https://github.com/a/b;", ""),
    ("mkdir out-$RANK &&", ""),
    ("cd $WHERE; pip install x;", ""),
]


@pytest.mark.parametrize(("before", "what"), BEFORE, ids=[before for before, _ in BEFORE])
def test_a_script_of_ranks_makes_files_in_all_of_them(before: str, what: str, root: Path) -> None:
    found = _find_repeated(root, "pytorch", f"{before} python train.py")
    assert found == (
        [f"'{what}' runs in the 2 ranks of each worker at the same time, in one folder"] if what else []
    )


@pytest.mark.parametrize(
    ("image", "script", "who"),
    [
        ("pytorch", "cd /data && git clone https://a/b && python b/train.py", "all 8 ranks"),
        ("pytorch", "git clone https://a/b /data/b && python /data/b/train.py", "all 8 ranks"),
        ("pytorch", "git clone https://a/b /data/b && torchrun /data/b/train.py", "all 4 workers"),
        ("pytorch", "cd /data; tar xf a.tar; torchrun train.py", "all 4 workers"),
        ("pytorch", "git clone https://a/b && torchrun b/train.py", ""),
        ("pytorch", "torchrun train.py && cd /data && tar xf a.tar && ls", ""),
        ("openmpi", "git clone https://a/b && ./b/solve", "the 2 ranks of each worker"),
        ("openmpi", "git clone https://a/b /data/b && mpirun /data/b/solve", ""),
    ],
)
def test_on_a_volume_all_pods_make_files(image: str, script: str, who: str, root: Path) -> None:
    found = _find_repeated(root, image, script)
    assert [one.partition(" runs in ")[2].partition(" at the same")[0] for one in found] == [who] * bool(who)


def test_one_rank_makes_its_files_alone(root: Path) -> None:
    words = ("bash", "-c", "git clone https://a/b && python b/train.py")
    final = decided(root, "pytorch", words, slots=1)
    assert "command-repeated" not in [str(one.rule) for one in final.problems]


@pytest.mark.parametrize(
    ("program", "right"),
    [
        ("python train.py --lr 1", "torchrun train.py --lr 1"),
        ("exec python -u train.py", "torchrun train.py"),
        ("python3 -m b.train", "torchrun -m b.train"),
        ("./train.sh", ""),
        ("python -X dev train.py", ""),
    ],
)
def test_the_help_starts_the_ranks_behind_it(program: str, right: str, root: Path) -> None:
    words = ("bash", "-c", f"make && {program}")
    (problem,) = [one for one in decided(root, "pytorch", words).problems if one.rule == "command-repeated"]
    said = re.search(r"'make && (.*)'\]\.", problem.help)
    assert (said[1] if said else "") == right


# A script on an image of Open MPI | what of it only the launcher has
SCRIPTS = [
    ("mpicc -o hello hello.c && mpirun ./hello", "mpicc -o"),
    ("make && mpirun ./solver", "make"),
    ("git clone https://a/b && cd b && mpirun python train.py", "git clone"),
    ("cmake --build build; mpirun build/solver", "cmake --build"),
    ("make && mpirun /opt/solver", ""),
    ("make inputs && mpirun solver", ""),
    ("make -C /data/src && mpirun ./solver", ""),
    ("cd /data/src && make && mpirun ./solver", ""),
    ("cd $SRC && make && mpirun ./solver", ""),
    ("make && cp solver /data && mpirun ./solver", ""),
    ("mpirun ./solver && make report", ""),
]


@pytest.mark.parametrize(("script", "what"), SCRIPTS, ids=[script for script, _ in SCRIPTS])
def test_workers_lack_what_a_script_makes_on_the_launcher(script: str, what: str, root: Path) -> None:
    found = [one.message for one in _find_problems(root, "openmpi", script) if one.rule == "packages-lost"]
    assert [one.partition(" runs on the launcher alone")[0] for one in found] == [f"'{what}'"] * bool(what)


def _find_problems(root: Path, image: str, script: str) -> tuple[Problem, ...]:
    return decided(
        root, image, ("bash", "-c", script), mounts=(Mount("filings", "/data", "filings"),)
    ).problems


def _find_repeated(root: Path, image: str, script: str) -> list[str]:
    found = [one.message for one in _find_problems(root, image, script) if one.rule == "command-repeated"]
    return [one.partition(": ")[0] for one in found]
