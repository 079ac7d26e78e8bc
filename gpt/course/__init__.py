"""Build your own GPT: a course in fourteen steps that checks the learner's program against the bundled model.

python -m gpt.course start my-gpt              my-gpt/my_gpt.py with gaps, and a README
python -m gpt.course check my-gpt              check the steps in order, up to the first that fails
python -m gpt.course check my-gpt 7            a step, with the steps it builds on
python -m gpt.course watch my-gpt              check whenever the file is saved
python -m gpt.course solution 7                one solution
python -m gpt.course notebooks FOLDER          the course as a notebook in each language
"""
