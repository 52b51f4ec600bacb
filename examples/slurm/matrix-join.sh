#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Joins the parts of a matrix from matrix.sh in one file. If a part is missing, the error names it.
#
#SBATCH --job-name=matrix-join
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
set -euo pipefail
loraster matrix join part-*.h5 -o "${OUT:-matrix.h5}"
