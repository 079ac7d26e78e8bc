#!/usr/bin/env bash
# safetensors 0.8.0, numpy 2.4.6: arrays that are views of another array, such as a transposed matrix or three columns
# of it, saved with `safetensors.numpy.save_file`.
# Expected: the values of the array, as version 0.7.0 wrote them; or an error, as from `safetensors.torch`.
# Seen: the shape of the view, with the bytes from the view's start on in the order of the memory: a transposed matrix
# is read back as another one, and a part of its columns contains numbers of columns that are not part of it. No
# warning. Reported as issue 825 of safetensors/safetensors, for arrays in Fortran order.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet safetensors==0.8.0 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
import sys

import numpy
from safetensors.numpy import load_file, save_file

weight = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)
views = {"copy": weight.T.copy(), "transposed": weight.T, "columns 1 to 3": weight[:, 1:4]}
for name, view in views.items():
    save_file({"weight": view}, "view.safetensors")
    found = load_file("view.safetensors")["weight"]
    print(f"{name}: first row {view[0].tolist()} is read as {found[0].tolist()}, second as {found[1].tolist()}")
    assert found.shape == view.shape
    assert numpy.array_equal(found, view) == (sys.argv[1] == "0.7.0" or name == "copy")
assert sys.argv[1] == "0.7.0" or found[1].tolist() == [4, 5, 6]  # 4 and 5 are in columns 4 and 5
PYTHON
"$folder/env/bin/python" try.py 0.8.0
"$folder/env/bin/pip" install --quiet safetensors==0.7.0
"$folder/env/bin/python" try.py 0.7.0
