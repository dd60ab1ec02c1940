"""The choice of a sampler is stated once: the README has the table of docs/choosing.md."""

import re
from pathlib import Path

import pytest

from fastkam.samplers import SAMPLERS

ROOT = Path(__file__).parents[2]
CHOOSING = ROOT / "docs" / "choosing.md"
README = ROOT / "README.md"
OTHERS = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != CHOOSING]

NAME = "`(?:" + "|".join(["auto", 'sampler="auto"', *SAMPLERS]) + ")`"
HEADINGS = re.compile(
    r"which (?:one|samplers?)\b|what to do|what (?:we|you) (?:would|should)|recommend|choosing",
    re.I)
ADVICE = re.compile(
    rf"\b(?:take|try|use|choose|prefer|start with|begin with|switch to|go for)\s+"
    rf"(?:`\w+` or )?{NAME}(?!\s+(?:as|for the replicas)\b)"
    rf"|{NAME} (?:is|are) (?:a|the) (?:best|better|right|first|safest|simplest) (?:choice|sampler)"
    rf"|\brecommend(?:s|ed)?\b[^.|]*{NAME}|{NAME}[^.|]*\brecommend(?:s|ed)?\b"
    rf"|\bare for {NAME}", re.I)


def table(page, heading):
    """The first table after the heading, as rows of cells; the head and the line below left out."""
    rows = page.read_text().partition(heading)[2].splitlines()
    first = next(i for i, line in enumerate(rows) if line.startswith("|"))
    last = next(i for i in range(first, len(rows)) if not rows[i].startswith("|"))
    return [[cell.strip() for cell in row.strip("|").split(" | ")]
            for row in rows[first + 2 : last]]


def sections(text):
    """[(heading, body)] of a page, without its code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found = re.split(r"^#+ (.*)$", text, flags=re.M)[1:]
    return list(zip(found[::2], found[1::2], strict=True))


def advice(page):
    """The sentences and the headings that say which sampler to take."""
    found = []
    for heading, body in sections(page):
        found += [heading] * bool(HEADINGS.search(heading))
        found += [match[0] for match in ADVICE.finditer(" ".join(body.split()))]
    return found


def test_readme_has_the_rows_of_the_page():
    rows = table(README, "\n## Which sampler\n")
    assert len(rows) == 6
    assert rows == [row[:4] for row in table(CHOOSING, "# Which sampler\n")]


def test_readme_names_registered_samplers():
    named = [cell for *_, cell in table(README, "\n## Which sampler\n")]
    assert all(re.fullmatch(r"`\w+`", cell) for cell in named)
    assert {cell.strip("`") for cell in named} <= {"auto", *SAMPLERS}


@pytest.mark.parametrize("page", OTHERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_other_page_recommends_a_sampler(page):
    assert not advice(page.read_text())


def test_only_one_section_of_the_readme_recommends():
    text = README.read_text()
    before, _, rest = text.partition("\n## Which sampler\n")
    assert not advice(before + "\n## " + rest.partition("\n## ")[2])


def test_advice_is_found():
    page = "# T\n\nOn curves,\ntry `kam`.\n\n## What to do\n\nWith modes use `pt` or `jumps`."
    assert advice(page) == ["try `kam`", "What to do", "use `pt` or `jumps`"]
    assert advice("# T\n\n`nuts` is the best choice.") == ["`nuts` is the best choice"]
    assert advice("# T\n\n`pt` is recommended.") == ["`pt` is recommended"]
    assert not advice("# T\n\n`am` uses gradients. See `choosing.md`.\n```py\nuse `pt`\n```\n")


@pytest.mark.parametrize("page", [README, CHOOSING, ROOT / "docs" / "reliability.md"],
                         ids=lambda page: page.name)
def test_the_counts_of_the_default_call_are_measured(page):
    results = (ROOT / "bench" / "results" / "first_answer.md").read_text()
    right, warned, silent, _ = map(int, re.findall(r"\d+", re.search(r"\| all \|.*", results)[0]))
    assert right + warned + silent == 400
    text = " ".join(page.read_text().split())
    assert f"{right} of 400 runs" in text
    assert (f"the other {warned} warn" if silent == 0 else f"{warned} of the others warn") in text
