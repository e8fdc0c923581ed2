"""Jobs in other people's repositories: the files that have one, and its kind. None is stored here."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A kind of `gangplan import`, and a pattern for its files.
_OBJECTS = {
    "mpijob": re.compile(r"^ {0,2}(?:- )?kind: *[\"']?MPIJob\b", re.MULTILINE),
    "pytorchjob": re.compile(r"^ {0,2}(?:- )?kind: *[\"']?PyTorchJob\b", re.MULTILINE),
    "trainjob": re.compile(r"^ {0,2}(?:- )?kind: *[\"']?TrainJob\b", re.MULTILINE),
    "jobset": re.compile(r"^ {0,2}(?:- )?kind: *[\"']?JobSet\b", re.MULTILINE),
    "volcano": re.compile(r"^apiVersion: *[\"']?batch\.volcano\.sh/[\s\S]{0,40}^kind: *Job\b", re.MULTILINE),
    "tfjob": re.compile(r"^ {0,2}(?:- )?kind: *[\"']?TFJob\b", re.MULTILINE),
    "xgboostjob": re.compile(r"^kind: *XGBoostJob\b", re.MULTILINE),
    "paddlejob": re.compile(r"^kind: *PaddleJob\b", re.MULTILINE),
    "jaxjob": re.compile(r"^kind: *JAXJob\b", re.MULTILINE),
    "sagemaker": re.compile(r"\"TrainingJobName\"[\s\S]*\"AlgorithmSpecification\"|\"AlgorithmSpecification\"[\s\S]*\"TrainingJobName\""),  # noqa: E501
    "azureml": re.compile(r"^\$schema: *\S*azureml\S*/(?:commandJob|pipelineJob|sweepJob)\.schema\.json", re.MULTILINE),  # noqa: E501
}  # fmt: skip
_SCRIPTS = {
    "slurm": re.compile(r"^#SBATCH\s", re.MULTILINE),
    "pbs": re.compile(r"^#PBS\s", re.MULTILINE),
}
_DATA = (".yaml", ".yml", ".json")
_SHELL = (".sh", ".sbatch", ".slurm", ".sl", ".slm", ".batch", ".bash", ".job", ".pbs", ".qsub", ".sub", ".run", ".cmd", "")  # fmt: skip # noqa: E501
# Files that are not real jobs: definitions of kinds, vendored code, test data, templates of programs.
_NOT = re.compile(r"(?:^|/)(?:vendor|third_party|crds?|node_modules|testdata|\.git)/|crd|customresourcedefinition", re.IGNORECASE)  # fmt: skip # noqa: E501
_TEMPLATE = re.compile(r"\{\{|\{%|<%")
_KEPT = re.compile(r"azureml:(?://registries/[\w.-]+/components/)?([\w.-]+)")
_MOST_BYTES = 400_000
# At most this many files count for each repository and kind.
_MOST = 60


@dataclass(frozen=True)
class Source:
    """One file with a job: the repository, the path in it, and where it is now."""

    kind: str
    repository: str
    path: str
    file: Path
    beside: tuple[Path, ...] = ()

    @property
    def name(self) -> str:
        """Its name in lists."""
        return f"{self.repository}/{self.path}"


def checked_out(folder: Path, into: Path) -> Iterator[tuple[str, Path]]:
    """Yield the repositories of a folder by name: work trees as they are, Git folders unpacked in `into`."""
    for place in sorted(folder.iterdir()):
        if not place.is_dir() or place.name.startswith("."):
            continue
        bare = next((one for one in (place, place / "repo", place / "repo" / ".git") if _is_git(one)), None)
        if bare is None:
            yield place.name, place
            continue
        target = into / place.name
        if not target.is_dir():
            _unpack(bare, target)
        yield place.name, target


def _unpack(bare: Path, target: Path) -> None:
    """Write the text files of a Git folder's newest commit, without blobs that the folder lacks."""
    git = ["git", f"--git-dir={bare}"]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "-l", "HEAD"], capture_output=True, check=False)
    wanted: list[tuple[str, str]] = []
    for line in listed.stdout.decode("utf-8", "replace").split("\0"):
        head, _, path = line.partition("\t")
        mode, _, blob, size = (*head.split(), "", "", "", "")[:4]
        is_text = mode.startswith("100") and Path(path).suffix.lower() in (*_DATA, *_SHELL)
        if is_text and size.isdigit() and int(size) <= _MOST_BYTES and not _NOT.search(path):
            wanted.append((blob, path))
    asked = "".join(f"{blob}\n" for blob, _ in wanted).encode()
    answer = subprocess.run(
        [*git, "cat-file", "--batch"], input=asked, capture_output=True, check=False
    ).stdout
    at = 0
    target.mkdir(parents=True)
    for _, path in wanted:
        end = answer.index(b"\n", at)
        words = answer[at:end].split()
        at = end + 1
        if words[-1:] == [b"missing"]:
            continue
        data = answer[at : at + int(words[2])]
        at += len(data) + 1
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _is_git(place: Path) -> bool:
    return (place / "HEAD").is_file() and (place / "objects").is_dir()


def sources(folder: Path, into: Path) -> list[Source]:
    """Return the jobs of all repositories of a folder, in order; files with the same text count once."""
    found: list[Source] = []
    seen: set[bytes] = set()
    trees = list(checked_out(folder, into))
    known = {
        name: path
        for name_of, root in trees
        if "azureml" in name_of
        for name, path in components(root).items()
    }
    for repository, root in trees:
        of_kind: dict[str, list[Source]] = {}
        for path in sorted(root.rglob("*")):
            text = _text(path, root)
            if text is None or (digest := hashlib.sha256(text.encode()).digest()) in seen:
                continue
            for kind in kinds(path.suffix.lower(), text):
                seen.add(digest)
                beside = tuple(_named(text, known)) if kind == "azureml" else ()
                if kind == "trainjob":
                    beside = tuple(_runtimes(path, text))
                one = Source(kind, repository, path.relative_to(root).as_posix(), path, beside)
                of_kind.setdefault(kind, []).append(one)
        for some in of_kind.values():
            drawn = sorted(some, key=lambda one: hashlib.sha256(one.name.encode()).digest())[:_MOST]
            found += sorted(drawn, key=lambda one: one.path)
    return found


def _named(text: str, known: dict[str, Path]) -> Iterator[Path]:
    """Yield the files of components that a registry holds, and of those that these name in turn."""
    names, seen = re.findall(_KEPT, text), set[str]()
    while names:
        name = names.pop()
        if name in known and name not in seen:
            seen.add(name)
            yield known[name]
            names += re.findall(_KEPT, known[name].read_text(encoding="utf-8"))


def _runtimes(job: Path, text: str) -> Iterator[Path]:
    """Yield the files next to a TrainJob that have the runtime that it names."""
    for path in sorted(job.parent.glob("*.y*ml")):
        other = path.read_text(encoding="utf-8") if path != job else ""
        names = re.findall(
            r"^kind: *(?:Cluster)?TrainingRuntime\nmetadata:\n(?: .*\n)*?  name: *(\S+)", other, re.MULTILINE
        )
        if any(
            re.search(rf"runtimeRef:\n(?: .*\n){{0,2}}? +name: *{re.escape(name)} *$", text, re.MULTILINE)
            for name in names
        ):
            yield path


def components(folder: Path) -> dict[str, Path]:
    """Return components of Azure ML by name, as `az ml component show` would print them."""
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*.y*ml")):
        text = _text(path, folder)
        name = (
            re.search(r"^name: *([\w.-]+) *$", text, re.MULTILINE)
            if text and "Component.schema.json" in text
            else None
        )
        if name:
            found.setdefault(name[1], path)
    return found


def _text(path: Path, root: Path) -> str | None:
    suffix = path.suffix.lower()
    if suffix not in (*_DATA, *_SHELL) or _NOT.search(path.relative_to(root).as_posix()):
        return None
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def kinds(suffix: str, text: str) -> list[str]:
    """Return the kinds of jobs in a text."""
    if suffix in _DATA:
        if _TEMPLATE.search(text.replace("${{", "")):
            return []
        return [kind for kind, pattern in _OBJECTS.items() if pattern.search(text)]
    if _TEMPLATE.search(re.sub(r"\$\{\{|\{\{\.|#.*", "", text)):
        return []
    return [kind for kind, pattern in _SCRIPTS.items() if pattern.search(text)]
