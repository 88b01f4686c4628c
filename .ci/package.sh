#!/usr/bin/env bash
# Build the wheel and the source archive, and use the wheel as somebody who has just installed it:
# without extras, where the command names the one it needs, then with the command.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m build --no-isolation --outdir "$work/dist" > "$work/build.txt" 2>&1 ||
  { tail -n 40 "$work/build.txt"; exit 1; }
"$python" -m twine check --strict "$work"/dist/*
# What is in the archives, and that nothing else is.
"$python" .ci/archives.py "$work"/dist
"$python" -m venv "$work/bare"
bare=$work/bare/bin
wheel=$(echo "$work"/dist/*.whl)
"$bare/python" -m pip install --quiet --disable-pip-version-check --no-compile "$wheel"
mkdir "$work/empty"
cd "$work/empty"
unset PYTHONPATH MANIFOLDRY_DATA
"$bare/python" - <<'PYTHON'
import numpy as np
import manifoldry
X = np.random.default_rng(0).normal(size=(60, 4))
model = manifoldry.LaplacianEigenmaps(n_neighbors=8).fit(X)
same = manifoldry.load(manifoldry.save(model, "bare.model"))
assert np.array_equal(same.transform(X[:5] + 0.01), model.transform(X[:5] + 0.01))
PYTHON
rm bare.model
code=0
message=$("$bare/manifoldry" demo 2>&1) || code=$?
if [ "$code" != 1 ] || [ "$(echo "$message" | wc -l)" != 1 ] ||
  [[ "$message" != *"pip install 'manifoldry[cli]'"* ]]; then
  echo "without extras, the command printed (exit code $code): $message"; exit 1
fi
"$bare/python" -m pip install --quiet --disable-pip-version-check --no-compile "$wheel[cli]"
"$bare/manifoldry" demo --method pca --quiet  # t-SNE takes no other way through the command
for file in digits-pca.csv digits-pca.png digits-pca.model digits-pca.run.toml; do
  [ -s "$file" ] || { echo "manifoldry demo has not written $file"; exit 1; }
done
echo "wheel and source archive: built, installed without extras and with the command"
