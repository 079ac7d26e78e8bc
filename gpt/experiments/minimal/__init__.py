"""Each part of a GPT in its shortest form: one module per lesson, printed in the lesson.

Each module reads from top to bottom and imports code from earlier lessons. Parameters have the same names as in
`gpt.model`, so they can load its weights. The tests run every module as printed and compare it with the model's code.
"""
