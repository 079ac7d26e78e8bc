"""Each part of a GPT in its shortest form, one module per lesson, as the lessons print it.

A module reads from top to bottom and imports what earlier lessons wrote. Parameters have the names of `gpt.model`, so
its weights fit. The tests run every module as it is printed and compare it with the model's own code.
"""
