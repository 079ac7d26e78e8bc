"""The Lessons tab: short lessons on all parts of a GPT, with interactive figures, code and questions."""
