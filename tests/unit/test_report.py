"""The report of a run: one file, complete, escaped, and small."""

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from runs import sample

import fastkam as fk
from fastkam import report
from fastkam.samplers import SAMPLERS

pytest.importorskip("matplotlib")
VOID = {"meta", "img"}


def normal(x):
    return -0.5 * x @ x


def run(**options):
    given = {"draws": 300, "tune": 200, "chains": 2, "seed": 1, "sampler": "ram",
             "progress": False, "diagnose": False}
    return sample(normal, np.zeros(2), **given | options)


class Page(HTMLParser):
    """A page's text, its images, and whether all tags are closed in order."""

    def __init__(self, path):
        super().__init__()
        self.open, self.tags, self.images, self.text = [], set(), [], ""
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "img":
            self.images.append(dict(attrs)["src"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def written(result, path, **options):
    assert result.report(path, **options) is None
    return Page(path)


def test_page_is_complete(tmp_path):
    result = run(draws=6000, tune=1000)
    page = written(result, tmp_path / "run.html", title="First run")
    for words in ("First run", "RobustAdaptiveMetropolis: 2 chains", "ess_bulk", "x[1]",
                  "The chains agree", "No check of the draws can find a mode", "exact: ", "numpy",
                  "Vihola, M. (2012)", "@software{fastkam", "We made 2 chains of", "bit generator"):
        assert words in page.text, words
    assert len(page.images) == 5
    for image in page.images:
        kind, _, data = image.partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert (tmp_path / "run.html").stat().st_size < 2_000_000


def test_page_loads_nothing(tmp_path):
    written(run(), tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text()
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!data:)\w", text)
    assert "<script" not in text
    assert "default-src 'none'" in text


def test_names_and_titles_are_escaped(tmp_path):
    evil = "<script>alert('&amp;')<script>"
    result = run(names=[evil, "$x_{\udc80"])
    page = written(result, tmp_path / "run.html", title=evil)
    assert "script" not in page.tags
    assert page.text.count(evil) >= 3


def test_findings_are_shown(tmp_path):
    result = run(draws=120, tune=10, sampler=fk.RandomWalk(proposal_cov=1e-4))
    page = written(result, tmp_path / "run.html")
    assert result.warnings
    assert "Verdict: wrong." in page.text
    for note in result.summary().notes:
        assert note in page.text
    assert 'class="bad"' in (tmp_path / "run.html").read_text()


def test_figures_fit_the_result(tmp_path):
    tempered = sample(fk.targets.two_mode(), [-8.0, 0.0], sampler="pt", draws=200, tune=200,
                      chains=2, seed=1, progress=False, diagnose=False)
    page = written(tempered, tmp_path / "run.html")
    assert "Ladder of the tempering" in page.text
    assert "Modes: the share" in page.text
    walk = sample(lambda x: -0.5 * x[0] ** 2, [0.0], sampler="rwm", draws=50, tune=0, chains=1,
                  seed=1, progress=False, diagnose=False)
    page = written(walk, tmp_path / "walk.html")
    assert len(page.images) == 3
    assert "without warm-up" in page.text


@pytest.mark.parametrize("draws", [1, 3, 5])
def test_few_draws(tmp_path, draws):
    page = written(run(draws=draws, names=["a", "b"]), tmp_path / "run.html")
    assert f"There are {draws} draws a chain: too few" in page.text
    assert bool(page.images) == (draws >= 4)


def test_many_coordinates_and_a_result_from_a_file(tmp_path):
    result = sample(normal, np.zeros(400), sampler="rwm", draws=10, tune=0, chains=2, seed=1,
                    progress=False, diagnose=False)
    result.save(tmp_path / "run.fk")
    page = written(fk.load(tmp_path / "run.fk"), tmp_path / "run.html")
    assert "300 of 400 coordinates" in page.text
    assert (tmp_path / "run.html").stat().st_size < 2_000_000


def test_without_matplotlib_there_are_no_figures(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = written(run(), tmp_path / "run.html")
    assert not page.images
    assert "There are no figures: this needs matplotlib: pip install fastkam[plot]" in page.text


def test_settings_have_no_long_arrays():
    sampler = fk.AdaptiveMetropolis(target_cov=np.eye(5))
    assert report.worded(sampler) == "AdaptiveMetropolis(target_cov=<array (5, 5)>)"
    assert report.worded(fk.RandomWalk()) == "RandomWalk()"
    inner = fk.ModeJumping(sampler=fk.RandomWalk(proposal_cov=2.0))
    assert report.worded(inner) == "ModeJumping(sampler=RandomWalk(proposal_cov=2.0))"


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_has_references_but_no_notes_among_them(name):
    found = report.references(SAMPLERS[name]())
    assert found
    assert not any("default" in text for text in found), found
    for text in found:
        assert re.search(r"\([12]\d{3}\)\. ", text) or name == "ckam"  # not in print
        assert text.endswith(".")
        assert not re.search(r"Eq\.|[Aa]lgorithm \d|Proposition|Appendix|Supplement\b|stages|gain|"
                             r"the paper|\bours\b|hops|reference:", text), text


def test_each_paper_is_a_reference_of_its_own():
    found = report.references(fk.NUTS())
    assert [text.partition(".")[0] for text in found] == ["NUTS: Hoffman, M", "NUTS: Betancourt, M"]
    assert all(text.count("(20") == 1 for text in found)


def test_bad_paths(tmp_path):
    result = run(draws=5)
    with pytest.raises(TypeError, match="path must be the path of a file, not None"):
        result.report(None)
    with pytest.raises(ValueError, match="path must be a file in a folder that exists"):
        result.report(tmp_path / "none" / "run.html")
    with pytest.raises(TypeError, match="title must be a text, not int"):
        result.report(tmp_path / "run.html", title=3)


def test_a_sampler_of_every_replica_is_cited_once(tmp_path):
    result = sample(normal, np.zeros(2), draws=20, tune=20, seed=1, sampler="pt", progress=False)
    assert "ParallelTempering around RobustAdaptiveMetropolis of fastkam" in page_of(
        result, tmp_path)


def test_long_names_leave_room_for_the_numbers(tmp_path):
    result = sample(normal, np.zeros(2), draws=20, tune=2, seed=1, sampler="rwm", progress=False,
                    names=["long" * 100, "b"])
    style = page_of(result, tmp_path).partition("<style>")[2].partition("</style>")[0]
    assert ".wide tbody th { white-space: normal; overflow-wrap: anywhere" in style
    assert ".verdict { overflow-wrap: anywhere" in style


def page_of(result, folder):
    result.report(folder / "run.html")
    return (folder / "run.html").read_text()
