"""Numbers too large for compiled code are refused, with the name of the argument."""

import numpy as np
import pytest

import fastkam as fk
from fastkam.arguments import check_integer, check_number, real_array


def density(x):
    raise AssertionError("the density was called")


@pytest.mark.parametrize("value", [2**48 + 1, 2**63, 10**400, 10**5000], ids=int.bit_length)
@pytest.mark.parametrize("name", ["chains", "draws", "tune", "thin", "threads"])
def test_of_a_run(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be at most \d+, not "):
        fk.sample(density, [0.0, 0.0], **{name: value})


def test_threads():
    for call in (lambda n: fk.sample(density, [0.0], threads=n),
                 lambda n: fk.linalg.mvn_logpdf([0.0], [0.0], [[1.0]], threads=n),
                 lambda n: fk.linalg.cholupdate([[1.0]], [0.0], threads=n),
                 lambda n: fk.CholeskyBank([[0.0]], [[[1.0]]]).lookup([0.0], threads=n)):
        with pytest.raises(ValueError, match="threads must be at most 65536, not 2147483648"):
            call(2**31)


def test_steps_in_all():
    with pytest.raises(ValueError, match=r"draws \* thin must be at most"):
        fk.sample(density, [0.0], draws=2**30, thin=2**30)


@pytest.mark.parametrize("make", [
    lambda n: fk.HMC(n_steps=n), lambda n: fk.ParallelTempering(swap_interval=n),
    lambda n: fk.NUTS(rank=n), lambda n: fk.ModeJumping(n_states=n),
    lambda n: fk.KernelAdaptiveMetropolis(history_size=n)])
def test_of_samplers(make):
    for value in (2**63, 10**5000):
        with pytest.raises(ValueError, match="must be at most"):
            make(value)


@pytest.mark.parametrize("value", [10**400, -(10**400), [1, 10**400], [[10**5000]]])
def test_of_arrays(value):
    with pytest.raises(ValueError, match="x must be finite"):
        real_array("x", value)
    with pytest.raises(ValueError, match="x0 must be finite"):
        fk.sample(density, np.full(2, 10**400, object))


def test_long_integers_are_shortened_in_messages():
    with pytest.raises(ValueError, match="n must be at least 0, not an integer of 5001 digits"):
        check_integer("n", -(10**5000), least=0)
    with pytest.raises(ValueError, match="c must be finite, not an integer of 5001 digits"):
        check_number("c", 10**5000)
    with pytest.raises(ValueError, match="not 1" + 29 * "0" + "$"):
        check_integer("n", 10**29, least=0)
