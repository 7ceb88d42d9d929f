"""`python -m tabmux.cli`."""

import sys

from tabmux.cli import main

sys.exit(main())
