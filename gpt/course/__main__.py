"""python -m gpt.course: see `gpt.course`."""

from gpt.course.command_line import main

raise SystemExit(main())
