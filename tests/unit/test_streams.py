"""Streams of random numbers of a run, each for one use."""

import numpy as np
from scipy import stats

import fastkam as fk
from fastkam.run.state import child
from fastkam.run.streams import Stream, generator_of, own_seed


def test_no_two_uses_have_the_same_stream():
    seed = np.random.SeedSequence(5)
    seed.spawn(3)
    seeds = [own_seed(seed, one, *more) for one in Stream for more in ((), (0,), (1,))]
    seeds += [child(seed, k) for k in range(10)]
    words = {tuple(one.generate_state(4).tolist()) for one in seeds}
    assert len(words) == len(seeds)
    assert len({int(one) for one in Stream}) == len(Stream)


def test_a_stream_depends_on_the_seed_alone_and_leaves_it():
    one, other = np.random.SeedSequence(5), np.random.SeedSequence(5)
    other.spawn(2)
    same = [generator_of(seed, Stream.VERDICT).random() for seed in (one, other)]
    assert same[0] == same[1]
    assert one.n_children_spawned == 0


def test_starts_from_the_prior_are_not_the_numbers_of_the_search(monkeypatch):
    """They were: children 0, 1, ... of the seed of the search are seeds of its generators."""
    seen = []
    draw = fk.Problem.sample_prior

    def recording(self, n, rng=None):
        seen.append(np.random.Generator(type(rng.bit_generator)(
            rng.bit_generator.seed_seq)).random())
        return draw(self, n, rng)

    monkeypatch.setattr(fk.Problem, "sample_prior", recording)
    fk.sample(lambda x: -0.5 * float(x @ x), prior={"x": (stats.norm(0, 1), 2)}, seed=3, draws=50,
              tune=50, search=False, sampler="ram")
    children = generator_of(np.random.SeedSequence(3), Stream.SEARCH).spawn(4)
    assert not set(seen) & {one.random() for one in children}
    assert len(seen) >= 4
