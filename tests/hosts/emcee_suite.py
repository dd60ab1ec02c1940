"""emcee's own tests, with the EnsembleSampler of fastkam: ``python tests/hosts/emcee_suite.py``.

They are those of the emcee that is installed. The tests of emcee's moves are left out: they give
the sampler moves of emcee. Further arguments are pytest's.
"""

import sys

import pytest

NOT_OURS = [f"{kind}/test_{name}.py" for kind, name in [
    ("integration", "de"), ("integration", "de_snooker"), ("integration", "gaussian"),
    ("integration", "kde"), ("integration", "stretch"), ("integration", "walk"),
    ("unit", "stretch")]]


def main(arguments):
    """Run them; pytest's exit code."""
    import emcee

    import fastkam.hosts.emcee as ours

    folder = emcee.__path__[0] + "/tests/"
    with ours.replacing():  # the tests import the name from emcee
        return pytest.main([folder, "-c", "/dev/null", "--rootdir", folder,
                            "-p", "no:cacheprovider",
                            *(f"--ignore={folder}{name}" for name in NOT_OURS), *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
