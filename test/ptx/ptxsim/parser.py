"""PTX text to kernels: symbols, parameters and a flat list of instructions."""

import re
from dataclasses import dataclass, field

import numpy as np

from .memory import Unsupported

TOKEN = re.compile(
    r"""
    (?P<nl>\n) | (?P<ws>[ \t\r\f]+)
  | (?P<str>"(?:\\.|[^"\\])*")
  | (?P<num>0[fF][0-9a-fA-F]{8}\b | 0[dD][0-9a-fA-F]{16}\b | 0[xX][0-9a-fA-F]+U?
        | 0[bB][01]+U? | \d+\.\d*(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ | \d+U?)
  | (?P<id>[A-Za-z_$%.](?:[\w$%.]|::(?=\w))*)
  | (?P<p>[{}()\[\],;:+\-*/|!@<>=~&^?])
    """,
    re.X,
)

SIZES = {
    "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "u16x2": 4, "s16x2": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "b128": 16, "pred": 0,
}  # fmt: skip


@dataclass
class Variable:
    name: str
    space: str
    size: int
    align: int
    type: str = "b8"
    values: list | None = None
    extern: bool = False


@dataclass
class Instruction:
    op: str
    mods: list
    args: list
    pred: tuple | None  # (register, negated)
    line: int
    text: str
    types: list = field(default_factory=list)
    target: int = -1
    targets: list | None = None


@dataclass
class Kernel:
    name: str
    params: list
    registers: dict = field(default_factory=dict)  # name -> type
    variables: list = field(default_factory=list)
    code: list = field(default_factory=list)
    error: str | None = None


def tokenize(text):
    tokens = []
    line, at = 1, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Unsupported(f"line {line}: {text[at : at + 20]!r}")
        kind = match.lastgroup
        if kind == "nl":
            line += 1
        elif kind != "ws":
            tokens.append((kind, match.group(), line))
        at = match.end()
    return tokens


def blank(match):
    return "\n" * match.group().count("\n") + " "


def clean(text):
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"(?m)^[ \t]*\.(loc|file)\b[^\n]*$", "", text)
    return re.sub(r"\.section\s+\S+\s*\{.*?\}", blank, text, flags=re.S)


def number(token):
    """An integer, or ("f32" | "f64", bits) or a Python float."""
    low = token.lower()
    if low.startswith("0f"):
        return ("f32", int(low[2:], 16))
    if low.startswith("0d") and len(low) == 18:
        return ("f64", int(low[2:], 16))
    low = low.rstrip("u") if not low.startswith("0x") else low.replace("u", "")
    if low.startswith("0x"):
        return int(low, 16)
    if low.startswith("0b"):
        return int(low[2:], 2)
    if "." in low or "e" in low:
        return ("f64", int(np.float64(low).view(np.uint64)))
    if len(low) > 1 and low.startswith("0"):
        return int(low, 8)
    return int(low)


class Parser:
    def __init__(self, text):
        self.lines = text.split("\n")
        self.tokens = tokenize(clean(text))
        self.at = 0
        self.variables = []
        self.kernels = {}
        self.module()

    def peek(self, ahead=0):
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else ""

    def next(self):
        token = self.tokens[self.at]
        self.at += 1
        return token[1]

    def expect(self, what):
        token = self.next()
        if token != what:
            line = self.tokens[self.at - 1][2]
            raise Unsupported(f"line {line}: {what!r} expected, {token!r} found")

    def accept(self, what):
        if self.peek() == what:
            self.at += 1
            return True
        return False

    # The module.

    def module(self):
        while self.at < len(self.tokens):
            token = self.peek()
            if token == ".version":
                self.at += 2
            elif token == ".target":
                self.next()
                self.next()
                while self.accept(","):
                    self.next()
            elif token == ".address_size":
                self.at += 2
            elif token in (".visible", ".extern", ".weak", ".common"):
                if token == ".extern" and self.peek(1) != ".func":
                    self.next()
                    self.variables.append(self.variable(extern=True))
                elif token == ".extern":
                    while self.next() != ";":
                        pass
                else:
                    self.next()
            elif token == ".entry":
                self.entry()
            elif token == ".func":
                self.skip_function()
            elif token in (".global", ".const", ".shared"):
                self.variables.append(self.variable())
            elif token in (".alias", ".pragma"):
                while self.next() != ";":
                    pass
            else:
                raise Unsupported(f"line {self.tokens[self.at][2]}: {token!r}")

    def skip_function(self):
        while self.peek() not in ("{", ";"):
            self.next()
        if self.next() == ";":
            return
        depth = 1
        while depth:
            token = self.next()
            depth += (token == "{") - (token == "}")

    def variable(self, extern=False):
        space = self.next()[1:]
        align, kind = None, "b8"
        while self.peek().startswith("."):
            token = self.next()
            if token == ".align":
                align = int(self.next())
            elif token[1:] in SIZES:
                kind = token[1:]
            elif token in (".ptr", ".attribute"):
                if self.accept("("):
                    while self.next() != ")":
                        pass
            elif token in (".v2", ".v4"):
                raise Unsupported("vector variables")
        name = self.next()
        count = None
        while self.accept("["):
            if self.accept("]"):
                count = 0
            else:
                count = (1 if count is None else count) * number(self.next())
                self.expect("]")
        values = None
        if self.accept("="):
            values = self.initialiser()
        self.expect(";")
        size = SIZES[kind] * (1 if count is None else count)
        if count == 0 and values and not extern:
            size = SIZES[kind] * len(values)
        return Variable(name, space, size, align or max(1, SIZES[kind]), kind, values, extern)

    def initialiser(self):
        if self.accept("{"):
            values = []
            while not self.accept("}"):
                values += self.initialiser()
                self.accept(",")
            return values
        sign = -1 if self.accept("-") else 1
        kind, token, _ = self.tokens[self.at]
        self.at += 1
        if kind == "num":
            value = number(token)
            return [sign * value if isinstance(value, int) else value]
        generic = token == "generic"
        if generic:
            self.expect("(")
            token = self.next()
        offset = self.offset()
        if generic:
            self.expect(")")
            offset += self.offset()
        return [("symbol", token, offset, generic)]

    def offset(self):
        total = 0
        while self.peek() in ("+", "-"):
            sign = 1 if self.next() == "+" else -1
            if self.accept("-"):
                sign = -sign
            total += sign * number(self.next())
        return total

    # A kernel.

    def entry(self):
        self.next()
        name = self.next()
        params = []
        if self.accept("("):
            while not self.accept(")"):
                params.append(self.param())
                self.accept(",")
        while self.peek() != "{":
            if self.accept(";"):
                return
            self.next()
        kernel = Kernel(name, params)
        self.kernels[name] = kernel
        self.body(kernel)

    def param(self):
        self.expect(".param")
        align, kind = None, "b8"
        while self.peek().startswith("."):
            token = self.next()
            if token == ".align":
                value = int(self.next())
                align = value if not pointer_seen(self) else align
            elif token == ".ptr":
                self._pointer = True
            elif token[1:] in SIZES:
                kind = token[1:]
        self._pointer = False
        name = self.next()
        size = SIZES[kind]
        if self.accept("["):
            size *= number(self.next())
            self.expect("]")
        return Variable(name, "param", size, align or SIZES[kind], kind)

    def body(self, kernel):
        self.expect("{")
        scopes = [{}]
        labels = {}
        tables = {}
        branches = []
        scope_count = 0
        self.kernel, self.scopes = kernel, scopes
        while True:
            token = self.peek()
            if token == "}":
                self.next()
                scopes.pop()
                if not scopes:
                    break
            elif token == "{":
                self.next()
                scope_count += 1
                scopes.append({"": scope_count})
            elif token == ";":
                self.next()
            elif token == ".reg":
                self.registers(scopes[-1])
            elif token in (".shared", ".local", ".const", ".global"):
                kernel.variables.append(self.variable())
            elif token == ".param":
                self.variable()
            elif token == ".pragma":
                while self.next() != ";":
                    pass
            elif self.peek(1) == ":":
                name = self.next()
                self.next()
                if self.peek() in (".branchtargets", ".calltargets"):
                    self.next()
                    names = []
                    while not self.accept(";"):
                        names.append(self.next())
                        self.accept(",")
                    tables[name] = names
                elif self.peek() == ".callprototype":
                    while self.next() != ";":
                        pass
                else:
                    name = self.label_name(name, declare=True)
                    labels[name] = len(kernel.code)
            else:
                instruction = self.instruction()
                split = instruction.pred is not None and instruction.op in SPLIT
                if split:
                    register, negated = instruction.pred
                    skip = Instruction(
                        "bra", [], [], (register, not negated), instruction.line, instruction.text
                    )
                    skip.target = len(kernel.code) + 2
                    kernel.code.append(skip)
                    instruction.pred = None
                if instruction.op in ("bra", "brx"):
                    branches.append((instruction, [dict(s) for s in scopes[1:]]))
                kernel.code.append(instruction)
        end = Instruction("ret", [], [], None, 0, "end of the kernel")
        kernel.code.append(end)
        for instruction, _ in branches:
            if instruction.op == "bra":
                instruction.target = labels[instruction.args[0][1]]
            else:
                names = tables[instruction.args[1][1]]
                instruction.targets = [labels[name] for name in names]

    def label_name(self, name, declare=False):
        # Blocks of inline assembly may repeat a label; the last one declared is meant.
        return name

    def registers(self, scope):
        self.next()
        kind = None
        while self.peek().startswith("."):
            token = self.next()[1:]
            if token in SIZES:
                kind = token
            elif token in ("v2", "v4"):
                raise Unsupported("vector registers")
        suffix = f"@{scope['']}" if "" in scope else ""
        while True:
            name = self.next()
            if self.accept("<"):
                count = number(self.next())
                self.expect(">")
                names = [f"{name}{i}" for i in range(count)]
            else:
                names = [name]
            for each in names:
                scope[each] = each + suffix
                self.kernel.registers[each + suffix] = kind
            if self.accept(";"):
                return
            self.expect(",")

    def lookup(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def instruction(self):
        line = self.tokens[self.at][2]
        pred = None
        if self.accept("@"):
            negated = self.accept("!")
            name = self.next()
            register = self.lookup(name)
            if register is None:
                raise Unsupported(f"line {line}: predicate {name}")
            pred = (register, negated)
        opcode = self.next()
        parts = opcode.split(".")
        args = []
        if parts[0] == "call":
            while self.next() != ";":
                pass
            return Instruction("call", parts[1:], [], pred, line, self.text(line))
        while not self.accept(";"):
            args.append(self.operand())
            if not self.accept(",") and self.peek() != ";":
                raise Unsupported(f"line {line}: {self.text(line)}")
        instruction = Instruction(parts[0], parts[1:], args, pred, line, self.text(line))
        instruction.types = [m for m in parts[1:] if m in SIZES]
        return instruction

    def text(self, line):
        return " ".join(self.lines[line - 1].split())

    def operand(self):
        first = self.simple()
        if self.accept("|"):
            return ("pair", first, self.simple())
        return first

    def simple(self):
        token = self.peek()
        if token == "{":
            self.next()
            parts = []
            while not self.accept("}"):
                parts.append(self.simple())
                self.accept(",")
            return ("vec", parts)
        if token == "[":
            self.next()
            base = self.simple()
            offset = self.offset()
            while self.accept(","):  # texture coordinates and the like
                self.simple()
            self.expect("]")
            if base[0] == "sym":
                return ("mem", ("sym", base[1], 0), base[2] + offset)
            return ("mem", base, offset)
        if token == "!":
            self.next()
            return ("not", self.simple())
        if token == "(":
            self.next()
            value = self.simple()
            self.expect(")")
            return value
        if token == "-":
            self.next()
            value = self.simple()
            kind, inner = value
            if isinstance(inner, int):
                return (kind, -inner)
            width = 31 if inner[0] == "f32" else 63
            return (kind, (inner[0], inner[1] ^ (1 << width)))
        kind, token, line = self.tokens[self.at]
        self.at += 1
        if kind == "num":
            return ("imm", number(token))
        if token == "_":
            return ("sink",)
        register = self.lookup(token)
        if register is not None:
            return ("reg", register)
        if "." in token and self.lookup(token.split(".")[0]) is not None:
            raise Unsupported(f"line {line}: {token}")
        if token.startswith("%"):
            return ("sreg", token[1:])
        if token == "WARP_SZ":
            return ("imm", 32)
        return ("sym", token, self.offset())


def pointer_seen(parser):
    return getattr(parser, "_pointer", False)


# Control and synchronisation under a predicate become a branch around them.
SPLIT = {
    "ret", "exit", "bar", "barrier", "shfl", "vote", "match", "redux", "mma", "ldmatrix",
    "stmatrix", "activemask", "brx", "elect", "movmatrix",
}  # fmt: skip
