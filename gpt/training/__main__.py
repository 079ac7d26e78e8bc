"""python -m gpt.training: the command line of `gpt.training`."""

from gpt.training import main

raise SystemExit(main())
