"""Mutants of Cython files: the syntax tree is changed before Cython makes C of it.

As a script this is the command ``cython``, which puts in the mutants that the JSON file named by
FASTKAM_MUTANTS lists with their numbers.
"""

import copy
import json
import os
import sys
from pathlib import Path

from Cython.Compiler import ExprNodes, Nodes, Parsing
from Cython.Compiler.TreeFragment import parse_from_strings

from mutation.operators import ARITHMETIC, COMPARISONS, Mutant, other_number

DECLARED = "cdef extern from *:\n    int fk_mutated(int number) noexcept nogil\n"
# messages, types, declarations of arguments
LEFT_OUT = (Nodes.RaiseStatNode, Nodes.AssertStatNode, ExprNodes.JoinedStrNode, Nodes.CArgDeclNode,
            Nodes.CBaseTypeNode, Nodes.CArrayDeclaratorNode, Nodes.CFuncDeclaratorNode,
            Nodes.DecoratorNode, ExprNodes.SizeofNode, ExprNodes.AnnotationNode)
FUNCTIONS = (Nodes.CFuncDefNode, Nodes.DefNode)
# conditions with operators of their own
CONDITIONS = (ExprNodes.PrimaryCmpNode, ExprNodes.BoolBinopNode, ExprNodes.NotNode)
parse_module = Parsing.p_module


def parse(text, pxd=True):
    """Return the syntax tree of Cython code."""
    return parse_from_strings("parsed", text, level="module_pxd" if pxd else "module")


def mutants_of(file, text):
    """Return the mutants of a Cython file."""
    mutator = Mutator(file, {})
    mutator.visit(parse(text, file.endswith(".pxd")))
    return mutator.found


class Mutator:
    """Find the mutants within functions, and put in those that have numbers."""

    def __init__(self, file, numbers):
        self.file, self.numbers = file, numbers
        self.found, self.inside = [], False

    def visit(self, node):
        """Return the node, or what takes its place."""
        if isinstance(node, list):
            return [self.visit(part) for part in node]
        if not isinstance(node, Nodes.Node) or isinstance(node, LEFT_OUT):
            return node
        if isinstance(node, FUNCTIONS):
            before, self.inside = self.inside, True
            node.body = self.visit(node.body)
            self.inside = before
            return node
        original = clone(node) if self.inside else None
        if is_range(node):
            node.args[:2] = self.visit(node.args[:2])       # a loop's step must be constant
        else:
            for name in parts_of(node):
                setattr(node, name, self.visit(getattr(node, name)))
        if not self.inside:
            return node
        for change, mutated in alternatives(original):
            mutant = Mutant(self.file, *node.pos[1:], change)
            self.found.append(mutant)
            if mutant in self.numbers:
                node = either(self.numbers[mutant], mutated, node)
        return node


def is_call(node):
    """Return whether a node is a statement that calls a function."""
    return isinstance(node, Nodes.ExprStatNode) and isinstance(node.expr, ExprNodes.SimpleCallNode)


def is_change(node):
    """Return whether a node gives an attribute or an element of an array another value."""
    return (isinstance(node, Nodes.SingleAssignmentNode)
            and isinstance(node.lhs, (ExprNodes.AttributeNode, ExprNodes.IndexNode)))


def is_range(node):
    """Return whether a node is a call of range."""
    return (isinstance(node, ExprNodes.SimpleCallNode)
            and getattr(node.function, "name", "") == "range")


def parts_of(node):
    """Return the names of the parts of a node in which mutants may be."""
    if isinstance(node, Nodes.ReturnStatNode) and isinstance(node.value, ExprNodes.IntNode):
        return []       # the codes of nogil functions
    if isinstance(node, ExprNodes.IndexNode):
        indices = getattr(node.index, "args", [node.index])
        if all(isinstance(index, ExprNodes.IntNode) for index in indices):
            return ["base"]     # mostly &a[0], the address of an array
    if isinstance(node, (Nodes.AssignmentNode, Nodes.ParallelAssignmentNode)):
        return [name for name in node.child_attrs if not name.endswith("ed_values")]
    if isinstance(node, ExprNodes.PrimaryCmpNode):
        return [] if node.cascade else ["operand1", "operand2"]
    return node.child_attrs or []


def clone(node):
    """Copy a part of a tree that has been parsed and nothing more."""
    if isinstance(node, list):
        return [clone(part) for part in node]
    if not isinstance(node, Nodes.Node):
        return node
    new = copy.copy(node)
    for name in node.child_attrs or []:
        setattr(new, name, clone(getattr(node, name)))
    return new


def alternatives(node):
    """Yield what a node may be changed to: (the change as text, the new node)."""
    pos = node.pos
    if isinstance(node, ExprNodes.PrimaryCmpNode):
        if node.operator in COMPARISONS and not node.cascade:
            other = clone(node)
            other.operator = COMPARISONS[node.operator]
            yield f"{node.operator} -> {other.operator}", other
    elif isinstance(node, ExprNodes.BoolBinopNode):
        other = clone(node)
        other.operator = "or" if node.operator == "and" else "and"
        yield f"{node.operator} -> {other.operator}", other
    elif isinstance(node, ExprNodes.NumBinopNode):
        if node.operator in ARITHMETIC:
            other = ARITHMETIC[node.operator]
            yield f"{node.operator} -> {other}", ExprNodes.binop_node(
                pos, other, clone(node.operand1), clone(node.operand2))
    elif isinstance(node, (ExprNodes.IntNode, ExprNodes.FloatNode)):
        other = other_number(str(node.value))
        if other:
            yield f"{node.value} -> {other}", type(node)(pos, value=other)
    elif isinstance(node, (ExprNodes.NotNode, ExprNodes.UnaryMinusNode)):
        yield "operator dropped", clone(node.operand)
    elif isinstance(node, Nodes.InPlaceAssignmentNode):
        if node.operator in ARITHMETIC:
            other = clone(node)
            other.operator = ARITHMETIC[node.operator]
            yield f"{node.operator}= -> {other.operator}=", other
        yield "statement dropped", Nodes.PassStatNode(pos)
    elif isinstance(node, Nodes.IfClauseNode) and not isinstance(node.condition, CONDITIONS):
        yield "condition negated", ExprNodes.NotNode(pos, operand=clone(node.condition))
    elif is_call(node) or is_change(node):
        yield "statement dropped", Nodes.PassStatNode(pos)


def either(number, mutated, node):
    """Return the node that is `mutated` while the mutant of that number is on."""
    pos = node.pos
    test = ExprNodes.SimpleCallNode(
        pos, function=ExprNodes.NameNode(pos, name="fk_mutated"),
        args=[ExprNodes.IntNode(pos, value=str(number))])
    if isinstance(node, Nodes.IfClauseNode):
        # Cython makes an object of what is a truth value or an integer: not not x is the former
        same = ExprNodes.NotNode(pos, operand=ExprNodes.NotNode(pos, operand=node.condition))
        node.condition = ExprNodes.CondExprNode(pos, condition=test, true_val=mutated,
                                                false_val=same)
        return node
    if isinstance(node, Nodes.StatNode):
        clause = Nodes.IfClauseNode(pos, condition=test, body=mutated)
        return Nodes.IfStatNode(pos, if_clauses=[clause], else_clause=node)
    return ExprNodes.CondExprNode(pos, condition=test, true_val=mutated, false_val=node)


def parse_with_mutants(root, numbers):
    """Return a function that takes the place of Cython's: parses, and puts in the mutants."""
    def parse_and_change(scanner, pxd, name, *args, **kwargs):
        tree = parse_module(scanner, pxd, name, *args, **kwargs)
        source = Path(getattr(tree.pos[0], "filename", None) or "/").resolve()
        if not source.is_relative_to(root):
            return tree
        mutator = Mutator(str(source.relative_to(root)), numbers)
        mutator.visit(tree)
        if any(mutant in numbers for mutant in mutator.found):
            tree.body = Nodes.StatListNode(tree.pos, stats=[parse(DECLARED).body, tree.body])
        return tree
    return parse_and_change


def main():
    from Cython.Compiler.Main import setuptools_main

    with open(os.environ["FASTKAM_MUTANTS"]) as file:
        table = json.load(file)
    numbers = {Mutant(*mutant): k for k, mutant in enumerate(table["mutants"], 1)
               if k not in table["refused"]}
    Parsing.p_module = parse_with_mutants(Path(table["root"]).resolve(), numbers)
    sys.exit(setuptools_main())


if __name__ == "__main__":
    main()
