#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether every function of OpenGL, EGL and CUDA that the sources call has its stand-in.

usage: test_lists.py SOURCE_ROOT"""
import re, sys
from pathlib import Path

ROOT = Path(sys.argv[1])
# Questions for errors, which stand-ins answer or leave alone.
QUESTIONS = {"glGetError", "glGetGraphicsResetStatus", "eglGetError", "cudaGetErrorString"}
# Functions that kernels call, and a template of the headers over cudaLaunchKernelExC.
ON_THE_DEVICE = {"cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion", "cudaLaunchKernelEx"}


def called(pattern, *folders):
    """{name: file} of the functions called in these folders."""
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.c*")):
            text = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", "", path.read_text(), flags=re.S)
            for name in re.findall(pattern, text):
                found.setdefault(name, path.relative_to(ROOT))
    return found


def main():
    inject = ROOT / "tests" / "inject"
    gl, cuda = (inject / "fail_gl.c").read_text(), (inject / "fail_cuda.c").read_text()
    has = {f"gl{name}" for name in re.findall(r"\bCALL\((\w+)", gl)}
    has |= {f"gl{name}" for name in re.findall(r"VALUE\([\w *]+, ([A-Z]\w+), ", gl)}
    has |= set(re.findall(r"LINKED_CALL\((gl\w+)", gl))
    has |= set(re.findall(r"LINKED_VALUE\([\w *]+, (e?gl\w+)", gl))
    has |= set(re.findall(r"fails\(\"(e?gl\w+)\"\)", gl))
    wrapped = set(re.findall(r"\w*cuda[A-Z]\w+", (inject / "cuda_calls.cmake").read_text()))
    has |= wrapped & set(re.findall(r"(?:CALL\(|__wrap_)(\w*cuda[A-Z]\w+)", cuda))
    uses = called(r"\b(e?gl(?!X[A-Z])[A-Z]\w+)\s*\(", "src/gl", "src/gl", "src/correspondence", "src/operator",
                  "src/cuda_interop", "src/viewer")
    uses.update(called(r"\b(cuda[A-Z]\w+)\s*\(", "src/cuda_interop", "bench/fft"))
    lacking = {n: p for n, p in uses.items() if n not in has | QUESTIONS | ON_THE_DEVICE}
    for name, path in sorted(lacking.items()):
        print(f"{path}: {name} has no stand-in in {inject}")
    print(f"{len(uses)} functions are called, {len(lacking)} of them without a stand-in")
    sys.exit(1 if lacking or len(uses) < 100 else 0)


if __name__ == "__main__":
    main()
