"""Build your own GPT: a course in fourteen steps that checks the learner's program against the bundled model.

python -m gpt.course start my-gpt              write my-gpt/my_gpt.py with gaps, and a README
python -m gpt.course check my-gpt              check the steps in order, stopping at the first failure
python -m gpt.course check my-gpt 7            check step 7 and the steps it builds on
python -m gpt.course watch my-gpt              check whenever the file is saved
python -m gpt.course solution 7                show the solution to step 7
python -m gpt.course notebooks FOLDER          write the course as a notebook in each language
"""
