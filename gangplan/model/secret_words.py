"""Names and values of secrets: which names mean one, and which values are one."""

from __future__ import annotations

import math
import re
from collections import Counter

# Words of a name that say what its value is. PWD alone is a folder, TOKENS and TOKENIZER are about language.
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

REFERENCE = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Za-z_]\w*|\{[a-z]+\}|<[^>]*>|\{\{.*")
_DIGEST = re.compile(r"(?:.*@)?sha(?:256|512):[0-9a-f]+|(?:SHA256|MD5):\S+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PATH = re.compile(r"(?:/|\./|\.\./|~/|[a-z0-9+.-]+://)\S*")
# Words as people write them, joined: team-nlp-s3, TopologyAwareScheduling, created_at, AWS_ACCESS_KEY.
_SEGMENT = r"(?:[A-Z]?[a-z]++|[A-Z]{2,}+(?![a-z]))*+[0-9]{0,8}+"
_NAME = re.compile(rf"{_SEGMENT}(?:[-_./:]{_SEGMENT})*+")
# SECRET/KEY, as a spec names a secret.
_SECRET_KEY = re.compile(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9_.-]+")
_PLAIN = frozenset({"true", "false", "null", "none", "yes", "no", "required", "optional", "changeme"})
# What switches something on or off, under whichever name.
_SWITCHES = _PLAIN - {"changeme"}
_BRACKETED = re.compile(r"\$\{\{.*\}\}|\[[^]]*\]|</?[^>]*>|\{[^}]*\}")


def judge_secret_name(name: str) -> int:
    """Return 3 if a name can only mean a password, 2 for a key or token, 1 for a possible secret, else 0."""
    words = [word.upper() for word in _WORDS.findall(name)]
    whole = "".join(words)
    if not words:
        return 0
    if any(word in whole for word in CERTAIN):
        return 0 if words[-1] in _ABOUT else 3
    if whole.endswith(MEANT):
        return 2
    if words[-1] == "PWD" and len(words) > 1:  # MYSQL_PWD, DB_PWD; PWD alone is a folder
        return 2
    # KEY and TOKEN describe many things (cacheKeyPrefix, tokenCount), so only the last word counts.
    return 1 if words[-1] in LIKELY or words[-2:] == ["KEY", "ID"] else 0


def is_secret_value(value: str, certainty: int) -> bool:
    """Return whether a value under such a name is a secret, not a reference, a path, a number or a word."""
    if value.lower() in _PLAIN or any(
        form.fullmatch(value) for form in (REFERENCE, _DIGEST, _UUID, _PATH, _SECRET_KEY)
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
    return len(value) >= _LEAST and not _NAME.fullmatch(value) and compute_entropy(value) >= _BITS


def compute_entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    counts = Counter(value)
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())


# Words before TOKEN that make it a part of a text: PAD_TOKEN, EOS_TOKEN, STOP_TOKEN.
_OF_TEXT = frozenset(
    {"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK", "SPECIAL", "STOP", "START", "END", "IMAGE"}
)
# Words before KEY that make it a password of a licence or of a service.
_OF_SERVICE = frozenset(
    {"LICENSE", "LICENCE", "API", "ACCESS", "SECRET", "PRIVATE", "AUTH", "ENCRYPTION", "SIGNING"}
)


def is_named_like_secret(name: str, value: str) -> bool:
    """Return whether a variable is named like a secret and has its value in the text: AUTH_TOKEN=mytoken.

    Unlike `is_secret_value`, this does not judge how good a password the value is, only that it is no
    reference, path, number, switch or part of a text.
    """
    words = [word.upper() for word in _WORDS.findall(name)]
    if not words or not value or value.lower() in _SWITCHES or value.isdigit():
        return False
    if any(form.fullmatch(value) for form in (REFERENCE, _DIGEST, _PATH, _SECRET_KEY, _BRACKETED)):
        return False
    if any(word in "".join(words) for word in CERTAIN):
        return words[-1] not in _ABOUT
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "TOKEN":
        return before not in _OF_TEXT
    return last in ("SECRET", "CREDENTIAL", "CREDENTIALS", "APIKEY") or (
        last == "KEY" and before in _OF_SERVICE
    )
