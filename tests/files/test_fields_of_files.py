"""A file is checked before anything is restored: errors name the field, its value and the file."""

import json
from dataclasses import replace

import numpy as np
import pytest
import runs_in_files
from fuzzing import arrays_in, in_header, made, put

import fastkam as fk
from fastkam._core.engine.chain import ChainState
from fastkam._core.engine.fields import Field
from fastkam._core.engine.generators import check_generator
from fastkam._core.engine.ranges import MOST_COUNT, BadField, check_range
from fastkam.run.consistent import check_counts
from fastkam.run.state import BIT_GENERATORS, snapshot_steps
from fastkam.samplers import SAMPLERS

FILES = {}


def file_of(case, stopped_at, folder):
    """The bytes of a file, made once."""
    if (case, stopped_at) not in FILES:
        path = folder / "good.fk"
        runs_in_files.make(case, path, stopped_at)
        FILES[case, stopped_at] = path.read_bytes()
    return FILES[case, stopped_at]


def with_value(name, value, place=...):
    """A function that sets an array, or an element of it."""
    def change(arrays):
        array = np.array(arrays[name])
        array[place] = value
        arrays[name] = array
    return change


def wider(arrays):
    arrays["trace.x"] = np.concatenate([arrays["trace.x"]] * 2, axis=2)


KERNEL = "chain0.kernel"
CASES = {
    "negative counts": ("ram", with_value("trace.counts", -3), "trace.counts must be at least 0"),
    "more counts": ("ram", with_value("trace.counts", 900), "trace.counts must be at most"),
    "wide draws": ("ram", wider, r"trace.x must have shape \(2, n, 2\), not \(2, 24, 4\)"),
    "flags": ("ram", with_value("trace.accepted", 3), "trace.accepted must be at most 1, not 3"),
    "n of kam": ("kam", with_value(f"{KERNEL}.n", 13), "n must be at most 12 .subsample."),
    "kept": ("kam", with_value(f"{KERNEL}.kept", 41), "kept must be at most 40 .capacity."),
    "order": ("kam", with_value(f"{KERNEL}.order", 10**6, 0), "order must be below 40"),
    "order twice": ("kam", with_value(f"{KERNEL}.order", 1, slice(2)), "order must begin with"),
    "used": ("kpca", with_value(f"{KERNEL}.used", 10**9), "used must be at most 12"),
    "at_x": ("dm", with_value(f"{KERNEL}.at_x", 10**9), "at_x must be below"),
    "banked": ("dm", with_value(f"{KERNEL}.banked", 11), "banked must be at most 10"),
    "empty bank": ("dm", lambda a: [put(f"{KERNEL}.{n}", np.array(v))(a) for n, v in (
        ("banked", 0), ("at_x", -1), ("at_y", -1))], "banked must be at least 1"),
    "components": ("jumps", with_value(f"{KERNEL}.n", -1), "n must be at least 0"),
    "stride": ("jumps", with_value(f"{KERNEL}.stride", 0), "stride must be at least 1"),
    "rank": ("nuts", with_value(f"{KERNEL}.rank", 10**6), "rank must be at most . .ranks."),
    "leaves": ("nuts", with_value(f"{KERNEL}.leaves", 2**40), "leaves must be at most 2.depth"),
    "step of hmc": ("hmc", with_value(f"{KERNEL}.step", 10**9), "step must be at most"),
    "batch": ("pt", with_value(f"{KERNEL}.evidence.batch", 64), "evidence.batch must be below 64"),
    "batch of scout": ("scout", with_value(f"{KERNEL}.evidence.batch", -1), "batch must be at le"),
    "replica": ("pt", with_value(f"{KERNEL}.swaps.replica", 0), "replica must be a permutation"),
    "ladder": ("pt", lambda a: put(f"{KERNEL}.ladder", a[f"{KERNEL}.ladder"][::-1])(a),
               "ladder must decrease"),
    "rounds": ("pt", with_value(f"{KERNEL}.rounds", 6), "rounds must be at most 5"),
    "t": ("ram", with_value("chain0.t", -(10**9)), "chain0.t must be at least 0"),
    "too few steps": ("ram", with_value("chain0.t", 41), "counts must be at most 1 for chain 0"),
    "no draw": ("ram", with_value("chain1.keep", 0), "chain1.keep must be 1"),
    "x": ("ram", with_value("chain1.x", np.nan), "chain1.x must be finite, not nan at index 0"),
    "clocks": ("shared", with_value("chain1.t", 63), "chain1.t must be 64"),
    "field besides": ("ram", put("chain0.kernel.more", np.zeros(1)), "more is not a field of this"),
    "member besides": ("ram", put("more", np.zeros(1)), "more is not a field of this run"),
    "entry besides": ("ram", in_header(("more",), 1), "more is not a field of this run"),
    "field missing": ("ram", lambda a: a.pop("chain1.kernel.S"), "chain1.kernel.S is missing"),
    "type": ("ram", lambda a: put("trace.x", a["trace.x"].astype("f4"))(a),
             "trace.x must be an array of float64, not one of float32"),
    "depth": ("ram", put("header", np.frombuffer(b"[" * 100_000, np.uint8)), "nested too deeply"),
    "pool": ("ram", in_header(("seed", "pool_size"), 10**9), "seed must not have"),
    "tune": ("ram", in_header(("tune",), 10**12), "snapshot_steps must increase from 1 on to tune"),
    "thin": ("ram", in_header(("thin",), 0), "thin must be an integer from 1 to"),
    "share": ("dm", in_header(("share",), True), "share must be False for DivergenceMinimization"),
    "history": ("kam", in_header(("sampler", "parameters", "history_size"), 10**9),
                "the state is too small for the fields of its sampler"),
    "another sampler": ("ram", in_header(("sampler",), {"class": "fastkam.schedules:Finite",
                                                        "parameters": {}}),
                        "sampler must be a Sampler"),
    "statistics": ("hmc", in_header(("stat_names",), ["a"] * 5), "stat_names must be"),
    "array of arrays": ("rwm", in_header(("sampler", "parameters", "proposal_cov"), {
        "array": [1.0], "dtype": "(1000000,)f8"}), "which are no numbers"),
    "segments": ("problem", in_header(("coordinates", "rows", 0, 3), 10**6), "coordinates.rows"),
    "shapes": ("named", in_header(("shapes", "a"), [2**32, 2**32]), "shapes must describe 2"),
    "MT19937": ("ram MT19937", in_header(("generators", 0, "dict", "state", "dict", "pos"), 625),
                r"generators\[0\].state.pos must be an integer from 0 to 624, not 625"),
    "PCG64": ("ram", in_header(("generators", 0, "dict", "uinteger"), 2**32),
              r"generators\[0\].uinteger must be an integer from 0 to 4294967295, not 4294967296"),
    "flags of a step": ("python", with_value(f"{KERNEL}.step.numbers", 2.0, 1),
                        "step.numbers must have flags and a step made"),
    "adapting of a step": ("python", with_value(f"{KERNEL}.step.numbers", 0.5, 4),
                           "step.numbers must have flags and a step made"),
    "proper": ("ram", put("proper", np.array([2])), "proper must have indices from 0 to 1"),
    "draw": ("ram", with_value("trace.x", np.nan, (1, 5, 0)),
             r"trace.x must be a number in chain 1, not nan at index .5, 0."),
    "warm-up": ("ram", with_value("warmup.x", np.nan, (0, 3, 1)), "warmup.x must be a number in"),
    "density": ("ram", with_value("trace.logp", np.nan, (0, 5)), "trace.logp must be finite in"),
    "no density": ("ram", with_value("trace.logp", -np.inf, (0, 5)), "trace.logp must be finite"),
    "density of warm-up": ("ram", with_value("warmup.logp", np.inf, (1, 5)), "warmup.logp must be"),
    "ratio": ("ram", with_value("trace.log_ratio", np.nan, (1, 5)),
              "trace.log_ratio must be a number in chain 1, not nan at index 5"),
    "ratio of warm-up": ("ram", with_value("warmup.log_ratio", np.nan, (0, 0)),
                         "warmup.log_ratio must be a number in chain 0, not nan at index 0"),
    "energy": ("hmc", with_value("trace.extra", np.nan, (0, 3, 1)),
               "trace.extra, energy, must be at least -inf in chain 0, not nan at index 3"),
    "error of energy": ("nuts", with_value("warmup.extra", np.nan, (1, 3, 2)),
                        "warmup.extra, energy_error, must be at least -inf in chain 1, not nan"),
    "step size": ("mala", with_value("trace.extra", -1.0, (0, 3, 0)),
                  "trace.extra, step_size, must be at least 0 in chain 0, not -1.0 at index 3"),
    "tree depth": ("nuts", with_value("trace.extra", 1.5, (0, 3, 4)),
                   "trace.extra, tree_depth, must be an integer in chain 0, not 1.5 at index 3"),
    "steps of nuts": ("nuts", with_value("trace.extra", np.inf, (0, 3, 5)),
                      "trace.extra, n_steps, must be an integer in chain 0, not inf at index 3"),
    "divergence": ("hmc", with_value("trace.extra", 2.0, (0, 3, 4)),
                   "trace.extra, diverging, must be at most 1 in chain 0, not 2.0 at index 3"),
    "learned scale": ("gam", with_value("trace.extra", np.inf, (0, 3, 0)),
                      "trace.extra, log_scale, must be finite in chain 0, not inf at index 3"),
    "move": ("jumps", with_value("trace.extra", 9.0, (0, 3, 0)), "move, must be at most 3"),
    "acceptance": ("ram", with_value("chain1.alpha", np.nan), "chain1.alpha must be at least 0"),
    "exponential": ("ram", with_value("chain1.E", -1.0), "chain1.E must be at least 0, not -1"),
    "weighted draw": ("weighted", with_value("trace.x", np.inf, (0, 3, 1)), "x must be finite"),
    "weight": ("weighted", with_value("trace.extra", np.nan, (0, 3, -1)),
               r"trace.extra, log_weight, must be a number below inf in chain 0, not nan"),
    "infinite weight": ("weighted", with_value("trace.extra", np.inf, (1, 3, -1)), "not inf at"),
    "weighted density": ("weighted", with_value("trace.logp", np.nan, (0, 3)), "logp must be a"),
    "called density": ("weighted", with_value("calls", np.nan, (3, -1)), "calls must be below"),
    "called point": ("weighted", with_value("calls", np.nan, (3, 0)), "calls must be finite"),
    "learned": ("ram", with_value("chain1.kernel.S", np.nan), "chain1.kernel.S must be finite"),
    "learned by a part": ("pt", with_value(f"{KERNEL}.rung1.kernel.S", np.inf, 0),
                          "chain0.kernel.rung1.kernel.S must be finite, not inf at index .0, 0."),
    "recorded": ("extras", with_value("trace.recorded", 3, 0), "recorded must be counts, .24"),
    "entry twice": ("ram", lambda a: put("header", np.frombuffer(
        a["header"].tobytes().replace(b'"tune"', b'"tune": 1, "tune"', 1), np.uint8))(a),
                    "tune is given twice"),
    "Philox": ("ram Philox", in_header(("generators", 1, "dict", "buffer_pos"), -1),
               r"generators\[1\].buffer_pos must be an integer from 0 to 4, not -1"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_field_is_named(tmp_path, name):
    case, change, says = CASES[name]
    path = tmp_path / "bad.fk"
    path.write_bytes(made(arrays_in(file_of(case, None, tmp_path)), change))
    for use in (fk.load, lambda path: fk.resume(path, 5, target=runs_in_files.target_of(case))):
        with pytest.raises(ValueError, match=rf"bad\.fk .*{says}"):
            use(path)


def test_draws_that_a_density_lets_pass_are_read_again(tmp_path):
    """A draw may truly be infinite, a weighted one without a weight, and a resampled one without
    a step; an energy may overflow on the way, and a sampler in Python records what it likes.
    """
    for case, change in (("ram", with_value("trace.x", np.inf, (1, 5, 0))),
                         ("weighted", with_value("trace.extra", -np.inf, (0, 3, -1))),
                         ("weighted", with_value("calls", -np.inf, (3, -1))),
                         ("ram", with_value("trace.log_ratio", np.nan, slice(None))),
                         ("nuts", with_value("trace.extra", np.inf, (0, 3, 3))),
                         ("python", with_value("trace.extra", np.nan, (0, 3, 0))),
                         ("ram", with_value("chain0.adaptation.S", np.nan))):
        path = tmp_path / "good.fk"
        path.write_bytes(made(arrays_in(file_of(case, None, tmp_path)), change))
        fk.load(path)


def test_statistics_are_those_of_the_first_part(tmp_path):
    """A statistic of a sampler in Python may have the name of one of another part."""
    class Negative(fk.PythonSampler):
        FIELDS = {"size": Field("anything", stat="step_size")}

        def start(self, x0):
            self.size = -1.0

        def propose(self, x, rng):
            return x + rng.standard_normal(self.d)

    path, sampler = tmp_path / "good.fk", fk.samplers.Scout(main=Negative(), scout="kam")
    fk.sample(runs_in_files.Density(), np.ones(2), sampler=sampler, search=False, draws=20, tune=5,
              chains=2, seed=1, progress=False, diagnose=False).save(path)
    assert (fk.load(path, sampler=sampler).stats["step_size"] == -1).all()


def test_a_compressed_file_takes_no_memory(tmp_path):
    """A file of some 100 kB whose arrays would take 100 MB."""
    path = tmp_path / "small.fk"
    arrays = arrays_in(file_of("ram", None, tmp_path))
    arrays["coords.more"] = np.zeros(10**8, np.uint8)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)
    assert path.stat().st_size < 200_000
    with pytest.raises(ValueError, match=r"small\.fk .* is compressed"):
        fk.load(path)


def test_a_file_that_asks_for_more_draws_than_there_is_memory_for(tmp_path):
    path = tmp_path / "large.fk"
    path.write_bytes(made(arrays_in(file_of("ram", None, tmp_path)),
                          in_header(("requested",), 10**14)))
    with pytest.raises(ValueError, match=r"large\.fk asks for .* 10+ draws"):
        fk.resume(path, target=runs_in_files.target_of("ram"))
    assert fk.resume(path, 5, target=runs_in_files.target_of("ram"),
                     diagnose=False).draws.shape[1] == 29


def test_a_file_with_an_endless_warm_up_is_refused(tmp_path):
    path = tmp_path / "long.fk"
    arrays = arrays_in(file_of("ram", 31, tmp_path))
    arrays["snapshot_steps"][-1] = 10**14
    path.write_bytes(made(arrays, in_header(("tune",), 10**14)))
    with pytest.raises(ValueError, match=r"long\.fk asks for .* 10+ states of warm-up"):
        fk.resume(path, 5, target=runs_in_files.target_of("ram"))


def test_the_last_snapshot_is_at_the_end_of_warm_up(tmp_path):
    """tune / 50 may be rounded up; a file that has it a step later is read as well."""
    kernel = runs_in_files.short("ram").build(np.ones(2))
    for tune in (*range(1, 400), 10**6 + 9):
        steps = snapshot_steps(kernel, tune)
        assert len(steps) == min(tune, 50)
        assert steps[-1] == tune
        assert (np.diff(steps, prepend=0) >= 1).all()
    path = tmp_path / "later.fk"
    arrays = arrays_in(file_of("ram", None, tmp_path))
    path.write_bytes(made(arrays, with_value("snapshot_steps", runs_in_files.TUNE + 1, -1)))
    assert len(fk.load(path).adaptation["step"]) == len(arrays["snapshot_steps"])


# ---- tables of fields ----


def tables(state):
    """The table of a state and those of its parts."""
    yield type(state).__name__, state.table()
    for part in state.parts().values():
        yield from tables(part)


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_integer_has_a_range(name):
    kernel = runs_in_files.short(name).build(np.ones(2))
    chain = ChainState(kernel, np.random.PCG64(1), np.ones(2), n_aux=1)
    for who, table in tables(chain):
        for field, row in table.items():
            if row.dtype.startswith("i"):
                assert row.permutation or row.least is not None, f"{who}.{field}"


def test_ranges():
    known = {"n": 3, "nothing": np.nan}

    def check(value, **columns):
        value = np.asarray(value)
        shape = ("n",) * value.ndim
        check_range("a", Field("a field", shape, value.dtype.str[1:], **columns), value, known)

    check([1, 2], least=1, most="n")
    check(np.nan)
    check([2, 0, 1], permutation=True)
    check(MOST_COUNT, least=0)
    for value, columns, says in [
        ([1, 4], {"most": "n"}, "a must be at most 3 .n., not 4 at index 1"),
        (3, {"below": "n"}, "below 3 .n., not 3"),
        (0.0, {"above": 0}, "above 0, not 0.0"),
        (np.nan, {"least": 0}, "at least 0, not nan"),
        (0.0, {"least": "nothing"}, "at least nan"),
        ([[0.0, np.inf]], {"finite": True}, r"finite, not inf at index \(0, 1\)"),
        ([0, 0], {"permutation": True}, "a permutation of 0 to 1"),
        (MOST_COUNT + 1, {"least": 0}, "at most 9007199254740992"),
    ]:
        with pytest.raises(BadField, match=says):
            check(value, **columns)


@pytest.mark.parametrize("name", BIT_GENERATORS)
def test_states_of_bit_generators(name):
    bits = getattr(np.random, name)(5)
    for _ in range(700):
        bits.random_raw()
        np.random.Generator(bits).integers(3, dtype=np.uint32)
        check_generator("g", name, bits.state)
    state = bits.state
    for key in [key for key in state if key != "state"]:
        for value in (-1, None, "x", 2**70):
            with pytest.raises(BadField, match=rf"g\.{key} must"):
                check_generator("g", name, state | {key: value})
    for key, value in state["state"].items():
        wrong = -1 if isinstance(value, int) else value[:-1]
        with pytest.raises(BadField, match=rf"g\.state\.{key} must"):
            check_generator("g", name, state | {"state": state["state"] | {key: wrong}})
    with pytest.raises(BadField, match="must have"):
        check_generator("g", name, {})


# ---- samplers of one's own ----


class Bounded(fk.PythonSampler):
    """A walk that counts, with ranges of its own."""

    FIELDS = {"n": Field("steps", dtype="i8", least=0),
              "late": Field("steps of them after the tenth", dtype="i8", least=0, most="n"),
              "last": Field("the last move", most=100, finite=True)}

    def start(self, x0):
        self.n, self.late, self.last = 0, 0, np.zeros(self.d)

    def propose(self, x, rng):
        self.n, self.late = self.n + 1, self.late + (self.n >= 10)
        self.last = rng.standard_normal(self.d)
        return x + self.last


@pytest.mark.parametrize(("field", "value", "says"), [
    ("late", 10**6, r"chain0\.kernel\.late must be at most 64 .n., not 1000000"),
    ("n", -1, r"chain0\.kernel\.n must be at least 0, not -1"),
    ("last", np.inf, r"chain0\.kernel\.last must be finite, not inf at index 0"),
    ("begun.late", -1, r"chain0\.kernel\.begun\.late must be at least 0, not -1"),
])
def test_ranges_of_a_sampler_in_python(tmp_path, field, value, says):
    path = tmp_path / "own.fk"
    fk.sample(runs_in_files.Plain(), np.ones(2), sampler=Bounded(), tune=40, draws=24, chains=1,
              seed=1, search=False, diagnose=False, checkpoint=path)
    assert fk.load(path).state.states[0]["kernel.late"] == 54
    path.write_bytes(made(arrays_in(path.read_bytes()), with_value(f"{KERNEL}.{field}", value)))
    with pytest.raises(ValueError, match=rf"own\.fk .*{says}"):
        fk.load(path)


class Unbounded(Bounded):
    """Its table names a size that there is not."""

    FIELDS = Bounded.FIELDS | {"late": Field("steps", dtype="i8", most="capacity")}


def test_a_bound_must_name_a_field():
    with pytest.raises(ValueError, match=r"Unbounded\.FIELDS bounds 'late' by 'capacity'"):
        fk.sample(runs_in_files.Plain(), np.ones(2), sampler=Unbounded(), seed=1, search=False)


def test_fields_may_have_the_names_of_a_steps_own_data(tmp_path):
    """Fields may have the names of the data that are stored of an unfinished step."""
    class Points(fk.PythonSampler):
        FIELDS = {"points": Field("a number"), "streams": Field("an array")}

        def start(self, x0):
            self.points, self.streams = 1.0, np.ones(3)

        def propose(self, x, rng):
            self.points += 1
            return x + rng.standard_normal(self.d)

    options = {"tune": 5, "chains": 1, "seed": 1, "search": False, "diagnose": False}
    path = tmp_path / "points.fk"
    target = runs_in_files.Plain()
    whole = fk.sample(target, np.ones(2), sampler=Points(), draws=20, **options)
    fk.sample(target, np.ones(2), sampler=Points(), draws=9, **options).save(path)
    again = fk.resume(path, 11, target=target, sampler=Points(), diagnose=False)
    np.testing.assert_array_equal(again.draws, whole.draws)
    header = json.loads(arrays_in(path.read_bytes())["header"].tobytes())
    assert header["sampler"]["class"].endswith("Points")


def test_draws_of_chains_without_a_state_are_refused():
    """No step has been made by them, so that even one draw is one too many."""
    state = fk.sample(lambda x: -0.5 * float(x @ x), np.zeros(2), sampler="ram", search=False,
                      draws=1, tune=0, chains=1, seed=1, diagnose=False).state
    check_counts(state)
    with pytest.raises(BadField, match="at most 0 for chain 0, which has made 0 steps, not 1"):
        check_counts(replace(state, states=[], generators=[]))
