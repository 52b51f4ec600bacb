#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a system matrix by a job array. Each task makes one part of the rows, on one GPU or on processors. A task that
# was stopped continues from the rows that it had made. docs/guide/cluster.md
#
#   job=$(sbatch --parsable --array=1-16 matrix.sh)
#   sbatch --dependency=afterok:$job matrix-join.sh
#
#SBATCH --job-name=matrix
#SBATCH --array=1-16
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@60
#SBATCH --requeue
set -euo pipefail
scanner=${SCANNER:-siemens-vision-quadra} grid=${GRID:-150,150,265} voxel_mm=${VOXEL_MM:-4}
backend=${BACKEND:-auto} # all tasks need the same backend; name one if machines differ
file=part-$SLURM_ARRAY_TASK_ID.h5
if [ -e "$file" ]; then
    exit 0
fi
resume=()
if [ -e "$file.part-rows" ]; then
    resume=(--resume)
fi
loraster matrix --scanner "$scanner" --grid "$grid" --voxel-mm "$voxel_mm" --backend "$backend" \
    --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" "${resume[@]}" -o "$file"
