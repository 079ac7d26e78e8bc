#!/usr/bin/env bash
# tokenizers 0.23.3: `Regex`, in a normalizer or a pre-tokenizer, with patterns that were tried out in Python.
# Expected: the meaning that they have in Python's re and regex, and in Rust: `^` is the beginning of the text, and (?m)
# lets it match at each line.
# Seen: Ruby's, without a setting: `^` and `$` match at each line ("\A" only at the beginning), so Replace("^ +", "")
# removes the indentation of a whole program; (?m:.) matches newlines, which Python calls (?s:.); (?i:ss) matches "ß";
# `&&` in brackets is an intersection, and \h a hexadecimal digit instead of a space. All are accepted in both.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet tokenizers==0.23.3 regex==2026.11.19
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import regex
from tokenizers import Regex, normalizers

for pattern, text, seen in (
    (r"^ +", "  def f():\n      return 1", "def f():\nreturn 1"),
    (r"\A +", "  def f():\n      return 1", "def f():\n      return 1"),
    (r"\.$", "One.\nTwo.", "One\nTwo"),
    (r"(?m:a.)", "ab a\n", " "),
    (r"(?i:ss)", "Straße", "Strae"),
    (r"[a-z&&[^b]]", "abc&", "b&"),
    (r"\h", "a b c g", "   g"),
):
    python = regex.sub(pattern, "", text)
    found = normalizers.Replace(Regex(pattern), "").normalize_str(text)
    print(f"{pattern:14} on {text!r}: Python {python!r}, tokenizers {found!r}")
    assert found == seen
    assert (python == seen) == (pattern == r"\A +")
PYTHON
