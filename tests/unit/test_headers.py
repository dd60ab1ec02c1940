"""The folder of the C interface that `get_include` names."""

from pathlib import Path

import fastkam as fk


def test_the_headers_are_there():
    folder = Path(fk.get_include())
    for name in ("target.h", "target.pxd"):
        assert "fk_target" in (folder / "fastkam" / name).read_text()
