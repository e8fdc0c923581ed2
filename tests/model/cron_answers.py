"""What robfig/cron answers about expressions and starts: questions, the program that asks, its answers.

`python -m tests.model.cron_answers` asks again and writes `answers_cron.json.gz`. It needs Go, and the module
in its cache.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
KEPT = HERE / "answers_cron.json.gz"
ORACLE = HERE / "cron_oracle"
# With and without clock changes: by an hour, by half of one, at midnight, an offset of 0. Not Pacific/Apia:
# it skipped a whole day of 2011, on which the library loops forever.
ZONES = (
    *("Etc/UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/St_Johns"),
    *("America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Asia/Kolkata", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Atlantic/Azores", "Africa/Casablanca", "Pacific/Auckland"),
)
# Clock changes between 2009 and 2019, and ordinary days; seconds since 1970.
MOMENTS = (
    *(1269700000, 1269738000, 1288400000, 1288486800, 1332600000, 1351300000, 1382832000, 1396080000),
    *(1300000000, 1300086000, 1320500000, 1325200000, 1325239200, 1414200000, 1445700000, 1459040000),
    *(1476500000, 1490400000, 1508000000, 1509050000, 1521800000, 1540600000, 1541300000, 1553900000),
    *(1551398399, 1554000000, 1572100000, 1456704000, 1230768000, 1546300799),
)
SAID = (
    *("@daily", "@hourly", "@weekly", "@monthly", "@yearly", "@annually", "@midnight", "0 2 * * *"),
    *("30 2 * * *", "0 0 * * *", "30 1 * * *", "0 1 * * *", "15 3 * * sun", "0 22 * * FRI"),
    *("*/5 * * * *", "0 */6 * * *", "0 0 31 * *", "0 0 29 2 *", "0 12 1 * 1", "0 12 */2 * 1"),
    *("0 12 1 * */2", "0 12 * * */1", "59 23 31 12 *", "0 0 30 2 *", "1,31 8-17/3 * jan,JUL mon-fri"),
    *("?/20 ? ? ? ?", "*-5 4 * * *", "5/15 4 * * *", "+5 4 * * *", "0 2 * 3,10,11 *", "0,30 0,2 * * *"),
    *("* * * * *", "0 24 * * *", "60 0 * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 7", "0 0 * * 5-7"),
    *("0 0 * * sunday", "0 0 5-1 * *", "*/0 * * * *", "1/2/3 * * * *", "1-2-3 * * * *", "-1 * * * *"),
    *("a * * * *", "1- * * * *", "-  * * * *", "* * * *", "* * * * * *", "", " ", "@every 1h"),
    *("@dayly", "@ daily", "@DAILY", ", * * * *", "1,,2 * * * *", "0x1 * * * *", "1_0 * * * *"),
    *("\u0663 * * * *", "1.5 * * * *", "0 0 L * *", "0 0 15W * *", "0 0 * * 1#2", "0\t3\xa0* * *"),
    *("0 0 * jan-mar/2 *", "0 0 1-7 * mon", "9999999999999999999999 * * * *", "0/99 * * * *"),
    *("*/61 * * * *", "1-5/+2 * * * *", "1-5/-2 * * * *"),
)


def questions() -> list[dict[str, Any]]:
    """Return the questions, always the same."""
    chance = random.Random(18)
    found = [
        {"cron": text, "zone": zone, "after": after, "count": 4}
        for text in SAID
        for zone in ZONES
        for after in chance.sample(MOMENTS, 4)
    ]
    for _ in range(3000):
        after = chance.choice(MOMENTS) + chance.randrange(-90000, 90000)
        found.append({"cron": _expression(chance), "zone": chance.choice(ZONES), "after": after, "count": 6})
    return found


def _expression(chance: random.Random) -> str:
    spans = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
    return " ".join(_field(chance, *span) for span in spans)


def _field(chance: random.Random, least: int, most: int) -> str:
    first, last = sorted((chance.randint(least, most), chance.randint(least, most)))
    step = chance.randint(1, max(1, (most - least) // 2))
    shapes = ["*", "*", "*", f"{first}", f"{first}-{last}", f"{first},{last}", f"*/{step}"]
    return chance.choice([*shapes, f"{first}-{last}/{step}", f"{first}/{step}"])


def can_ask() -> bool:
    """Return whether Go and the module are installed."""
    home = Path(os.environ.get("GOMODCACHE", Path.home() / "go/pkg/mod"))
    return shutil.which("go") is not None and (home / "github.com/robfig/cron/v3@v3.0.1").is_dir()


def ask(asked: list[dict[str, Any]], work: Path) -> list[dict[str, Any]]:
    """Return the answers of the library itself, built in a folder of its own."""
    for name in ("main.go", "go.mod", "go.sum"):
        shutil.copy(ORACLE / name, work / name)
    given = "".join(f"{json.dumps(one)}\n" for one in asked)
    env = {**os.environ, "GOPROXY": "off", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["go", "run", "."],
        cwd=work,
        input=given,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def kept() -> list[dict[str, Any]]:
    """Return the recorded questions and answers."""
    found: list[dict[str, Any]] = json.loads(gzip.decompress(KEPT.read_bytes()))
    return found


def record(work: Path) -> int:
    """Ask everything, record the answers, and return their number."""
    asked = questions()
    told = [{**one, **answer} for one, answer in zip(asked, ask(asked, work), strict=True)]
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
    KEPT.write_bytes(gzip.compress(text, mtime=0))
    return len(told)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(record(Path(folder)))
