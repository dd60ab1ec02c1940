"""The replication pages: each number is in a committed results file, or is said to be the paper's.

A quoted number has to be its source, rounded to the digits that the page shows.
"""

import importlib
import re
from pathlib import Path

import pytest
from claims import NUMBER, PAPERS, Cell, Stated, Text, half_unit, value

DOCS = Path(__file__).parents[2] / "docs"
NAMES = sorted(path.stem.removeprefix("replication-") for path in DOCS.glob("replication-*.md"))
RESULTS = sorted(PAPERS.glob("*/results/*.md"))
DIGITS = re.compile(r"\d+")
# digits that are part of a name: code, links, years, places in a paper, targets
NAMED = re.compile(
    r"`[^`]*`|\[[^]]*\]\([^)]*\)|\((?:19|20)\d\d\)|\b\d{4}-\d{4}\b|\bx_\d\b|B\(0\.\d+, 100\)|"
    r"\b(?:[Ff]igures?|[Tt]ables?|[Ss]ections?|[Pp]roposition|[Aa]lgorithms?)"
    r" \d+(?:(?:,| and|, and| to) \d+)*\b|expansion \(\d\)")
# "ten repeats" would escape the test
IN_WORDS = re.compile(
    r"(?<!\d )\b(?:two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand|million)\s+"
    r"(?:\w+\s+)?(?:chains|repeats|runs|steps|draws|evaluations|seeds|distances|standard errors)\b")


def plain(text):
    """The text on one line, without the digits of names."""
    text = re.sub(r"\s+", " ", text)
    return NAMED.sub(lambda found: re.sub(r"\d", "#", found[0]), text)


def page_of(name):
    return plain((DOCS / f"replication-{name}.md").read_text())


def claims_of(name):
    return importlib.import_module(f"claims.{name}").CLAIMS


def unclaimed(page, claims):
    """The digits of the page that stand in no claim, with the words around them."""
    covered = [(at, at + len(plain(text))) for text, _ in claims
               if (at := page.find(plain(text))) >= 0]
    return [page[max(0, found.start() - 40):found.end() + 20] for found in DIGITS.finditer(page)
            if not any(a <= found.start() and found.end() <= b for a, b in covered)]


def differences(text, sources):
    """Return the wrong claims: (number of the page, source, number of the source)."""
    numbers = NUMBER.findall(plain(text))
    assert len(numbers) == len(sources), f"{text}: {len(numbers)} numbers, {len(sources)} sources"
    wrong = []
    for shown, source in zip(numbers, sources, strict=True):
        if isinstance(source, Stated):
            assert source.where.startswith(("paper: ", "program: ", "definition: ", "code: "))
            continue
        found = source()
        if abs(value(shown) - found) > half_unit(shown) * (1 + 1e-9):
            wrong.append((shown, source, found))
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_each_number_has_a_source(name):
    assert not unclaimed(page_of(name), claims_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_each_claim_is_on_the_page(name):
    page = page_of(name)
    assert [text for text, _ in claims_of(name) if page.count(plain(text)) != 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_each_number_is_that_of_its_source(name):
    wrong = [(text, *each) for text, sources in claims_of(name)
             for each in differences(text, sources)]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_numbers(name):
    assert IN_WORDS.findall(page_of(name)) == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parts[-3]}/{path.stem}")
def test_results_are_of_a_commit(path):
    """Results are not from a tree with uncommitted changes."""
    assert re.search(r", fastkam \S+ at [0-9a-f]{7,40}, ", path.read_text())


def test_a_wrong_number_is_found():
    claim = Cell("dharamshi2023/banana", "DM", "acceptance")      # 0.721
    assert differences("DM accepts 0.721", [claim]) == []
    assert differences("DM accepts 0.72", [claim]) == []
    assert differences("DM accepts 0.722", [claim])
    assert differences("means of 20 chains", [Text("dharamshi2023/banana", r"over (\d+) chains")]
                       ) == []
    with pytest.raises(KeyError):
        differences("0.721", [Cell("dharamshi2023/banana", "DM", "accepted")])
    with pytest.raises(AssertionError, match="2 numbers, 1 source"):
        differences("0.721 and 0.722", [claim])


def test_a_number_without_a_source_is_found():
    claims = [("accepts 0.72", [None])]
    assert unclaimed(plain("It accepts 0.72 (figures 1 to 5, `x[3]`)."), claims) == []
    for text in ("It accepts 0.72, or 0.73", "It accepts 0.722", "1,453 draws", "1 453", "the 20th",
                 "2 million"):
        assert unclaimed(plain(text), claims), text


def test_a_count_as_a_word_is_found():
    assert IN_WORDS.findall("means of ten repeats") == ["ten repeats"]
    assert IN_WORDS.findall("two of the five repeats") == ["five repeats"]
    assert IN_WORDS.findall("both runs of a sampler for two modes") == []
