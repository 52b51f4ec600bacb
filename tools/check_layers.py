#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that src/, bench/ and python/ keep to the table of src/README.md: who includes whom, file and function
length, SPDX lines. Prints one line per violation; exit code 1 when there is any.

usage: check_layers.py [ROOT]      ROOT holds them, default: the folder above this script
"""
import re
import sys
from pathlib import Path

# Folder: what its files may include besides lr/, base/ and their own folder. A whole folder, without those in it that
# have a line of their own, or one header. The same as the third column of src/README.md, which is compared.
MAY_INCLUDE = {
    "lr": [],
    "base": [],
    "model": [],
    "io": ["model/", "plugin/plugin.h"],
    "hdf5_writer": ["io/files/hdf5_file.h", "plugin/plugin.h"],
    "hdf5_reader": ["io/files/hdf5_request.h"],
    "picture": ["model/"],
    "direct": ["model/", "operator/backend.h"],
    "direct/cpu": ["model/", "direct/", "operator/backend.h"],
    "direct/compute": ["model/", "gl/", "direct/", "device/", "operator/backend.h"],
    "listmode": ["model/", "operator/backend.h"],
    "listmode/cpu": ["model/", "listmode/", "correspondence/cpu/elements.h", "operator/backend.h"],
    "listmode/native": ["model/", "listmode/", "correspondence/native/kernels.h", "operator/backend.h"],
    "listmode/compute": ["model/", "gl/", "listmode/", "device/", "operator/backend.h"],
    "correspondence": ["model/", "gl/", "device/", "operator/backend.h"],
    "correspondence/cpu": ["model/", "operator/backend.h"],
    "correspondence/native": ["model/", "operator/backend.h"],
    "gl": ["device/"],
    "plugin": ["direct/backend.h", "listmode/backend.h", "operator/backend.h", "device/kinds.h", "gl/context.h"],
    "device": ["plugin/plugin.h"],
    "cuda_interop": ["model/", "gl/", "direct/", "listmode/", "device/", "direct/compute/direct.h", "plugin/plugin.h"],
    "operator": ["model/", "direct/", "listmode/", "device/", "plugin/plugin.h"],
    "dist": ["device/", "plugin/plugin.h"],
    "recon": ["model/lors/place.h", "operator/updates.h", "device/vector.h", "dist/weights.h"],
    "viewer": ["plugin/plugin.h", "model/", "gl/", "picture/", "io/sessions/session.h", "io/files/file_kind.h", "io/files/keyed_text.h", "io/files/output.h", "io/files/regular_file.h"],
    "cli": ["viewer/view.h", "base/hash.h", "base/parallel.h", "base/path.h", "plugin/plugin.h"],
    "bench": ["fft/fft.h", "cli/cluster.h", "cli/common.h", "cli/direct.h", "cli/stop.h", "cli/verbs.h"],
    "fft": [],
    "python": [],
}
# These see nothing of base/.
WITHOUT_BASE = ["lr", "cli", "bench", "hdf5_reader", "python"]
# Folders elsewhere than in src/.
ELSEWHERE = {"bench": "bench", "fft": "bench/fft", "python": "python/src"}
# Heads shared between C and shaders.
SHADER_HEADS = {"kernels/vector.glsl": ["device"],
                **dict.fromkeys(["kernels/numbers.glsl", "kernels/faces.glsl", "kernels/exact_path.glsl",
                                 "kernels/exact_time.glsl"], ["cuda_interop"]),
                "kernels/language.glsl": ["cuda_interop"],
                "kernels/times.glsl": ["listmode/native", "cuda_interop"],
                "common/bindings.h": ["gl", "device", "correspondence", "direct/compute", "listmode/compute",
                                      "cuda_interop"]}
# System headers that belong to few folders.
SYSTEM = {
    r"GL/.*": ["gl", "correspondence", "direct/compute", "listmode/compute", "cuda_interop", "viewer"],
    r"cuda.*\.h": ["cuda_interop", "fft"],
    r"cufft.*\.h": ["fft"],
    r"EGL/.*": ["gl"],
    r"GLFW/.*": ["viewer"],
    r"cglm/.*": ["viewer"],
    r"ft2build\.h": ["picture"],
    r"fftw3\.h": ["fft"],
    r"mpi(-ext)?\.h": ["dist"],
    r"lapacke\.h": ["dist"],
    r"hdf5\.h": ["hdf5_writer", "hdf5_reader"],
    r"libfyaml\.h": ["io"],
    r"png\.h": ["io"],
    r"zlib\.h": ["io"],
    r"Random123/.*": ["model"],
    r"pthread\.h": ["base", "gl", "operator", "viewer"],
    r"threads\.h": ["bench"],  # neither the thread sanitizer nor tests/inject sees the threads it starts
}
OPENS_FILES = re.compile(r"\b(fopen|freopen|opendir|mkstemp)\s*\(")
MAY_OPEN_FILES = ["base", "io", "hdf5_reader", "gl", "cli", "bench"]
MAX_FILE_LINES = 1200
MAX_FUNCTION_LINES = 120
OTHER_SOURCES = [
    ("tests", "*.[ch]"), ("tests", "*.py"), ("tests", "CMakeLists.txt"), ("shaders", "*.*"),
    ("tools", "*.py"), ("tools", "*.sh"), ("cmake", "*.cmake"), ("python", "*.py*"), ("python", "CMakeLists.txt"),
]
SPDX = "SPDX-License-Identifier: Apache-2.0"
COPYRIGHT = "Copyright The LORaster authors"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def strip_comments(text):
    """Comments become blanks, so that line numbers stay."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.DOTALL)


def includes(text):
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(2)) + 1, match.group(1), match.group(2)


def check_system(folder, name):
    for pattern, folders in SYSTEM.items():
        if re.fullmatch(pattern, name) and folder not in folders:
            where = ", ".join(f + "/" for f in folders) or "no folder yet"
            return f"<{name}> belongs to {where}"
    return None


def known_folder(parts):
    """The longest path of MAY_INCLUDE that the parts begin with; the first part where there is none."""
    for count in range(len(parts), 0, -1):
        if "/".join(parts[:count]) in MAY_INCLUDE:
            return "/".join(parts[:count])
    return parts[0] if parts else ""


def check_quoted(folder, name):
    target = known_folder(name.split("/")[:-1]) if "/" in name else folder
    if name in SHADER_HEADS:
        return None if folder in SHADER_HEADS[name] else f'"{name}" is for {SHADER_HEADS[name]}'
    if folder in ("cli", "bench", "python"):
        good = "/" not in name or name in MAY_INCLUDE[folder] or folder == target
        return None if good else f"{folder}/ sees <lr/...> and its own headers only"
    if folder == "lr":
        return "lr/ includes its own headers as <lr/...>"
    if target not in MAY_INCLUDE:
        return f'"{name}" is in no known folder'
    if target in (folder, "lr") or (target == "base" and folder not in WITHOUT_BASE):
        return None
    allowed = MAY_INCLUDE[folder]
    if f"{target}/" in allowed or name in allowed:
        return None
    return f'{folder}/ may not include "{name}"'


def check_includes(folder, text):
    for line, bracket, name in includes(text):
        if bracket == '"' or name.split("/")[0] in MAY_INCLUDE and name.split("/")[0] != "lr":
            problem = check_quoted(folder, name)
        else:
            problem = check_system(folder, name)
        if problem:
            yield line, problem


def check_functions(text):
    """A body stands between a brace and the next closing brace, both at the start of a line."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip() == "{":
            start = number
        elif line.startswith("}") and start is not None:
            if number - start - 1 > MAX_FUNCTION_LINES:
                yield start, (f"function of {number - start - 1} lines: split it, "
                              f"{MAX_FUNCTION_LINES} are allowed")
            start = None


def folder_of(root, path):
    """As the table calls it."""
    parts = path.relative_to(root).parts[:-1]
    if parts[0] == "src":
        return known_folder(parts[1:])
    return next((folder for folder, where in ELSEWHERE.items() if "/".join(parts) == where), parts[-1])


def check_file(root, path):
    folder = folder_of(root, path)
    raw = path.read_text()
    lines = raw.split("\n")
    if SPDX not in lines[0] or COPYRIGHT not in (lines[1] if len(lines) > 1 else ""):
        yield 1, f"the file must start with '{SPDX}' and '{COPYRIGHT}'"
    if len(lines) - 1 >= MAX_FILE_LINES:
        yield len(lines) - 1, f"file of {len(lines) - 1} lines: fewer than {MAX_FILE_LINES} are allowed"
    text = strip_comments(raw)
    yield from check_includes(folder, text)
    yield from check_functions(text)
    if folder not in MAY_OPEN_FILES:
        for match in OPENS_FILES.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield line, f"{folder}/ may not open files ({match.group(1)})"


def check_readme(root):
    """The table's rows must name these folders and allow the same."""
    readme = root / "src" / "README.md"
    if not readme.exists():
        yield "src/README.md is missing"
        return
    rows = {}
    for line in readme.read_text().split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"`[\w/]+/`", cells[0]):
            allowed = re.findall(r"`([\w./]+)`", cells[2])
            rows[cells[0].strip("`").rstrip("/")] = allowed
    for folder, allowed in MAY_INCLUDE.items():
        said = [name for name in rows.get(folder, []) if name not in ("lr/", "backend.h")]
        if folder not in rows:
            yield f"src/README.md: no row for {folder}/"
        elif sorted(said) != sorted(allowed):
            yield f"src/README.md allows {folder}/ {said}, check_layers.py {allowed}"
    for folder in set(rows) - set(MAY_INCLUDE):
        yield f"check_layers.py does not know {folder}/ of src/README.md"


def check_licences(root):
    """Outside src/ the licence line alone is asked for, within the first three lines."""
    for folder, pattern in OTHER_SOURCES:
        for path in sorted(path for path in (root / folder).rglob(pattern) if "__pycache__" not in path.parts):
            if SPDX not in "\n".join(path.read_text().split("\n")[:3]):
                yield f"{path.relative_to(root)}:1: the licence line '{SPDX}' is missing"


def check(root):
    violations = list(check_readme(root)) + list(check_licences(root))
    files = sorted(p for top in ("src", "bench", "python") for p in (root / top).rglob("*")
                   if p.suffix in (".c", ".h", ".cu", ".cuh") or (p.suffix == ".cpp" and top == "python"))
    for path in files:
        if folder_of(root, path) not in MAY_INCLUDE:
            violations.append(f"{path.relative_to(root)}: a folder that src/README.md lacks")
            continue
        violations += [f"{path.relative_to(root)}:{line}: {problem}"
                       for line, problem in check_file(root, path)]
    return files, violations


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    files, violations = check(root)
    for violation in violations:
        print(violation)
    print(f"{len(files)} files, {len(violations)} violations")
    return 1 if violations or not files else 0


if __name__ == "__main__":
    sys.exit(main())
