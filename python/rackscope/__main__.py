"""``python -m rackscope``."""

from rackscope.cli import main

raise SystemExit(main())
