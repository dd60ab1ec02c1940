"""Source and pages use the words of textbooks: some that a reviewer would query are not used."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# instead: distribution; again; number of; returns; alternately; probability; American spelling
QUERIED = re.compile(r"\b(laws?|anew|afresh|so many|(?:is|are) told|in its turn|by turns|answers|"
                     r"answered|chances|way back|normalis\w+|neighbour\w*|licence)\b", re.I)
ENDINGS = {".py", ".pyx", ".pxd", ".pyi", ".h", ".c", ".md"}
FILES = [path for folder in ("src", "docs") for path in sorted((ROOT / folder).rglob("*"))
         if path.suffix in ENDINGS] + [ROOT / "README.md"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_word_of_the_list_is_used(path):
    found = [f"{i}: {line.strip()}" for i, line in enumerate(path.read_text().splitlines(), 1)
             if QUERIED.search(line)]
    assert not found, "\n".join(found)


def test_a_word_of_the_list_is_found():
    assert QUERIED.search("the law of x")
    assert not QUERIED.search("a lawful answer")
