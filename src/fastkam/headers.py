"""The folder with the headers of the C interface."""

from pathlib import Path


def get_include() -> str:
    """The folder with ``fastkam/target.h`` and ``fastkam/target.pxd``, for C and for Cython.

    ``cython -I`` and the C compiler's ``-I`` take the same folder, whichever way fastkam is
    installed.
    """
    return str(Path(__file__).parent / "include")
