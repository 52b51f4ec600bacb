#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The parts that matrix.sh has made, joined to one file; a part that is missing is named.
#
#SBATCH --job-name=matrix-join
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
set -euo pipefail
loraster matrix join part-*.h5 -o "${OUT:-matrix.h5}"
