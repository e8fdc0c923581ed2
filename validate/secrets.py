"""Plaintext secrets in a text, found by their form, by their name, or by both; never repeated in output.

Only the kind of a secret is reported: no letter, and no length. Forms are those that the issuers publish for
secret scanning: AWS, GitHub, GitLab, Hugging Face, Slack, OpenAI, Anthropic, Google, npm, DigitalOcean,
Weights & Biases, JSON Web Tokens (RFC 7519), PEM (RFC 7468).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from gangplan.records import dataclass

RANDOM_TEXT = "a text of random characters, as keys and tokens are"
# What replaces every secret in output.
HIDDEN = "(hidden)"

# Kind of a secret -> its form. A form starts with a text that hardly anything else starts with.
FORMS = {
    "an AWS access key": r"\bA(?:KI|SI)A[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255})\b",
    "a GitLab token": r"\bgl(?:pat|ptt|rt|dt)-[A-Za-z0-9_-]{20,}",
    "a Hugging Face token": r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}\b",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "an API key": r"\bsk-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,}",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}\b",
    "a DigitalOcean token": r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*",
    "a private key": r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
}
# A text without any of these contains no form; searching for them costs a hundredth of matching the patterns.
STARTS = (
    *("AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "glptt-", "glrt-"),
    *("gldt-", "hf_", "api_org_", "xox", "sk-", "AIza", "npm_", "_v1_", "eyJ", "PRIVATE KEY"),
)
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
    r"[Pp][Aa][Ss][Ss][WwPp]|[Tt][Oo][Kk][Ee][Nn]|[Ss][Ee][Cc][Rr][Ee][Tt]|[Cc][Rr][Ee][Dd]|[Kk][Ee][Yy]"
)
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_.-]*\Z")
_LONGEST_NAME = 128
_STORED = re.compile(r"^kind:[ \t]+Secret[ \t]*$", re.MULTILINE)

# Words of a name that say what its value is. PWD is a folder, TOKENS and TOKENIZER are about language.
CERTAIN = ("PASSWORD", "PASSWD", "PASSPHRASE")
LIKELY = frozenset({"TOKEN", "SECRET", "CREDENTIAL", "CREDENTIALS", "KEY", "APIKEY"})
# Ends of a name, without the separators of its words, that mean a secret and hardly anything else.
MEANT = (
    *(
        "APIKEY",
        "ACCESSKEY",
        "SECRETKEY",
        "PRIVATEKEY",
        "ACCOUNTKEY",
        "SIGNINGKEY",
        "ENCRYPTIONKEY",
        "AUTHKEY",
    ),
    *("AUTHTOKEN", "ACCESSTOKEN", "BEARERTOKEN", "REFRESHTOKEN", "APITOKEN", "HFTOKEN", "HUBTOKEN"),
    *("HUGGINGFACETOKEN", "WANDBTOKEN", "GITHUBTOKEN", "GITLABTOKEN", "CLIENTSECRET", "APISECRET"),
)
# Last words of names that are about a secret and do not hold it.
_ABOUT = frozenset(
    {"REF", "FILE", "PATH", "NAME", "SECRET", "KEY", "POLICY", "LENGTH", "REQUIRED", "ENABLED", "STDIN"}
)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LEAST, _LEAST_MEANT, _LEAST_CERTAIN = 16, 8, 6
# Bits per character: random hexadecimal text has 3.2 to 3.9 at 20 to 64 characters, words below 3.
_BITS = 3.0

_REFERENCE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Za-z_]\w*|\{[a-z]+\}|<[^>]*>|\{\{.*")
_DIGEST = re.compile(r"(?:.*@)?sha(?:256|512):[0-9a-f]+|(?:SHA256|MD5):\S+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATH = re.compile(r"(?:/|\./|\.\./|~/|[a-z0-9+.-]+://)\S*")
# Words as people write them, joined: team-nlp-s3, TopologyAwareScheduling, created_at, AWS_ACCESS_KEY.
_SEGMENT = r"(?:[A-Z]?[a-z]++|[A-Z]{2,}+(?![a-z]))*+[0-9]{0,8}+"
_NAME = re.compile(rf"{_SEGMENT}(?:[-_./:]{_SEGMENT})*+")
# SECRET/KEY, as a spec names a secret.
_SECRET_KEY = re.compile(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9_.-]+")
_PLAIN = frozenset({"true", "false", "null", "none", "yes", "no", "required", "optional", "changeme"})


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
        *_find_secrets_by_name(text),
        *_find_random_secrets(text),
    ):
        # The same characters can match by form, by name, and as part of an address: report them once, by
        # form.
        if not any(one.offset <= secret.offset < one.offset + one.length for one in found.values()):
            found.setdefault(secret.offset, secret)
    return [found[offset] for offset in sorted(found)]


def mask_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replace all secrets in the text, the longest first, so that no part of one remains."""
    for secret in sorted({*secrets}, key=lambda one: (-len(one), one)):
        text = text.replace(secret, HIDDEN)
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
        if not _REFERENCE.fullmatch(match.group(1)):
            yield Secret(match.start(1), "a password in an address", "", len(match.group(1)))


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
    return sum(pairs) >= _ANY_TURNS * len(pairs) and entropy(value) >= _ANY_BITS


def _find_secrets_by_name(text: str) -> Iterator[Secret]:
    for match in _find_secret_name_pairs(text):
        certainty = _rate_secret_name(match["name"])
        if not certainty:
            continue
        group = next(name for name in ("aq", "as", "ap") if match[name] is not None)
        if looks_secret(match[group], certainty):
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


def _rate_secret_name(name: str) -> int:
    """Return 3 if a name can only mean a password, 2 for a key or token, 1 for a possible secret, else 0."""
    words = [word.upper() for word in _WORDS.findall(name)]
    whole = "".join(words)
    if not words:
        return 0
    if any(word in whole for word in CERTAIN):
        return 0 if words[-1] in _ABOUT else 3
    if whole.endswith(MEANT):
        return 2
    # KEY and TOKEN describe many things (cacheKeyPrefix, tokenCount), so only the last word counts.
    return 1 if words[-1] in LIKELY or words[-2:] == ["KEY", "ID"] else 0


def looks_secret(value: str, certainty: int) -> bool:
    """Return whether a value under such a name is a secret, not a reference, a path, a number or a word."""
    if value.lower() in _PLAIN or any(
        form.fullmatch(value) for form in (_REFERENCE, _DIGEST, _UUID, _PATH, _SECRET_KEY)
    ):
        return False
    if certainty == 3:
        return len(value) >= _LEAST_CERTAIN
    has_digit = any(char.isdigit() for char in value)
    has_both = value.lower() != value and value.upper() != value
    if " " in value or value.isdigit() or not (has_digit or has_both):
        return False
    # Under such a name, a single word with a digit is not the name of a Secret: people write those with
    # dashes.
    if certainty == 2 and has_digit and value.isalnum():
        return len(value) >= _LEAST_MEANT
    return len(value) >= _LEAST and not _NAME.fullmatch(value) and entropy(value) >= _BITS


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


def is_secret_manifest(text: str) -> bool:
    """Return whether a manifest is a Secret: base64 hides nothing."""
    return _STORED.search(text) is not None
