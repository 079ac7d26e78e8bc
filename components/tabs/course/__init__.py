"""The Build tab: a course in which the learner writes a GPT; the page checks the program and opens it as a model."""
