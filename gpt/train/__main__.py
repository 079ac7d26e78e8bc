"""python -m gpt.train: the command line of `gpt.train`."""

from gpt.train import main

raise SystemExit(main())
