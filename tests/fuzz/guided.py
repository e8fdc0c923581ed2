"""`python -m tests.fuzz.guided WHAT COUNT SEED`: campaigns of texts, guided by what each text reaches.

atheris (libFuzzer) keeps the texts that reach new branches of what is under test, and changes those further. It
does not come with gangplan: `make guided` installs it into a folder of its own. It prints the first text that
breaks the law, and ends with an exit code that is not 0.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# What is under test in each campaign: to follow the rest of the program would only take time.
PARTS = {
    "yaml": ("gangplan.source",),
    "quantities": ("gangplan.model.quantity",),
    "commands": ("gangplan.plan",),
    "cel": ("gangplan.cel",),
    "regex": ("gangplan.re2",),
    "crds": ("gangplan.spec.crd_files", "gangplan.validate.apiserver"),
}


def main(arguments: list[str]) -> int:
    """Read the arguments and run the campaign; libFuzzer ends the process."""
    what, count, seed = arguments[0], int(arguments[1]), int(arguments[2])
    if what not in PARTS:
        print(f"there is no campaign of texts {what}; there are {', '.join(PARTS)}")
        return 2
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print("atheris is not installed: run make guided")
        return 3
    with atheris.instrument_imports(include=list(PARTS[what])):
        from tests.fuzz.base import MOST_BYTES, PATIENCE_S, Texts, within
        from tests.fuzz.campaigns import CAMPAIGNS
    campaign = CAMPAIGNS[what]
    assert isinstance(campaign, Texts)

    def law(text: bytes) -> None:
        with within(PATIENCE_S):  # of processor time: libFuzzer's own limit is of the clock
            campaign.law(text)

    with tempfile.TemporaryDirectory(prefix="gangplan-fuzz-") as room:
        folder = Path(room)
        _write_corpus(folder, [text[:MOST_BYTES] for text in campaign.corpus()], campaign.words)
        flags = (f"-runs={count}", f"-seed={seed}", f"-max_len={MOST_BYTES}", "-timeout=3600")
        files = (f"-dict={folder / 'words'}", f"-artifact_prefix={folder}/", str(folder / "corpus"))
        atheris.Setup(
            ["guided", *flags, "-verbosity=0", "-len_control=0", "-print_final_stats=1", *files], law
        )
        atheris.Fuzz()
    return 0


def _write_corpus(folder: Path, texts: Sequence[bytes], words: Sequence[bytes]) -> None:
    """Write what libFuzzer starts with: a file for each text, and its dictionary."""
    (folder / "corpus").mkdir()
    for number, text in enumerate(texts):
        (folder / "corpus" / f"{number:05}").write_bytes(text)
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in words)
    (folder / "words").write_text("".join(f'"{word}"\n' for word in quoted), encoding="ascii")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
