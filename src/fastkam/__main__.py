"""``python -m fastkam``: the command line."""

import sys

from fastkam.cli import main

sys.exit(main())
