"""The shortest form of each part of a GPT, with one module per lesson. The lessons print these modules.

Each module reads from top to bottom and imports the code of earlier lessons. Parameters have the same names as in
`gpt.model`, so its weights fit. The tests run every module as printed and compare it with the model's own code.
"""
