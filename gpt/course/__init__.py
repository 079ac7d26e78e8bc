"""Build your own GPT: a course in fourteen steps that checks your code against the bundled model.

python -m gpt.course start my-gpt              write my-gpt/my_gpt.py, with gaps to fill, and a README
python -m gpt.course check my-gpt              check the steps in order and stop at the first failure
python -m gpt.course check my-gpt 7            check step 7 and the steps it builds on
python -m gpt.course watch my-gpt              check each time the file is saved
python -m gpt.course solution 7                show the solution of step 7
python -m gpt.course notebooks FOLDER          write the course as a notebook, one per language
"""
