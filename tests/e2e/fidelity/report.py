"""The harness's report, printed and written to a file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.fidelity.ask import AS_EMITTED, QUESTION, Answered, Result

Object = dict[str, Any]
LONGEST = 400


def lines(result: Result, small: dict[tuple[str, ...], Answered]) -> list[str]:
    """Return the lines of the report."""
    out = [f"{QUESTION} profile {result.profile.name} ({result.profile.versions()}), seed {result.seed}"]
    out += _table(result)
    known = Counter(one.known for one in result.answered if not one.agrees and one.known)
    out.append(f"known and justified disagreements: {sum(known.values())}")
    for cause, number in known.most_common():
        out.append(f"  {number:5} {cause.name}: {cause.right} is right: {cause.cause}")
    groups = result.disagreements
    out.append(f"other disagreements: {sum(map(len, groups.values()))} of {len(groups)} causes")
    for number, (cause, found) in enumerate(groups.items(), 1):
        out += _group(number, found, small.get(cause, found[0]))
    out += _warnings(result)
    out.append("seconds: " + ", ".join(f"{name} {spent:.1f}" for name, spent in result.seconds.items()))
    return out


def _table(result: Result) -> list[str]:
    out = []
    answered = result.answered
    rows = [("all", answered)]
    rows += [("as emitted", [one for one in answered if one.question.mutation == AS_EMITTED])]
    rows += [("changed", [one for one in answered if one.question.mutation != AS_EMITTED])]
    kinds = sorted({one.question.kind for one in answered})
    rows += [(kind, [one for one in answered if one.question.kind == kind]) for kind in kinds]
    out.append(
        f"  {'':22}{'asked':>7}{'refused':>9}{'late':>6}{'agree':>7}{'known':>7}{'open':>6}{'agree':>10}"
    )
    for name, some in rows:
        agree = sum(one.agrees for one in some)
        justified = sum(not one.agrees and one.known is not None for one in some)
        refused = sum(not one.server.accepted for one in some)
        late = sum(one.server.stage.startswith("late") for one in some)
        ratio = f"{100 * agree / len(some):.2f} %" if some else "-"
        rest = len(some) - agree - justified
        out.append(f"  {name:22}{len(some):7}{refused:9}{late:6}{agree:7}{justified:7}{rest:6}{ratio:>10}")
    if result.unasked:
        out.append(f"  not asked, because the edit names another namespace: {result.unasked}")
    specs = sum(result.refused_specs.values())
    if specs:
        out.append(f"  random specs that gangplan did not take (left out): {specs}")
        out += [f"    {number:5} {message}" for message, number in result.refused_specs.most_common()]
    return out


def _group(number: int, found: list[Answered], one: Answered) -> list[str]:
    question = one.question
    changes = [
        f"{place} {'dropped' if edit.drop else f'= {_short(repr(edit.put))}'}"
        for place, edit in zip(one.places, question.edits, strict=False)
    ]
    return [
        f"{number:3}. {question.kind}, {len(found)} times; {question.mutation}: {'; '.join(changes)}",
        f"       gangplan:      {_short(str(one.gangplan))}",
        f"       control plane: {_short(str(one.server))}",
    ]


def _warnings(result: Result) -> list[str]:
    found = Counter(
        (warning, one.question.mutation == AS_EMITTED)
        for one in result.answered
        if one.server.accepted
        for warning in one.server.warnings
    )
    out = [f"warnings of the control plane about objects that it accepts: {sum(found.values())}"]
    for (text, is_emitted), number in found.most_common(12):
        out.append(f"  {number:5} {'as emitted: ' if is_emitted else ''}{_short(text)}")
    return out


def _short(text: str) -> str:
    text = text.replace("\n", " ")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 60]} … {text[-50:]}"


def write(path: Path, result: Result, cases: list[Object]) -> None:
    """Write the counts and the counterexamples as YAML."""
    answered = result.answered
    content = {
        "question": QUESTION,
        "profile": result.profile.name,
        "versions": result.profile.versions(),
        "seed": result.seed,
        "asked": len(answered),
        "changed": sum(one.question.mutation != AS_EMITTED for one in answered),
        "agree": sum(one.agrees for one in answered),
        "ratio": round(sum(one.agrees for one in answered) / max(len(answered), 1), 4),
        "known": dict(Counter(one.known.name for one in answered if not one.agrees and one.known)),
        "disagreements": cases,
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
