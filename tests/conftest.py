"""The environment's own commands (meson, cython, fastkam) are found though it is not activated."""

import os
import sys
from pathlib import Path

os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
