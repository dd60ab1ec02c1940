"""A folder of a run with a damaged member: it is refused by name, or nothing was lost."""

import shutil

import numpy as np
import pytest

import fastkam as fk

OPTIONS = {"sampler": "ram", "draws": 40, "tune": 20, "chains": 2, "seed": 1, "progress": False,
           "diagnose": False}
OTHER_HEADERS = [
    (b"<f8", b"<i8"), (b"<f8", b">f8"), (b"<f8", b"<f4"), (b"'<f8'", b"'|O' "),  # an address each
    (b"|b1", b"|i1"), (b"False", b"True "), (b", 2)", b", 1)"), (b", 2)", b", 9)"),
    (b"NUMPY\1", b"NUMPY\2")]
OTHER_TEXTS = [b"", b"[]", b"null", b'"x"', b"\xff", b"[" * 10**6, b"{}",
               b'{"fastkam": 1, "kind": "npy", "id": 5}']


def f(x):
    return -0.5 * float(x @ x), {"sum": x.sum()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in a store, and that run made longer."""
    path = tmp_path_factory.mktemp("stores") / "run"
    fk.sample(f, np.zeros(2), store=path, **OPTIONS)
    longer = shutil.copytree(path, path.with_name("longer"))
    return path, gone_on(longer)


def gone_on(path):
    """All draws and extras of the run in a folder, ten draws longer."""
    result = fk.load(path)
    for name in result.stats:
        np.asarray(result.stats[name])
    result = fk.resume(path, target=f, draws=10, progress=False, diagnose=False)
    return np.asarray(result.draws), np.asarray(result["sum"])


def check(path, expected):
    """Whether the folder is refused by its name; else it must have the draws expected."""
    try:
        found = gone_on(path)
    except ValueError as error:
        assert path.name in str(error)  # noqa: PT017
        return True
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    return False


def members(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*.npy"))


@pytest.mark.parametrize("other", OTHER_HEADERS)
def test_a_header_of_other_rows(run, tmp_path, other):
    path, expected = run
    changed = [name for name in members(path) if other[0] in (path / name).read_bytes()[:128]]
    assert changed
    for name in changed:
        copy = shutil.copytree(path, tmp_path / name.replace("/", "-"))
        data = (copy / name).read_bytes()
        (copy / name).write_bytes(data[:128].replace(*other, 1) + data[128:])
        assert check(copy, expected)


def test_any_changed_byte_of_a_header(run, tmp_path):
    path, expected = run
    refused = 0
    for i in range(128):
        copy = shutil.copytree(path, tmp_path / str(i))
        member = copy / members(path)[i % len(members(path))]
        data = bytearray(member.read_bytes())
        data[i] ^= 1 << i % 8
        member.write_bytes(data)
        refused += check(copy, expected)
    assert refused > 120                        # the rest changes the number of rows alone


@pytest.mark.parametrize("fault", ["gone", "empty", "cut", "a folder"])
def test_a_damaged_member_is_refused(run, tmp_path, fault):
    path, expected = run
    for name in [*members(path), "state.npz", "store.json"]:
        copy = shutil.copytree(path, tmp_path / name.replace("/", "-"))
        member, data = copy / name, (copy / name).read_bytes()
        member.unlink()
        if fault == "a folder":
            member.mkdir()
        elif fault != "gone":
            member.write_bytes(data[:-9] if fault == "cut" else b"")
        try:
            assert check(copy, expected)
        except OSError as error:
            assert copy.name in str(error.filename or error)  # noqa: PT017


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_another_description(run, tmp_path, text):
    path, expected = run
    copy = shutil.copytree(path, tmp_path / "copy")
    (copy / "store.json").write_bytes(text)
    assert check(copy, expected)


def test_another_array_of_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "run.zarr"
    fk.sample(f, np.zeros(2), store=path, **OPTIONS)
    expected = gone_on(shutil.copytree(path, tmp_path / "longer.zarr"))
    for name in ("draws/x", "draws/logp", "draws/records"):
        for dtype, tail in (("<f4", None), ("<i8", None), ("<f8", (7,))):
            copy = shutil.copytree(path, tmp_path / f"{name.replace('/', '-')}{dtype}{tail}.zarr")
            old = zarr.open_array(copy / name, mode="r")
            shape = old.shape if tail is None else (*old.shape[:2], *tail)
            chunks = old.chunks if tail is None else (*old.chunks[:2], *tail)
            shutil.rmtree(copy / name)
            zarr.open_group(copy, mode="r+").create_array(
                name, shape=shape, chunks=chunks, dtype=dtype, compressors=None)
            assert check(copy, expected)
