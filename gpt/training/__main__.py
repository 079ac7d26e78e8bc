"""python -m gpt.training: see `gpt.training.command_line`."""

from gpt.training.command_line import main

raise SystemExit(main())
