"""Places of data sets, and errors for missing or wrong ones."""

import builtins
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from fastkam import targets
from fastkam.targets import datasets


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """No folder, an empty cache, no scikit-learn."""
    monkeypatch.delenv("FASTKAM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = builtins.__import__

    def without_sklearn(name, *rest, **more):
        if name.startswith("sklearn") and name not in sys.modules:
            raise ImportError("No module named 'sklearn'")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_sklearn)
    monkeypatch.delitem(sys.modules, "sklearn.datasets", raising=False)


def write(folder, rows=250):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["xs,ys,y"] + [f"{i / 7},{i % 5},{i % 2}" for i in range(rows)]
    (folder / "ripley.csv").write_text("\n".join(lines) + "\n")


def test_the_named_folder_comes_first(tmp_path, monkeypatch):
    write(tmp_path / "here")
    monkeypatch.setenv("FASTKAM_DATA", str(tmp_path / "here"))
    X, y = targets.load_dataset("ripley")
    assert X.shape == (250, 2)
    assert X[3, 0] == 3 / 7
    assert set(y) == {0, 1}
    assert targets.logistic_regression("ripley").dim == 3


def test_the_cache_comes_next(tmp_path):
    write(tmp_path / "cache" / "fastkam")
    assert targets.load_dataset("ripley")[0].shape == (250, 2)


def test_without_all_three_the_error_says_so():
    with pytest.raises(FileNotFoundError, match=r"FASTKAM_DATA.*fastkam.*OpenML.*scikit-learn"):
        targets.load_dataset("ripley")
    with pytest.raises(FileNotFoundError, match=r"FASTKAM_DATA.*OpenML, which does not have"):
        targets.load_dataset("pima")


def test_a_file_of_other_data_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FASTKAM_DATA", str(tmp_path))
    write(tmp_path, rows=100)
    with pytest.raises(ValueError, match=r"shape \(100, 2\), but ripley has \(250, 2\)"):
        targets.load_dataset("ripley")
    (tmp_path / "ripley.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must have a column y"):
        targets.load_dataset("ripley")


def fake_openml(monkeypatch, labels):
    calls = []

    def fetch_openml(**arguments):
        calls.append(arguments)
        return SimpleNamespace(data=np.arange(500.0).reshape(250, 2) / 3, target=labels)

    module = ModuleType("sklearn.datasets")
    module.fetch_openml = fetch_openml
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", module)
    return calls


def test_openml_is_the_last_source_and_is_cached(monkeypatch):
    calls = fake_openml(monkeypatch, np.array(["0", "1"] * 125, dtype=object))
    first = targets.load_dataset("ripley")
    second = targets.load_dataset("ripley")
    assert len(calls) == 1
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_openml_with_other_labels_is_refused_and_not_kept(monkeypatch):
    fake_openml(monkeypatch, np.array(["a", "b"] * 125, dtype=object))
    with pytest.raises(ValueError, match=r"OpenML has \(250, 0\) labels"):
        targets.load_dataset("ripley")
    assert not (datasets.cache_folder() / "ripley.csv").exists()
