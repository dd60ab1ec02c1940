"""Mutants of Python files: the syntax tree is changed, and written out again."""

import ast
import copy

from mutation.operators import ARITHMETIC, COMPARISONS, Mutant, other_number

SYMBOLS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
           ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
NODES = {symbol: node for node, symbol in SYMBOLS.items()}
# messages, types, and what is computed when a module is imported
LEFT_OUT = (ast.Raise, ast.JoinedStr, ast.arguments, ast.Assert)

CONDITIONS = (ast.Compare, ast.BoolOp, ast.UnaryOp)     # with operators of their own


def mutants_of(file, text):
    """Return the mutants of a Python file."""
    tree = Mutator(file, {})
    tree.visit(ast.parse(text))
    return tree.found


def with_mutants(file, text, numbers):
    """Return the text with those mutants in it that `numbers` (mutant -> number) has."""
    tree = ast.parse(text)
    Mutator(file, numbers).visit(tree)
    place = 0
    while place < len(tree.body) and (
            isinstance(tree.body[place], ast.Expr)
            or getattr(tree.body[place], "module", None) == "__future__"):
        place += 1
    tree.body[place:place] = ast.parse("from fk_mutant import fk_mutated").body
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class Mutator(ast.NodeTransformer):
    """Find the mutants within functions, and put in those that have numbers."""

    def __init__(self, file, numbers):
        self.file, self.numbers = file, numbers
        self.found, self.depth = [], 0

    def visit(self, node):
        if isinstance(node, LEFT_OUT):
            return node
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            return self.visit_function(node)
        before = copy.deepcopy(node) if self.depth else None
        node = self.generic_visit(node)
        if not self.depth:
            return node
        for change, mutated in alternatives(before):
            mutant = Mutant(self.file, node.lineno, node.col_offset, change)
            self.found.append(mutant)
            if mutant in self.numbers:
                node = either(self.numbers[mutant], mutated, node)
        return node

    def visit_function(self, node):
        self.depth += 1
        body = node.body if isinstance(node.body, list) else [node.body]
        body = [self.visit(part) for part in body]
        node.body = body if isinstance(node.body, list) else body[0]
        self.depth -= 1
        return node

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node


def alternatives(node):
    """Yield what a node may be changed to: (the change as text, the new node)."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        symbol = SYMBOLS.get(type(node.ops[0]))
        if symbol:
            other = COMPARISONS[symbol]
            yield f"{symbol} -> {other}", ast.Compare(node.left, [NODES[other]()],
                                                      node.comparators)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        name = {ast.Or: "and -> or", ast.And: "or -> and"}[other]
        yield name, ast.BoolOp(other(), node.values)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        symbol = SYMBOLS.get(type(node.op))
        if symbol:
            other = copy.copy(node)
            other.op = NODES[ARITHMETIC[symbol]]()
            equals = "=" if isinstance(node, ast.AugAssign) else ""
            yield f"{symbol}{equals} -> {ARITHMETIC[symbol]}{equals}", other
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        other = other_number(repr(node.value))
        yield f"{node.value!r} -> {other}", ast.Constant(ast.literal_eval(other))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "operator dropped", node.operand
    elif isinstance(node, ast.If) and not isinstance(node.test, CONDITIONS):
        other = copy.copy(node)
        other.test = ast.UnaryOp(ast.Not(), node.test)
        yield "condition negated", other
    elif ((isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
          or (isinstance(node, ast.Assign)
              and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)))):
        yield "statement dropped", ast.Pass()


def either(number, mutated, node):
    """Return the node that is `mutated` while the mutant of that number is on."""
    test = ast.Call(ast.Name("fk_mutated", ast.Load()), [ast.Constant(number)], [])
    if isinstance(node, ast.stmt):
        return ast.If(test, [mutated], [node])
    return ast.IfExp(test, mutated, node)
