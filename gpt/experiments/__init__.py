"""Small experiments of the curriculum: functions that return frozen dataclasses of numbers and tensors."""
