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
    assert (f"There are {draws} draws a chain: too few" if draws > 1 else
            "There is 1 draw a chain: too few") in page.text
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


def with_extras(x):
    return -0.5 * x @ x, {"ratio": x[0] / (2 + x[1]), "positive": x[0] > 0, "none": np.zeros(0),
                          "curve": np.arange(60.0) * x[1], "lost": np.nan if x[0] > 1 else x[0]}


def test_extras_are_in_a_table(tmp_path):
    result = sample(with_extras, np.zeros(2), sampler="ram", draws=300, tune=300, chains=2, seed=1,
                    diagnose=False, progress=False)
    page = page_of(result, tmp_path)
    table = page.partition("<h2>Extras and derived quantities</h2>")[2].partition("<h2>")[0]
    for label in ("ratio", "positive", "curve[0]", "curve[49]", "lost"):
        assert f"<th>{label}</th>" in table
    assert "<th>curve[50]</th>" not in table
    assert "The first 50 of 60 elements of curve." in table
    lost = int(np.isnan(result["lost"]).sum())
    assert f"Some draws are NaN or infinite: {lost} of 600 of lost." in table
    head = re.findall("<th>([a-z_0-9]*)</th>", table.partition("</thead>")[0])
    row = table.partition("<th>positive</th>")[2].partition("</tr>")[0]
    cells = dict(zip(head[1:], re.findall(">([^<]*)</td>", row), strict=True))
    assert {"mean", "sd", "mcse_mean", "ess_bulk", "r_hat"} <= set(cells)
    assert cells["ess_bulk"] == f"{result.summary('positive')['ess_bulk'][0]:.0f}"
    assert "Extras and derived" not in page_of(run(), tmp_path)


def test_a_report_of_weighted_draws_agrees_with_its_findings(tmp_path):
    result = fk.sample(with_extras, np.zeros(2), surrogate="learn", budget=400, seed=1,
                       progress=False, diagnose=False)
    assert result.log_weights is not None
    page = page_of(result, tmp_path)
    assert "Effective sample size: it grows" not in page
    assert "Autocorrelation: the band" not in page
    assert "resampled in proportion to their weights" in page
    assert "<th>ratio</th>" in page
    summary = result.summary()
    told = {one.kind for one in result.warnings}
    rows = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert (summary["r_hat"] > 1.01).any()
    assert "r_hat" not in told
    assert not [text for text in re.findall('class="bad">([^<]*)<', rows)
                if text in {f"{value:.3f}" for value in summary["r_hat"]}]
