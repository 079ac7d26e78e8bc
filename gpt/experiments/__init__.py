"""Small experiments for the lessons: functions that return frozen dataclasses of numbers and tensors."""
