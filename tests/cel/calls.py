"""Random calls of every library, with arguments that are nearly valid: the recorded answers are for these."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random

# Nearly valid texts, separated by blanks or, if they contain blanks, by `|`.
_URLS = """
https://u:p@h.example.com:8443/p/a%20th?x=1&x=2&y=#f|http://[::1]:80/|/a/b?c=d|mailto:x@y
|http://h/%zz|//h/p|http://h:80:90/|*|http://a b/|hTTp://H/|http://h?q|file:///x|s3://b/k
|http://[fe80::1%25en0]/x|http://u@/|http://%41/|http://h/a;b?c;d=1|http://h/é
|http://h/%C3%A9?%C3%A9=1+2|x:|1a:b|http://h:x|?x|http://[1.2.3.4]/"""
_PATTERNS = r"""
^[a-z]+$ (a|b)*c [[:alpha:]]+\d \bfoo\b (?i)ABC (?P<n>x)y a{2,3} a{2 [^a-c\]] \pL+ \p{Lu} .+? (?s).
(?m)^a$ \Qa.b\E \x41\x{1F600} x*? () [a-] []a] \z \A. (?:ab)+ a** ( [ ) \ (?=a) \1 \8 [z-a] a{1001}
(a{100}){20} (?U)a+ (?i:a)b [\d\s] \B \W [[:^digit:]] (?-s). x{0} x{0,} \C \pX (?<n>a) [[:foo:]]
a{,2} \101 $ ^* [^\n] (?i)[^k] (|a)+ [\x{41}-\x{5a}] a|b*"""
_TEXTS = ["abc", "ABC", "aab c", "foo bar", "é", "Aé9", "a\nb", "", "xxyy", "a.b", "k\u212a", "cab\n", "a_9"]
_NAMES = """
abc my-name a.b.c example.com/MyName A_b.c -a a- /x x/ a/b/c 12 é a_b a-b- -- aGVsbG8= aGVs
2020-02-29 550e8400-e29b-41d4-a716-446655440000 2020-02-29T10:00:00Z 2020-13-01T10:00:00.5+01:00
2021-02-29"""
_FORMATS = """
dns1123Label dns1123Subdomain dns1035Label qualifiedName labelValue uri uuid byte date datetime
dns1123LabelPrefix dns1123SubdomainPrefix dns1035LabelPrefix"""
_AMOUNTS = """
1 500m 1Gi 1.5Gi 1e3 1E 1Ei 8Ei -1.5k 0.000000001 1n 123456789012345678 9223372036854775807 .5 5. +5
9223372036854775808 1234567890123456789012 1e-3 1E+2 00012 0.50 1Ki 1023Ki 0 -0 1_0 1e58
999999999999999999n 0x1 1e"""
_ADDRESSES = """
10.0.0.1 :: ::1 fe80::1 2001:db8::1 1.2.3 256.1.1.1 01.2.3.4 ::ffff:1.2.3.4 fe80::1%eth0 12345::
1::2::3 ff02::1 224.0.0.1 255.255.255.255 169.254.1.1 127.0.0.1 0.0.0.0 2001:DB8::0:1 ::1.2.3.4 ::g
1:2:3:4:5:6:7:8"""
_VERSIONS = """
1.2.3 1.2.3-rc.1 1.2.3-rc.1+b.2 v1.2.3 1.2 1 01.2.3 1.2.3-01 1.2.3- 1.2.3+ 99999999999999999999.1.1
1.2.x 1.2.3-a.b.10 1.2.3-a.b.9 v001.002 0.0.0 1..3 1.2.3+b+c 1.2.3-rc..1 9999999999999999999.0.0"""
_WORDS = ["", "a", "abcabc", "日本語", "a,b,,c", "  x\u00a0\u3000", "é", "aXbX", "\t\n v", "ß", "K\u212a"]
_SCALARS = """
0 1 -1 1.5 1e10 1e400 -0 Inf nan 0x10 0x1p4 1_0 9223372036854775807 9223372036854775808 +5 .5 5.
1e5. 18446744073709551615 true T FALSE 1h 1m1s -1.5h 1d 2562047h47m16.854775807s
2562047h47m16.854775808s 1us 1µs .5s 2020-01-01T00:00:00Z 2020-01-01T24:00:00Z 2020-02-30T00:00:00Z
2020-01-01t00:00:00z 2020-01-01T00:00:00+14:00 2020-01-01T00:00:00.123456789123Z
2020-01-01T00:00:00-25:00 9999-12-31T23:59:59.999999999Z"""
_DOUBLES = "1.5 -0.5 9.3e18 1.8446744073709552e19 1e-9 123456.7 1e15 1e21 9007199254740993.0 5e-324"
_INTS = "0 -1 9223372036854775807 1700000000 253402300800 -62135596801 42"
_CLAUSES = "%s %d %f %.3f %e %.10e %x %X %o %b %% a%sb%d % %. %q %.f %5d é%s %s%s"
_VALUES = r"""
1|-5|3u|1.5|-0.001|1234567.891|1e21|'a\u00e9\n'|b'ab'|true|null|[1,2.5,'x']|{'b':1,'a':[true]}|int
|timestamp('2020-01-01T00:00:00.5Z')|duration('90s')|double('NaN')|double('-Infinity')
|quantity('1')|[]|{1:2,3:4}|'NaN'|'Infinity'|0.5|2.5|123456789012345.678|optional.none()"""


def words(text: str) -> list[str]:
    """Split a text into the texts that it lists."""
    text = text.strip()
    if "|" in text and " " not in text.split("|")[0]:
        return [part.strip("\n") for part in text.split("|")]
    return text.split()


def literal(text: str) -> str:
    """Return the text as a literal of CEL."""
    return json.dumps(text).replace("\\ud83d\\ude00", "\\U0001f600")


class Calls:
    """Calls generated from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def __iter__(self) -> Iterator[str]:
        makers: tuple[Callable[[], str], ...] = (
            self._regex,
            self._url,
            self._format,
            self._quantity,
            self._net,
            self._semver,
            self._text,
            self._conversion,
            self._formatting,
        )
        while True:
            call = self._one(makers)()
            # Kubernetes 1.34 is built with Go 1.24, whose `\\p` knows fewer names; huge powers take Go a long
            # time.
            if not re.search(r"\\\\p[^LN{]|[eE][-+]?0*[1-9]\d{3}", call):
                yield call

    def _one(self, choices: tuple[Callable[[], str], ...]) -> Callable[[], str]:
        return self.random.choice(choices)

    def _any(self, texts: str) -> str:
        return self.random.choice(words(texts))

    def _pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _near(self, texts: str | list[str], letters: str) -> str:
        """Return one of the texts with some letters changed, as a literal."""
        text = list(self.random.choice(words(texts) if isinstance(texts, str) else texts))
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            at = self.random.randint(0, len(text))
            if self.random.random() < 0.5 or not text:
                text.insert(at, self.random.choice(letters))
            else:
                text[min(at, len(text) - 1)] = self.random.choice(("", self.random.choice(letters)))
        return literal("".join(text))

    def _regex(self) -> str:
        pattern = self._near(_PATTERNS, "abc()[]{}*+?|^$.\\-:0129dDwWsSbBQEzAiUm,<>=!é")
        text = self._near(_TEXTS, "abcABC01 \né_")
        pattern = self._pick(pattern, pattern, f"[{pattern}][0]")
        call = self._pick("matches", "find", "findAll")
        return f"{text}.{call}({pattern}{self._pick('', ',2', ',0') if call == 'findAll' else ''})"

    def _url(self) -> str:
        url = self._near(_URLS, "abc:/?#[]@!$&'()*+,;=%20 é\"<>\\^`{|}~._-\x7f\x01")
        part = self._pick("Scheme", "Host", "Hostname", "Port", "EscapedPath", "Query")
        other = literal(self._any(_URLS))
        return self._pick(f"isURL({url})", *[f"url({url}).get{part}()"] * 4, f"url({url}) == url({other})")

    def _format(self) -> str:
        name, text = (
            self._any(_FORMATS),
            self._near([*words(_NAMES), "", "x" * 63, "x" * 64, "a" * 254], "abAB01-_./ T:Zé=+\n"),
        )
        return self._pick(
            f"format.{name}().validate({text})", f"format.named('{name}').value().validate({text})"
        )

    def _quantity(self) -> str:
        one, two = (f"quantity({self._near(_AMOUNTS, '0123456789.eEinumkKMGTP+-')})" for _ in range(2))
        if self.random.random() < 0.4:
            one += f".{self._pick('add', 'sub')}({self._pick(two, '7', '-9223372036854775808')})"
        return self._pick(
            f"{one}.compareTo({two})",
            f"{one}.asInteger()",
            f"{one}.asApproximateFloat()",
            f"[{one}.isInteger(), {one}.isLessThan({two}), {one} == {two}]",
            f"sign({one})",
            f"[{one}].map(x, [x.compareTo({two}), x.isInteger() ? 1 : 0])",
        )

    def _net(self) -> str:
        ip, good = self._near(_ADDRESSES, "0123456789abcdefF.:%/"), self._any(_ADDRESSES)
        bits = self._pick("8", "16", "64", "0", "32", "33", "129", "01", "", "x", "-1")
        cidr, known = (
            literal(f"{json.loads(ip)}/{bits}"),
            f"{literal(good + '/' + self._pick('8', '16', '64'))}",
        )
        kinds = ("Loopback", "GlobalUnicast", "LinkLocalUnicast", "LinkLocalMulticast", "Unspecified")
        asked = ", ".join(f"ip({literal(good)}).is{kind}()" for kind in kinds)
        return self._pick(
            f"isIP({ip})",
            f"string(ip({ip}))",
            f"ip.isCanonical({ip})",
            f"ip({ip}).family()",
            f"[{asked}]",
            f"string(cidr({cidr}))",
            f"string(cidr({known}).masked())",
            f"cidr({known}).containsIP({ip})",
            f"cidr({known}).containsCIDR({cidr})",
            f"cidr({known}).containsIP(ip({literal(good)}))",
            f"cidr({known}) == cidr({cidr})",
            f"isCIDR({cidr})",
        )

    def _semver(self) -> str:
        one, two = (self._near(_VERSIONS, "0123456789.-+vabR é") for _ in range(2))
        normalize = self._pick("", ", true", ", false")
        versions = f"semver({one}{normalize})", f"semver({two}{normalize})"
        return self._pick(
            f"isSemver({one}{normalize})",
            f"{versions[0]}.compareTo({versions[1]})",
            f"{versions[0]}.{self._pick('major', 'minor', 'patch')}()",
            f"{versions[0]} == {versions[1]}",
        )

    def _text(self) -> str:
        one, two, three = (self._near(_WORDS, "abc, é日X%") for _ in range(3))
        at, end = self.random.randint(-2, 8), self.random.randint(-2, 8)
        return self._pick(
            f"{one}.charAt({at})",
            f"{one}.{self._pick('indexOf', 'lastIndexOf')}({two})",
            f"{one}.{self._pick('indexOf', 'lastIndexOf')}({two}, {at})",
            f"{one}.split({two})",
            f"{one}.split({two}, {at})",
            f"{one}.replace({two}, {three}, {at})",
            f"{one}.substring({at})",
            f"{one}.substring({at}, {end})",
            f"[{one}.trim(), {one}.upperAscii(), {one}.lowerAscii(), strings.quote({one})]",
            f"string(bytes({one}))",
            f"[{one}, {two}].join({three})",
            f"[{one}, {two}, {three}].sort()",
        )

    def _conversion(self) -> str:
        text = f"[{self._near(_SCALARS, '0123456789.eE+-_hmsuxTZ:')}][0]"
        double, whole = self._any(_DOUBLES), self._any(_INTS)
        return self._pick(
            *(f"{name}({text})" for name in ("int", "uint", "double", "bool")),
            f"string(duration({text}))",
            f"string(timestamp({text}))",
            f"string({double})",
            f"{self._pick('int', 'uint')}([{double}][0])",
            f"{self._pick('timestamp', 'uint', 'double')}([{whole}][0])",
            f"[dyn({double}) < dyn({whole}), dyn({double}) == dyn({whole})]",
            f"duration({text}).get{self._pick('Hours', 'Minutes', 'Seconds', 'Milliseconds')}()",
            f"timestamp({text}).getHours('{self._pick('Asia/Tokyo', '-02:30')}')",
            f"timestamp({text}).getDayOfWeek('Asia/Tokyo')",
            f"timestamp({text}).get{self._pick('DayOfYear', 'FullYear', 'Month', 'Milliseconds')}()",
            f"timestamp({text}) - timestamp('2020-01-01T00:00:00Z') + duration('1h')",
        )

    def _formatting(self) -> str:
        template = self._near([self._any(_CLAUSES) + self._any(_CLAUSES), *words(_CLAUSES)], "%sdfexb.0é")
        values = [f"dyn({self._any(_VALUES)})" for _ in range(self.random.randint(0, 3))]
        return f"{template}.format(dyn([{', '.join(values)}]))"
