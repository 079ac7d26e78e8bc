"""The Lessons tab: short lessons on all parts of a GPT, each with an interactive figure, code and questions."""
