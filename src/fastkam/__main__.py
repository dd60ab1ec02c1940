"""``python -m fastkam``: the command line."""

import sys

from fastkam.cli.main import main

sys.exit(main())
