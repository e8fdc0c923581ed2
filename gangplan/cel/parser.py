"""Parse expressions by cel-go's grammar, limits and positions (v0.26.0, parser/ and gen/CEL.g4).

Positions are cel-go's: a call is at its opening parenthesis, an operator at its sign, a selection at its dot.
The first error ends the parse.
"""

from __future__ import annotations

from collections.abc import Callable

from gangplan.cel import literals
from gangplan.cel.ast import AstNode, Call, Ident, ListNode, Literal, MapEntry, MapNode, Select, Struct
from gangplan.cel.cursor import MAX_NESTING_DEPTH, Cursor
from gangplan.cel.errors import CompileError
from gangplan.cel.lexer import CEL_RESERVED_WORDS, END_TOKEN, Token
from gangplan.cel.macros import Macro, MacroError, NodeIds, expand_macro

_RELATIONS = {word: f"_{word}_" for word in ("<", "<=", ">", ">=", "==", "!=")} | {"in": "@in"}
_CALCULATIONS = {"*": 2, "/": 2, "%": 2, "+": 1, "-": 1}


def parse_cel_expression(text: str, minor: int) -> AstNode:
    """Return the tree of an expression with the macros of Kubernetes 1.`minor` expanded.

    Raises `CompileError` if the API server's parser refuses the text, with one issue at the place where it
    does.
    """
    return _Parser(text, minor).whole()


class _Parser(Cursor):
    """Recursive descent over the tokens. `height` is the depth of the tree that was read last."""

    def __init__(self, text: str, minor: int) -> None:
        super().__init__(text, minor)
        self.numbers = NodeIds()
        self.height = 0

    def whole(self) -> AstNode:
        node = self.expression()
        if self.token.kind != END_TOKEN:
            raise self.unexpected(self.token, "the end")
        if self.height > MAX_NESTING_DEPTH:
            raise self.error(0, "max recursion depth exceeded")
        return node

    # Rules, in the grammar's order

    def expression(self) -> AstNode:
        self.enter("expr")
        node = self.disjunction()
        question = self.take("?")
        if question:
            height = self.height
            then = self.disjunction()
            height = max(height, self.height)
            self.need(":")
            otherwise = self.expression()
            self.height = max(height, self.height) + 1
            node = Call(self.numbers.next(), question.offset, "_?_:_", None, (node, then, otherwise))
        self.open["expr"] -= 1
        return node

    def disjunction(self) -> AstNode:
        return self.chain("||", "_||_", self.conjunction)

    def conjunction(self) -> AstNode:
        return self.chain("&&", "_&&_", self.relation)

    def chain(self, sign: str, function: str, term: Callable[[], AstNode]) -> AstNode:
        """Parse terms joined by `&&` or `||` into a balanced tree, as cel-go does."""
        terms, offsets = [term()], []
        height = self.height
        while operator := self.take(sign):
            offsets.append(operator.offset)
            terms.append(term())
            height = max(height, self.height)
        self.height = height
        return self.balanced(function, terms, offsets, 0, len(offsets) - 1)

    def balanced(
        self, function: str, terms: list[AstNode], offsets: list[int], low: int, high: int
    ) -> AstNode:
        if low > high:
            return terms[low]
        middle = (low + high + 1) // 2
        left = self.balanced(function, terms, offsets, low, middle - 1)
        right = self.balanced(function, terms, offsets, middle + 1, high)
        return Call(self.numbers.next(), offsets[middle], function, None, (left, right))

    def relation(self) -> AstNode:
        self.enter("relation")
        node = self.calculation(0)
        while (function := _RELATIONS.get(self.token.kind)) is not None:
            sign, height = self.token, self.height
            self.at += 1
            self.enter("relation")
            right = self.calculation(0)
            self.open["relation"] -= 1
            self.height = max(height, self.height) + 1
            node = Call(self.numbers.next(), sign.offset, function, None, (node, right))
        self.open["relation"] -= 1
        return node

    def calculation(self, least: int) -> AstNode:
        self.enter("calc")
        node = self.unary()
        while (strength := _CALCULATIONS.get(self.token.kind, -1)) >= max(least, 1):
            sign, height = self.token, self.height
            self.at += 1
            right = self.calculation(strength + 1)
            self.height = max(height, self.height) + 1
            node = Call(self.numbers.next(), sign.offset, f"_{sign.kind}_", None, (node, right))
        self.open["calc"] -= 1
        return node

    def unary(self) -> AstNode:
        sign = self.token
        if sign.kind not in ("!", "-") or self.is_negative_number():
            return self.member()
        count = 0
        while self.take(sign.kind):
            count += 1
        node = self.member()
        if count % 2 == 0:
            return node
        return Call(self.numbers.next(), sign.offset, f"{sign.kind}_", None, (node,))

    def is_negative_number(self) -> bool:
        """Return whether `-` belongs to the number after it. After another sign it does not: `--1` is 1."""
        return self.token.kind == "-" and self.tokens[self.at + 1].kind in ("NUM_INT", "NUM_FLOAT")

    def member(self) -> AstNode:
        self.enter("member")
        node = self.primary()
        while self.token.kind in (".", "["):
            height = self.height
            node = self.selection(node) if self.token.kind == "." else self.index(node)
            self.height = max(height, self.height) + 1
        self.open["member"] -= 1
        return node

    def selection(self, node: AstNode) -> AstNode:
        dot = self.need(".")
        is_optional = self.optional_mark()
        name = self.field_name()
        field = name.text.strip("`")
        if is_optional:
            key = Literal(self.numbers.next(), name.offset, field)
            return Call(self.numbers.next(), dot.offset, "_?._", None, (node, key))
        opening = self.take("(") if name.kind == "IDENTIFIER" else None
        if opening is None:
            return Select(self.numbers.next(), dot.offset, node, field)
        return self.call(opening, field, node)

    def index(self, node: AstNode) -> AstNode:
        bracket = self.need("[")
        is_optional = self.optional_mark()
        key = self.expression()
        self.need("]")
        function = "_[?_]" if is_optional else "_[_]"
        return Call(self.numbers.next(), bracket.offset, function, None, (node, key))

    def call(self, opening: Token, function: str, target: AstNode | None) -> AstNode:
        """Parse the arguments of a call after its parenthesis, and return the call, expanded if it is a
        macro."""
        arguments: list[AstNode] = []
        height = 0
        if self.token.kind != ")":
            arguments.append(self.expression())
            height = self.height
            while self.take(","):
                arguments.append(self.expression())
                height = max(height, self.height)
        self.need(")")
        self.height = height
        macro = Macro(self.numbers, opening.offset, function, target, tuple(arguments))
        try:
            expanded = expand_macro(self.minor, macro)
        except MacroError as error:
            raise CompileError(self.text, (error.issue,)) from None
        if expanded is not None:
            return expanded
        return Call(self.numbers.next(), opening.offset, function, target, tuple(arguments))

    def primary(self) -> AstNode:
        token = self.token
        self.height = 0
        if token.kind in ("IDENTIFIER", "."):
            return self.name()
        if token.kind == "(":
            self.at += 1
            node = self.expression()
            self.need(")")
            return node
        if token.kind == "[":
            return self.list()
        if token.kind == "{":
            return self.map()
        return self.constant()

    def name(self) -> AstNode:
        """Parse a variable, a call or a message, each with or without a leading dot."""
        message = self.message()
        if message is not None:
            return message
        dot = "." if self.take(".") else ""
        token = self.need("IDENTIFIER")
        if token.text in CEL_RESERVED_WORDS:
            raise self.error(token.offset, f"reserved identifier: {token.text}")
        opening = self.take("(")
        if opening is not None:
            return self.call(opening, dot + token.text, None)
        return Ident(self.numbers.next(), token.offset, dot + token.text)

    def constant(self) -> AstNode:
        token = self.token
        self.at += 1
        if token.kind in literals.LITERAL_WORDS:
            return Literal(self.numbers.next(), token.offset, literals.LITERAL_WORDS[token.kind])
        number = token
        if token.kind == "-" and self.token.kind in ("NUM_INT", "NUM_FLOAT"):
            number = self.need(self.token.kind)
        read = literals.LITERAL_READERS.get(number.kind)
        if read is None:
            raise self.unexpected(token, "an expression")
        word = number.text if number is token else f"-{number.text}"
        try:
            return Literal(self.numbers.next(), token.offset, read(word))
        except literals.LiteralError as error:
            raise self.error(token.offset, str(error)) from None

    # Aggregates: a comma may follow the last entry, or be alone

    def list(self) -> AstNode:
        bracket = self.need("[")
        elements: list[AstNode] = []
        optional = set()
        height = 0
        while self.token.kind not in ("]", ","):
            if self.optional_mark():
                optional.add(len(elements))
            elements.append(self.expression())
            height = max(height, self.height)
            if not self.take(","):
                break
        if not elements:
            self.take(",")
        self.need("]")
        self.height = height
        return ListNode(self.numbers.next(), bracket.offset, tuple(elements), frozenset(optional))

    def map(self) -> AstNode:
        brace = self.need("{")
        entries: list[MapEntry] = []
        height = 0
        while self.token.kind not in ("}", ","):
            is_optional = self.optional_mark()
            key = self.expression()
            height = max(height, self.height)
            self.need(":")
            value = self.expression()
            height = max(height, self.height)
            entries.append(MapEntry(self.numbers.next(), key, value, is_optional))
            if not self.take(","):
                break
        if not entries:
            self.take(",")
        self.need("}")
        self.height = height
        return MapNode(self.numbers.next(), brace.offset, tuple(entries))

    def message(self) -> AstNode | None:
        """Parse `Name.of.type{field: value}`; return None where no such thing begins."""
        name = self.message_name()
        if name is None:
            return None
        brace = self.need("{")
        fields: list[tuple[str, AstNode, bool]] = []
        while self.token.kind in ("IDENTIFIER", "?"):
            is_optional = self.optional_mark()
            field = self.need("IDENTIFIER").text
            self.need(":")
            fields.append((field, self.expression(), is_optional))
            if not self.take(","):
                break
        if not fields:
            self.take(",")
        self.need("}")
        return Struct(self.numbers.next(), brace.offset, name, tuple(fields))
