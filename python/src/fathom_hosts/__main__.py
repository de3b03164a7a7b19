"""Makes `python -m fathom_hosts` the same as `fathom-hosts`."""

import sys

from fathom_hosts.cli import main

sys.exit(main())
