"""Random CEL expressions over the whole function table, well and badly typed; a seed always gives the same
ones."""

from __future__ import annotations

import random
from collections.abc import Sequence

from gangplan.cel import types
from gangplan.cel.declarations import Overload, find_overloads, functions
from gangplan.cel.types import Parameter, Type, list_of, map_of, optional_of

SCALARS = (types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES)
PLAIN = (*SCALARS, types.DURATION, types.TIMESTAMP, types.NULL)
KEYS = (types.STRING, types.STRING, types.INT, types.BOOL, types.UINT)
OPAQUE = (types.QUANTITY_TYPE, types.URL, types.SEMVER, types.IP, types.CIDR, types.NAMED_FORMAT)
CONSTANTS: dict[Type, Sequence[str]] = {
    types.BOOL: ("true", "false"),
    types.INT: (
        "0",
        "1",
        "-1",
        "2",
        "7",
        "42",
        "-9223372036854775808",
        "9223372036854775807",
        "0x1F",
        "1000000",
    ),
    types.UINT: ("0u", "1u", "3u", "18446744073709551615u", "0xFFu"),
    types.DOUBLE: ("0.0", "1.5", "-2.25", "1e3", ".5", "1e308", "-1e-7", "3.0"),
    types.STRING: (
        "''",
        "'a'",
        "'abc'",
        "'1'",
        "'true'",
        "'é√'",
        "'a,b,,c'",
        "'1Gi'",
        "'100m'",
        "'10.0.0.1'",
        "'fd00::1'",
        "'10.0.0.0/8'",
        "'1.2.3'",
        "'v1.2'",
        "'https://example.com:80/a?b=c'",
        "'1h30m'",
        "'2026-01-02T03:04:05Z'",
        "'Europe/Paris'",
        "'-07:00'",
        "'[a-c]+'",
        "'(a)(b)?'",
        "'^$'",
        "'dns1123Label'",
        "'UPPER lower'",
        "r'\\d'",
        "'''x'y'''",
        "'2.5'",
        "'-3'",
        "'x\\ty'",
        "' pad '",
    ),
    types.BYTES: ("b''", "b'abc'", "b'\\xff'", "b'é'"),
    types.DURATION: ("duration('1h')", "duration('-1.5s')", "duration('0s')", "duration('2h45m')"),
    types.TIMESTAMP: (
        "timestamp('2026-01-02T03:04:05Z')",
        "timestamp('1969-12-31T23:59:59.5+02:00')",
        "timestamp(0)",
    ),
    types.NULL: ("null",),
    types.QUANTITY_TYPE: ("quantity('1Gi')", "quantity('100m')", "quantity('-5')", "quantity('1.5k')"),
    types.URL: ("url('https://example.com:80/a%20b?x=1&x=2')", "url('/path')"),
    types.SEMVER: ("semver('1.2.3')", "semver('v1.2', true)", "semver('0.0.1-rc.1')"),
    types.IP: ("ip('10.0.0.1')", "ip('fd00::1')", "ip('127.0.0.1')", "ip('0.0.0.0')"),
    types.CIDR: ("cidr('10.0.0.0/8')", "cidr('fd00::/64')", "cidr('10.1.2.3/16')"),
    types.NAMED_FORMAT: ("format.dns1123Label()", "format.uri()", "format.labelValue()", "format.uuid()"),
}
# Paths into the bound variables, by type; all variables but request and namespaceObject are dyn.
PATHS: dict[Type, Sequence[str]] = {
    types.STRING: (
        "object.metadata.name",
        "object.spec.trainer.image",
        "request.operation",
        "request.namespace",
        "namespaceObject.metadata.name",
        "namespaceObject.metadata.labels['team']",
        "params.data.maxGpus",
        "request.userInfo.username",
        "object.metadata.labels.team",
        "request.kind.kind",
    ),
    types.INT: (
        "object.spec.trainer.numNodes",
        "params.maxNodes",
        "namespaceObject.metadata.generation",
        "object.spec.ports[0]",
    ),
    types.BOOL: (
        "object.spec.suspend",
        "request.dryRun",
        "has(object.spec)",
        "has(object.nope)",
        "has(request.dryRun)",
    ),
    list_of(types.STRING): (
        "request.userInfo.groups",
        "object.spec.trainer.args",
        "params.allowed",
        "object.spec.trainer.command",
    ),
    list_of(types.INT): ("object.spec.ports",),
    map_of(types.STRING, types.STRING): (
        "namespaceObject.metadata.labels",
        "object.metadata.labels",
        "object.metadata.annotations",
    ),
    types.DYN: (
        "object",
        "oldObject",
        "params",
        "object.spec.trainer.env",
        "object.nope",
        "object.spec.trainer.resourcesPerNode.limits",
        "object.spec.egress",
    ),
    types.NULL: ("oldObject",),
    types.TIMESTAMP: ("namespaceObject.metadata.creationTimestamp",),
}
FIELDS = ("metadata", "spec", "name", "labels", "team", "a", "value", "namespace", "nope")
# Functions that expressions do not name, or whose answers come from outside.
HIDDEN = frozenset(
    [
        "@not_strictly_false",
        "__not_strictly_false__",
        "@in",
        "in",
        "_in_",
        "@sortByAssociatedKeys",
        "cel.@mapInsert",
        "_?._",
        "_[?_]",
        "_?:_",
        "_?_:_",
        "allowed",
        "check",
        "error",
        "errored",
        "fieldSelector",
        "labelSelector",
        "group",
        "name",
        "namespace",
        "path",
        "reason",
        "resource",
        "serviceAccount",
        "subresource",
    ]
)
INFIX = {
    f"_{sign}_": sign for sign in ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||")
}


class Writer:
    """A writer of random expressions; `wrong` is how often a part has a type other than the wanted one."""

    def __init__(self, seed: int, *, minor: int = 34, wrong: float = 0.04) -> None:
        self.random = random.Random(seed)
        self.wrong = wrong
        names = sorted(functions(minor) - HIDDEN)
        self.overloads = [(name, overload) for name in names for overload in find_overloads(name, minor)]
        self.variables: list[tuple[str, Type]] = []
        self.count = 0

    def any_type(self, depth: int = 1) -> Type:
        """Return a type, sometimes one with parameters."""
        choice = self.random.random()
        if depth and choice < 0.15:
            return list_of(self.any_type(depth - 1))
        if depth and choice < 0.22:
            return map_of(self.random.choice(KEYS), self.any_type(depth - 1))
        if depth and choice < 0.28:
            return optional_of(self.any_type(depth - 1))
        return self.random.choice((*PLAIN, *SCALARS, types.STRING, types.INT, *OPAQUE, types.DYN))

    def expression(self, wanted: Type, depth: int) -> str:
        """Return an expression that most likely has the wanted type."""
        if self.random.random() < self.wrong:
            wanted = self.any_type()
        if depth <= 0:
            return self.leaf(wanted)
        makers = (
            (0.16, self.leaf_at),
            (0.5, self.called),
            (0.08, self.chosen),
            (0.14, self.looped),
            (0.06, self.indexed),
            (0.06, self.optional),
        )
        maker = self.random.choices([m for _, m in makers], [weight for weight, _ in makers])[0]
        return maker(wanted, depth)

    def leaf_at(self, wanted: Type, depth: int) -> str:
        return self.leaf(wanted)

    def leaf(self, wanted: Type) -> str:
        """Return something short: a constant, a path, a variable."""
        known = [name for name, type_ in self.variables if type_ == wanted or self.random.random() < 0.03]
        if known and self.random.random() < 0.6:
            return self.random.choice(known)
        if wanted in PATHS and (wanted not in CONSTANTS or self.random.random() < 0.4):
            return self.random.choice(PATHS[wanted])
        if wanted in CONSTANTS:
            return self.random.choice(CONSTANTS[wanted])
        parts = wanted.parameters
        if wanted.name == "list":
            return f"[{', '.join(self.leaf(parts[0]) for _ in range(self.random.randrange(4)))}]"
        if wanted.name == "map":
            entries = (
                f"{self.leaf(parts[0])}: {self.leaf(parts[1])}" for _ in range(self.random.randrange(3))
            )
            return f"{{{', '.join(entries)}}}"
        if wanted.name == "optional_type":
            return f"optional.of({self.leaf(parts[0])})" if self.random.random() < 0.7 else "optional.none()"
        if wanted.name == "type":
            return self.random.choice(
                ("int", "string", f"type({self.leaf(self.any_type(0))})", "list", "net.IP")
            )
        return f"dyn({self.leaf(self.any_type())})"

    def called(self, wanted: Type, depth: int) -> str:
        """Return a call of a function whose result has the wanted type."""
        fitting = [found for found in self.overloads if _fits(found[1].result, wanted)]
        if not fitting:
            return self.leaf(wanted)
        function, overload = self.random.choice(fitting)
        bound = dict(_match(overload.result, wanted))
        arguments = [self.argument(type_, bound, depth) for type_ in overload.arguments]
        if function == "lists.range":
            # The API server builds the list before it asks what that costs.
            arguments = [self.random.choice(("0", "3", "object.spec.trainer.numNodes", "-1"))]
        return self.written(function, overload, arguments)

    def argument(self, type_: Type, bound: dict[str, Type], depth: int) -> str:
        concrete = self.concrete(type_, bound)
        if concrete == list_of(types.DYN) and self.random.random() < 0.8:
            parts = (self.expression(self.any_type(0), 0) for _ in range(self.random.randrange(3)))
            return f"[{', '.join(parts)}]"
        return self.expression(concrete, depth - 1)

    def concrete(self, type_: Type, bound: dict[str, Type]) -> Type:
        if isinstance(type_, Parameter):
            if type_.name not in bound:
                bound[type_.name] = self.any_type()
            return bound[type_.name]
        if type_.name == "map" and isinstance(type_.parameters[0], Parameter):
            bound.setdefault(type_.parameters[0].name, self.random.choice(KEYS))
        return Type(type_.name, tuple(self.concrete(part, bound) for part in type_.parameters))

    def written(self, function: str, overload: Overload, arguments: list[str]) -> str:
        if function in INFIX:
            return f"({arguments[0]} {INFIX[function]} {arguments[1]})"
        if function == "!_":
            return f"!({arguments[0]})"
        if function == "-_":
            return f"-({arguments[0]})"
        if function == "_[_]":
            return f"{arguments[0]}[{arguments[1]}]"
        if self.random.random() < self.wrong / 2:
            arguments = arguments[:-1] if self.random.random() < 0.5 else [*arguments, "1"]
        if overload.is_member and arguments:
            return f"{_target(arguments[0])}.{function}({', '.join(arguments[1:])})"
        return f"{function}({', '.join(arguments)})"

    def chosen(self, wanted: Type, depth: int) -> str:
        parts = (
            self.expression(types.BOOL, depth - 1),
            self.leaf(wanted),
            self.expression(wanted, depth - 1),
        )
        return f"({parts[0]} ? {parts[1]} : {parts[2]})"

    def looped(self, wanted: Type, depth: int) -> str:
        """Return a macro over a list or map."""
        element = self.any_type(0)
        over = self.expression(list_of(element), depth - 1)
        key: Type = types.INT
        if self.random.random() < 0.3:
            key = types.STRING
            over = self.expression(map_of(key, element), depth - 1)
        two = self.random.random() < 0.4
        self.count += 1
        names = [f"i{self.count}", f"v{self.count}"] if two else [f"v{self.count}"]
        is_map = key is types.STRING
        before = list(self.variables)
        self.variables += zip(names, (key, element) if two else (key if is_map else element,), strict=True)
        text = self.body(wanted, depth - 1, two, ", ".join(names), element)
        self.variables = before
        return f"{_target(over)}.{text}"

    def body(self, wanted: Type, depth: int, two: bool, names: str, element: Type) -> str:
        test = self.expression(types.BOOL, depth)
        if wanted == types.BOOL:
            macro = self.random.choice(("all", "exists", "existsOne" if two else "exists_one"))
            return f"{macro}({names}, {test})"
        if wanted.name == "list":
            inner = self.expression(wanted.parameters[0], depth)
            macro = "transformList" if two else "map"
            given = (f"{test}, {inner}", inner)[self.random.random() < 0.6]
            return f"{macro}({names}, {given})"
        if two:
            value = self.expression(self.any_type(0), depth)
            return self.random.choice(
                (
                    f"transformMap({names}, {value})",
                    f"transformMapEntry({names}, {{{names.split(', ')[0]}: {value}}})",
                )
            )
        return self.random.choice(
            (f"filter({names}, {test})", f"sortBy({names}, {self.expression(types.INT, depth)})")
        )

    def indexed(self, wanted: Type, depth: int) -> str:
        if self.random.random() < 0.5:
            place = self.random.choice(("0", "1", "0u", "1.0"))
            return f"{_target(self.expression(list_of(wanted), depth - 1))}[{place}]"
        source = self.expression(map_of(types.STRING, wanted), depth - 1)
        return f"{_target(source)}.{self.random.choice(FIELDS)}"

    def optional(self, wanted: Type, depth: int) -> str:
        source = _target(
            self.expression(self.random.choice((types.DYN, map_of(types.STRING, wanted))), depth - 1)
        )
        field = self.random.choice(FIELDS)
        step = self.random.choice(
            (f"{source}.?{field}", f"{source}[?'{field}']", f"{source}.?{field}.?{field}")
        )
        if wanted.name == "optional_type":
            return step
        end = self.random.choice(("orValue", "optMap", "list", "value"))
        if end == "orValue":
            return f"{step}.orValue({self.leaf(wanted)})"
        if end == "optMap":
            self.count += 1
            name = f"o{self.count}"
            return f"{step}.optMap({name}, {self.leaf(wanted)}).orValue({self.leaf(wanted)})"
        if end == "list":
            return f"[?{step}, {self.leaf(wanted)}]"
        return f"{step}.hasValue()"


def _target(text: str) -> str:
    """Return an expression that a dot may follow."""
    return f"({text})" if text.startswith(("-", "!")) or text[-1:].isdigit() else text


def _fits(result: Type, wanted: Type) -> bool:
    if isinstance(result, Parameter) or wanted.name == "dyn":
        return True
    return (
        result.name == wanted.name
        and len(result.parameters) == len(wanted.parameters)
        and all(map(_fits, result.parameters, wanted.parameters))
    )


def _match(result: Type, wanted: Type) -> list[tuple[str, Type]]:
    if isinstance(result, Parameter):
        return [(result.name, wanted)]
    pairs = zip(result.parameters, wanted.parameters, strict=False)
    return [found for part, given in pairs for found in _match(part, given)]


def expressions(seed: int, count: int, *, wrong: float = 0.04) -> list[str]:
    """Return expressions of mixed size and type, no two the same; `count` less those that are too long."""
    writer = Writer(seed, wrong=wrong)
    found: dict[str, None] = {}
    while len(found) < count:
        found[writer.expression(writer.any_type(2), writer.random.randrange(1, 5))] = None
    return [text for text in found if len(text) < 2000]
