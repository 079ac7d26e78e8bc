"""Entry point of python -m gpt.course; see `gpt.course` for its commands."""

from gpt.course.command_line import main

raise SystemExit(main())
