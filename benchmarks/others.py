"""Compare gangplan with other programs: on the same manifests and cores, in the same benchmark run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.judges import Judge, judges
from benchmarks.libraries import libraries
from benchmarks.measure import Figure, ProgramError, Run, bare, gangplan, repeat
from benchmarks.peers import Peer, measured, peers
from benchmarks.results import Section

#: Errors of other programs: their row is left out, and the reason reported.
_THEIRS = (ProgramError, OSError, ValueError, subprocess.SubprocessError)


class Others:
    """The comparison. The corpus is made once, and versions of programs are recorded as they are found."""

    def __init__(
        self, folder: Path, jobs: int, times: int, used: dict[str, str], left_out: list[str]
    ) -> None:
        self.folder, self.jobs, self.times = folder, jobs, times
        self.used, self.left_out = used, left_out
        self.made: Corpus | None = None

    @property
    def corpus(self) -> Corpus:
        """The equal inputs, written on first use."""
        if self.made is None:
            self.made = write_corpus(self.folder / "corpus", self.jobs)
        return self.made

    def makers(self) -> Section:
        """Measure the programs that make the manifests."""
        corpus, figures = self.corpus, [bare()]
        render = ("render", "--no-cache", "--cluster", corpus.cluster, "-C", str(corpus.workspace))
        units = len(corpus.files)

        def anew() -> Figure:
            def once() -> Run:
                for file in corpus.files:
                    file.unlink()
                return gangplan(*render)

            return repeat("gangplan render", self.times, once, units=units)

        figures.append(anew())
        for number, peer in enumerate(self._peers()):
            self._try(peer, figures, partial(self._made, peer, number))
        about = (
            f"{units} runs of one form on one cluster, {len(corpus.objects())} objects. Every program makes "
            "the same objects, which is checked. gangplan reads specs, resolves them, checks "
            "them against schemas, "
            "applies the cluster's overlay, and makes the objects of its platform and teams "
            "besides; the others "
            "fill prepared texts with prepared values."
        )
        return Section("The same manifests made by other programs", about, tuple(figures), _beside(figures))

    def _peers(self) -> Iterator[Peer]:
        yield from peers(self.used, self.left_out)
        yield from libraries(self.used, self.left_out)

    def _made(self, peer: Peer, number: int) -> Figure:
        return measured(peer, self.corpus, self.folder / f"peer-{number}", self.times)

    def judges(self) -> Section:
        """Measure the programs that judge the manifests."""
        corpus, figures = self.corpus, [bare()]
        validate = ("validate", "--no-cache", "--cluster", corpus.cluster, "-C", str(corpus.workspace))
        units = len(corpus.files)
        figures.append(
            repeat("gangplan validate, all gates", self.times, lambda: gangplan(*validate), units=units)
        )
        for judge in judges(self.used, self.left_out):
            self._try(judge, figures, partial(self._judged, judge))
        about = (
            f"The same {units} runs. gangplan renders them, then asks every gate, every policy "
            "and kubeconform; "
            "each of the others asks one kind of question of files that are there."
        )
        return Section("The same manifests judged by other programs", about, tuple(figures), _beside(figures))

    def _judged(self, judge: Judge) -> Figure:
        folder = self.folder / f"judge-{judge.name.split(',')[0].split()[0]}"
        folder.mkdir()
        units = len(self.corpus.files)
        return repeat(judge.name, self.times, lambda: judge.judge(self.corpus, folder), units=units)

    def _try(self, one: Peer | Judge, figures: list[Figure], work: Callable[[], Figure]) -> None:
        try:
            figures.append(work())
        except _THEIRS as failure:
            self.left_out.append(f"{one.name}: {str(failure).splitlines()[0]}")


def _beside(figures: Sequence[Figure]) -> tuple[str, ...]:
    """Compare the processor time of each other program with ours."""
    ours = figures[1]
    return tuple(
        f"{figure.name}: {figure.cpu_s / ours.cpu_s:.2f} times the processor time of {ours.name}."
        for figure in figures[2:]
    )
