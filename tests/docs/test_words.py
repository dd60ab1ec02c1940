"""Source, tests and pages use the words of textbooks: some that readers query are not used."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fastkam"
# instead: distribution; again; number of; returns; alternately; probability; American spelling
QUERIED = re.compile(r"\b(laws?|anew|afresh|so many|(?:is|are) told|in its turn|by turns|answers|"
                     r"answered|chances|way back|gone on with|(?:goes|go) home|somebody's own|"
                     r"(?:normal|vector|standard|optim|initial|recogn)is(?:e|es|ed|ing|ation)|"
                     r"parametris\w+|summaris\w+|neighbour\w*|licence|misspelt|learnt|centred?|centres|"
                     r"(?:label|model|travel)led|behaviour|colour\w*)\b", re.I)
# instead: rarely; also, the same; a noun for the person or the program; reasons to doubt
QUERIED_IN_SOURCE = re.compile(r"\b(seldom|likewise|whoever|somebody|nobody|for good|"
                               r"speaks? against|in words|what there is)\b", re.I)
# a docstring begins with a verb or with the thing, not with a question or a lonely preposition
OPENINGS = {"What", "Which", "How", "Where", "When", "Why", "Whatever", "Whoever", "Of", "By",
            "With", "At", "From", "That", "Those", "It"}
ENDINGS = {".py", ".pyx", ".pxd", ".pyi", ".h", ".c", ".md"}
FILES = [path for folder in ("src", "docs") for path in sorted((ROOT / folder).rglob("*"))
         if path.suffix in ENDINGS] + [ROOT / "README.md", ROOT / "CHANGELOG.md"]
CODE = [path for path in FILES if SOURCE in path.parents and path.suffix != ".md"]
PROGRAMS = [path for folder in ("tests", "bench") for path in sorted((ROOT / folder).rglob("*.py"))]
WITH_DOCSTRINGS = [path for path in CODE if path.suffix in (".py", ".pyx", ".pxd")] + PROGRAMS


def name(path):
    return str(path.relative_to(ROOT))


def lines_with(words, path):
    return [f"{i}: {line.strip()}" for i, line in enumerate(path.read_text().splitlines(), 1)
            if words.search(line)]


def docstrings(path):
    """[(line, text)] of a module, its classes and its functions."""
    text = path.read_text()
    if path.suffix != ".py":        # Cython: no syntax tree, but no other strings of this form
        return [(text.count("\n", 0, found.start()) + 1, found[1])
                for found in re.finditer(r'^ *"""(.+?)"""', text, re.M | re.S) if found[1].split()]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [(node.body[0].lineno, text) for node in ast.walk(ast.parse(text))
            if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def prose(path):
    """[(line, text)] of the docstrings, the comments and the names of tests of a Python file."""
    text = path.read_text()
    comments = [(token.start[0], token.string)
                for token in tokenize.generate_tokens(io.StringIO(text).readline)
                if token.type == tokenize.COMMENT]
    names = [(text.count("\n", 0, found.start()) + 1, found[1].replace("_", " "))
             for found in re.finditer(r"^def (test_\w+)", text, re.M)]
    return docstrings(path) + comments + names


@pytest.mark.parametrize("path", FILES, ids=name)
def test_no_word_of_the_list_is_used(path):
    found = lines_with(QUERIED, path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", CODE, ids=name)
def test_no_word_of_the_second_list_is_used(path):
    found = lines_with(QUERIED_IN_SOURCE, path)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", PROGRAMS, ids=name)
def test_no_word_of_the_lists_is_used_in_tests_and_benchmarks(path):
    found = [f"{line}: {text}" for line, text in prose(path)
             if QUERIED.search(text) or QUERIED_IN_SOURCE.search(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", WITH_DOCSTRINGS, ids=name)
def test_a_docstring_begins_with_a_verb_or_a_noun(path):
    found = [f"{line}: {text.splitlines()[0]}" for line, text in docstrings(path)
             if text.split()[0] in OPENINGS]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("ending", [".py", ".pyx"])
def test_a_word_of_the_lists_is_found(ending, tmp_path):
    assert QUERIED.search("the law of x")
    assert not QUERIED.search("a lawful answer")
    assert QUERIED_IN_SOURCE.search("where nobody looks")
    path = tmp_path / f"f{ending}"
    path.write_text('def f():\n    """What is returned."""\n')
    assert docstrings(path) == [(2, "What is returned.")]
    path.write_text("def test_of_the_law():  # made anew\n    pass\n")
    if ending == ".py":
        assert prose(path) == [(1, "# made anew"), (1, "test of the law")]
