#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that every C file and every shader is formatted as .clang-format says; --fix formats them.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(--dry-run -Werror)
[ "${1:-}" = --fix ] && mode=(-i)
{
    find src bench tests shaders \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) -print0
    find shaders \( -name '*.glsl' -o -name '*.comp' -o -name '*.vert' -o -name '*.frag' \) -print0
} | xargs -0 clang-format --style=file "${mode[@]}"
