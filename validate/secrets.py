"""Plaintext secrets in a text, found by their form, by their name, or by both; never repeated in output.

Only the kind of a secret is reported: no letter, and no length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from gangplan.model.secret_forms import FORMS, STARTS
from gangplan.model.secret_words import REFERENCE, compute_entropy, is_secret_value, judge_secret_name
from gangplan.records import dataclass

RANDOM_TEXT = "a text of random characters, as keys and tokens are"
# What replaces every secret in output.
HIDDEN = "(hidden)"
_IN_ADDRESS = "a password in an address"

_FORM = re.compile("|".join(f"({form})" for form in FORMS.values()))
_KINDS = tuple(FORMS)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@'\"]*:([^\s/@'\"]+)@")
# NAME: value, NAME=value, --name=value, and `name: NAME` with `value: ...` after it.
_WORD = r"(?:\"(?P<{0}q>[^\"\n]+)\"|'(?P<{0}s>[^'\n]+)'|(?P<{0}p>[^\s,{{}}\[\]'\"#][^\s,{{}}\[\]'\"]*))"
_PAIR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)['\"]?(?:[ \t]*:[ \t]+|=)" + _WORD.format("a"))
_ENTRY = re.compile(
    r"\bname:[ \t]+['\"]?(?P<name>[A-Za-z_][A-Za-z0-9_]*)['\"]?,?\s+value:[ \t]+" + _WORD.format("a")
)
# --name VALUE, in one text or as two words of a list.
_OPTION = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)['\"]?(?:[ \t]*,[ \t]*|[ \t]+|[ \t]*\n[ \t]*-[ \t]+)(?!['\"]?-)"
    + _WORD.format("a")
)
# A word of random letters of both cases and digits, under any name: long enough to be a key, too short to be
# a picture. Of such words in 1 022 public manifests, all but one were in Secrets.
_ANY = re.compile(r"(?<![A-Za-z0-9+/_.:@-])[A-Za-z0-9+_][A-Za-z0-9+/_-]{23,126}={0,2}(?![A-Za-z0-9+/_=.:@-])")
_ANY_BITS, _ANY_TURNS, _ANY_DIGITS = 4.0, 0.4, 3
# Public by nature: certificates, public keys, checksums.
_PUBLIC = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,9} ){0,4}(?:CERTIFICATE|PUBLIC KEY)(?: [A-Z]{1,9})?-----[^-]*-----END"
    r"|\b(?:ssh-[a-z0-9]+|ecdsa-sha2-[a-z0-9]+)[ \t]+[A-Za-z0-9+/=]+|\bsha(?:1|256|384|512)-[A-Za-z0-9+/=]+"
)
# A pair is searched for only around these words, of which its name must have one.
_HINT = re.compile(
    r"[Pp][Aa][Ss][Ss][WwPp]|[Pp][Ww][Dd]|[Tt][Oo][Kk][Ee][Nn]|[Ss][Ee][Cc][Rr][Ee][Tt]|[Cc][Rr][Ee][Dd]|[Kk][Ee][Yy]"
)
# Between two words of a script or of a list, and between those of a netrc file, also as printf gets them.
_BETWEEN = r"['\"]?(?:,\s{0,99}|[ \t]{1,99}|[ \t]{0,99}(?:\\\n\s{1,99}|\n[ \t]{0,99}-[ \t]{1,99}))['\"]?"
_BLANK = r"(?:\s|\\[nt]){1,99}"
# Places whose value is a secret whatever its name: by a word that every such text has, where it is and what
# it is. Between a program and its flag are at most 200 characters, so that a text is read once.
_PLACES: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (
        "uthorization",
        re.compile(r"[Aa]uthorization['\"]?[:=][ \t]*['\"]?(?:Bearer|Basic|[Tt]oken)[ \t]+([^\s'\"\\,]{8,})"),
        "a token in a header",
    ),
    (
        "://",
        re.compile(
            r"://[^\s'\"?]{1,200}\?(?:[^\s'\"&]{0,200}&){0,20}"
            r"(?:sig|token|access_token|api_?key|password|X-Amz-Signature)=([^\s'\"&#,]{8,})"
        ),
        "a token in an address",
    ),
    (
        "curl",
        re.compile(
            r"\bcurl\b[^\n|;]{0,200}?[\s'\",](?:-u|--user)['\"]?[ =,\n-]{1,9}['\"]?[^\s:'\"$]{1,64}"
            r":([^\s'\",\]]{4,})"
        ),
        "a password of curl",
    ),
    (
        "sshpass",
        re.compile(r"\bsshpass['\",\s-]{1,9}p['\",\s-]{0,9}([^\s'\",\]]{4,})"),
        "a password of sshpass",
    ),
    # Keys of 40 letters have no form of their own, so only the command tells; those of private servers have a
    # word before them (wandb 0.19, sdk/lib/apikey.py).
    (
        "login",
        re.compile(
            rf"\bwandb{_BETWEEN}login(?:{_BETWEEN}(?:--?[a-z]|https?:)[^\s'\",\]]{{0,200}}){{0,6}}{_BETWEEN}"
            r"((?:[a-z]{1,20}-)?[0-9a-f]{40})(?![A-Za-z0-9])"
        ),
        "a Weights & Biases key",
    ),
    (
        "machine",
        re.compile(
            rf"\bmachine{_BLANK}[\w.:-]{{1,200}}{_BLANK}(?:login{_BLANK}[^\s\\]{{1,200}}{_BLANK})?"
            rf"password{_BLANK}([^\s'\"\\]{{4,}})"
        ),
        "a password of a netrc file",
    ),
    (
        "username",
        re.compile(
            r"\"username\"\s{0,9}:\s{0,9}\"[^\"\n]{1,200}\"\s{0,9},\s{0,9}\"key\"\s{0,9}:\s{0,9}\"([0-9a-f]{32})\""
        ),
        "a key of Kaggle",
    ),
)
# A shorter password of an address is hidden only in addresses: its letters are in many other words.
_LEAST_ANYWHERE = 8
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_LONGEST_NAME = 128
_STORED = re.compile(r"^kind:[ \t]+Secret[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret in a text: where it starts and how long it is (in characters), what it is, and its name."""

    offset: int
    what: str
    name: str
    length: int

    def place(self, text: str) -> tuple[int, int]:
        """Return line and column, both from 1."""
        before = text[: self.offset]
        return before.count("\n") + 1, self.offset - before.rfind("\n")


def find_secrets(text: str) -> list[Secret]:
    """Return every secret of a text in its order, each once; linear in the length of the text."""
    found: dict[int, Secret] = {}
    for secret in (
        *_find_secrets_by_form(text),
        *_find_passwords_in_urls(text),
        *_find_secrets_by_place(text),
        *_find_secrets_by_name(text),
        *_find_random_secrets(text),
    ):
        # The same characters can match by form, by name, and as part of an address: report them once, by
        # form.
        if not any(one.offset <= secret.offset < one.offset + one.length for one in found.values()):
            found.setdefault(secret.offset, secret)
    return [found[offset] for offset in sorted(found)]


def extract_secret_text(text: str, secret: Secret) -> str:
    """Return what `mask_secrets` looks for: the secret, with `:` and `@` if it is short and in an address."""
    end = secret.offset + secret.length
    if secret.what == _IN_ADDRESS and secret.length < _LEAST_ANYWHERE:
        return text[secret.offset - 1 : end + 1]
    return text[secret.offset : end]


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace all secrets in the text, the longest first, so that no part of one remains."""
    for secret in sorted({*secrets}, key=lambda one: (-len(one), one)):
        is_between = secret[0] == ":" and secret[-1] == "@"
        text = text.replace(secret, f":{HIDDEN}@" if is_between else HIDDEN)
    return text


def _find_secrets_by_form(text: str) -> Iterator[Secret]:
    if not any(start in text for start in STARTS):
        return
    for match in _FORM.finditer(text):
        what = _KINDS[(match.lastindex or 1) - 1]
        yield Secret(match.start(), what, _find_value_name(text, match.start()), len(match.group()))


def _find_value_name(text: str, offset: int) -> str:
    """Return the name of a value that ends before `offset` on its line, or ""."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    names = re.findall(r"([A-Za-z_][A-Za-z0-9_.-]*)['\"]?\s*[:=]", line)
    return names[-1] if names else ""


def _find_passwords_in_urls(text: str) -> Iterator[Secret]:
    if "@" not in text or "://" not in text:
        return
    for match in _URL.finditer(text):
        if not REFERENCE.fullmatch(match.group(1)):
            yield Secret(match.start(1), _IN_ADDRESS, "", len(match.group(1)))


def _find_secrets_by_place(text: str) -> Iterator[Secret]:
    for word, place, what in _PLACES:
        for match in place.finditer(text) if word in text else ():
            value = match.group(1)
            if not REFERENCE.match(value) and any(char.isdigit() for char in value):
                yield Secret(match.start(1), what, "", len(value))


def _find_random_secrets(text: str) -> Iterator[Secret]:
    """Yield random words, which people do not write by hand, under names that say nothing."""
    public = None
    for match in _ANY.finditer(text):
        if not is_random(match.group()):
            continue
        if public is None:
            public = [one.span() for one in _PUBLIC.finditer(text)]
        if not any(start <= match.start() < end for start, end in public):
            yield Secret(
                match.start(), RANDOM_TEXT, _find_value_name(text, match.start()), len(match.group())
            )


def is_random(value: str) -> bool:
    """Return whether a word mixes cases and digits in an order that words do not have.

    Random characters turn from one class (upper, lower, digit) to another at 6 of 10 places, camelCase,
    identifiers and paths at 1 to 3.
    """
    classes = [
        "d" if char.isdigit() else "u" if char.isupper() else "l" if char.islower() else "x" for char in value
    ]
    if classes.count("d") < _ANY_DIGITS or not {"u", "l"} <= {*classes} or value.count("/") > 2:
        return False
    pairs = [one != other for one, other in pairwise(classes) if "x" not in (one, other)]
    return sum(pairs) >= _ANY_TURNS * len(pairs) and compute_entropy(value) >= _ANY_BITS


def _find_secrets_by_name(text: str) -> Iterator[Secret]:
    for match in _find_secret_name_pairs(text):
        certainty = judge_secret_name(match["name"])
        if not certainty:
            continue
        group = next(name for name in ("aq", "as", "ap") if match[name] is not None)
        if is_secret_value(match[group], certainty):
            # `.` and `-` belong to names of options and settings: --db-password=..., spring.password=...
            name = match["name"].strip("-")
            yield Secret(match.start(group), "what looks like a secret", name, len(match[group]))


def _find_secret_name_pairs(text: str) -> Iterator[re.Match[str]]:
    """Yield names that may mean a secret, with their values."""
    end = 0
    for hint in _HINT.finditer(text):
        if hint.start() < end:
            continue
        before = text[max(end, hint.start() - _LONGEST_NAME) : hint.start()]
        written = _NAME_BEFORE.search(before)
        start = hint.start() - len(written[0].lstrip("-_.0123456789") if written else "")
        entry = text.rfind("name:", max(end, start - 8), start)
        found = _PAIR.match(text, start) or (_ENTRY.match(text, entry) if entry >= 0 else None)
        if not found and text[max(start - 1, 0) : start] == "-":
            found = _OPTION.match(text, start)
        if found:
            end = found.end()
            yield found


def is_secret_manifest(text: str) -> bool:
    """Return whether a manifest is a Secret: base64 hides nothing."""
    return _STORED.search(text) is not None
