import numpy as np
from numpy.typing import NDArray

def factorize(A: NDArray[np.float64], begin: int, end: int) -> int: ...
def first_asymmetric(A: NDArray[np.float64], begin: int, end: int) -> int: ...
def first_unfit(L: NDArray[np.float64], begin: int, end: int) -> int: ...
def update(
    L: NDArray[np.float64],
    v: NDArray[np.float64],
    a: NDArray[np.float64],
    s: NDArray[np.float64],
    which: NDArray[np.int64],
    out: NDArray[np.float64],
    begin: int,
    end: int,
) -> int: ...
def add_product(
    y: NDArray[np.float64],
    a: float,
    M: NDArray[np.float64],
    z: NDArray[np.float64],
    triangular: bool,
) -> None: ...
def transposed_product(
    u: NDArray[np.float64],
    a: float,
    M: NDArray[np.float64],
    g: NDArray[np.float64],
    triangular: bool,
) -> None: ...
def log_densities(
    x: NDArray[np.float64],
    mean: NDArray[np.float64],
    L: NDArray[np.float64],
    which: NDArray[np.int64],
    out: NDArray[np.float64],
    begin: int,
    end: int,
) -> None: ...
