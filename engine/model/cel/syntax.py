"""Parses CEL without comprehensions, maps and messages.

An expression becomes a tree of the nodes below. Anything else raises CelError (KERF353).
"""

from __future__ import annotations

import re

from msgspec import Struct

from kerf.engine.model.cel.errors import CelError

MAX_EXPRESSION_LENGTH = 10 * 1024  # characters, the API's own limit
MAX_NESTING = 40  # levels of nesting, and operators in a row that are neither && nor ||
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<double>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?(?!\.?[0-9]|\w)|[0-9]+[eE][+-]?[0-9]+(?!\.?[0-9]|\w))
      | (?P<number>0x[0-9a-fA-F]+|[0-9]+(?![.\w]))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<sign>&&|\|\||==|!=|<=|>=|[<>!?:()\[\].,+*/%-])
    )""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "`": "`", "?": "?"}
_BINDING = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_CHAINED = 2  # the levels before it have one operator, which takes any number of operands
_VALUES: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class Constant(Struct, frozen=True):
    value: bool | int | float | str | None


class Name(Struct, frozen=True):
    name: str


class ListLiteral(Struct, frozen=True):
    items: tuple[CelNode, ...]


class Member(Struct, frozen=True):
    of: CelNode
    name: str


class Item(Struct, frozen=True):
    of: CelNode
    key: CelNode


class Call(Struct, frozen=True):
    """A call. `of`: what a method is called on; None for a function."""

    name: str
    of: CelNode | None
    arguments: tuple[CelNode, ...]


class Operation(Struct, frozen=True):
    """An operator with its operands: any number for && and ||, three for the conditional ("?"), else one or two."""

    operator: str
    operands: tuple[CelNode, ...]


CelNode = Constant | Name | ListLiteral | Member | Item | Call | Operation


def parse(expression: str) -> CelNode:
    """The tree of an expression. Raises CelError if it cannot be read."""
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise CelError("the expression is too long", hint=f"{MAX_EXPRESSION_LENGTH} characters are the most")
    parser = _Parser(_tokens(expression))
    tree = parser.expression(0)
    parser.end()
    return tree


def _tokens(expression: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    text = expression.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _refused(f"{text[at : at + 20].strip()!r} cannot be read")
        tokens.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise _refused(f"{self._tokens[self._at][1]!r} is not expected here")

    def expression(self, depth: int) -> CelNode:
        """With the conditional, which binds least."""
        self._within(depth)
        condition = self._binary(0, depth + 1)
        if not self._takes("?"):
            return condition
        yes = self._binary(0, depth + 1)
        self._needs(":")
        return Operation("?", (condition, yes, self.expression(depth + 1)))

    def _binary(self, level: int, depth: int) -> CelNode:
        if level == len(_BINDING):
            return self._unary(depth)
        operands = [self._binary(level + 1, depth)]
        while (operator := self._takes(*_BINDING[level])) is not None:
            operands.append(self._binary(level + 1, depth))
            if level >= _CHAINED:
                operands = [Operation(operator, tuple(operands))]
                depth += 1
                self._within(depth)
        return operands[0] if len(operands) == 1 else Operation(_BINDING[level][0], tuple(operands))

    def _unary(self, depth: int) -> CelNode:
        operator = self._takes("!", "-")
        if operator is None:
            return self._postfix(depth)
        self._within(depth)
        if operator == "-" and self._tokens[self._at : self._at + 1] and self._tokens[self._at][0] == "number":
            return Constant(_integer(f"-{self._next()[1]}"))
        return Operation(operator, (self._unary(depth + 1),))

    def _postfix(self, depth: int) -> CelNode:
        node = self._primary(depth)
        while True:
            depth += 1
            self._within(depth)
            if self._takes("."):
                name = self._name()
                node = Call(name, node, self._arguments(")", depth)) if self._takes("(") else Member(node, name)
            elif self._takes("["):
                node = Item(node, self.expression(depth + 1))
                self._needs("]")
            else:
                return node

    def _primary(self, depth: int) -> CelNode:
        if self._takes("("):
            node = self.expression(depth + 1)
            self._needs(")")
            return node
        if self._takes("["):
            return ListLiteral(self._arguments("]", depth))
        kind, text = self._next()
        if kind == "number":
            return Constant(_integer(text))
        if kind == "double":
            return Constant(float(text))
        if kind == "text":
            return Constant(_unescaped(text[1:-1]))
        if kind != "name":
            raise _refused(f"{text!r} is not expected here")
        if text in _VALUES:
            return Constant(_VALUES[text])
        return Call(text, None, self._arguments(")", depth)) if self._takes("(") else Name(text)

    def _arguments(self, closing: str, depth: int) -> tuple[CelNode, ...]:
        arguments: list[CelNode] = []
        while not self._takes(closing):
            if arguments:
                self._needs(",")
            arguments.append(self.expression(depth + 1))
        return tuple(arguments)

    def _within(self, depth: int) -> None:
        if depth > MAX_NESTING:
            raise _refused("it is nested too deeply")

    def _name(self) -> str:
        kind, text = self._next()
        if kind != "name":
            raise _refused(f"a name is expected, not {text!r}")
        return text

    def _takes(self, *texts: str) -> str | None:
        if self._at < len(self._tokens):
            kind, text = self._tokens[self._at]
            if kind != "text" and text in texts:
                self._at += 1
                return text
        return None

    def _needs(self, text: str) -> None:
        if self._takes(text) is None:
            raise _refused(f"{text!r} is missing")

    def _next(self) -> tuple[str, str]:
        if self._at == len(self._tokens):
            raise _refused("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]


def _integer(text: str) -> int:
    """Of a literal with its sign: the smallest number has one as well."""
    number = int(text, 16) if "x" in text else int(text)
    if not -(1 << 63) <= number < 1 << 63:
        raise _refused(f"{text} has more than 64 bits")
    return number


def _unescaped(text: str) -> str:
    def meant(match: re.Match[str]) -> str:
        character = match[1]
        if character not in _ESCAPES:
            raise _refused(f"the escape \\{character} is not known")
        return _ESCAPES[character]

    return re.sub(r"\\(.)", meant, text)


def _refused(message: str) -> CelError:
    return CelError(message, hint="kerf reads CEL without comprehensions and maps")
