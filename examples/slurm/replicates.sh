#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reconstructs bootstrap replicates by a job array. Task k draws the measured events again with seed k. The images of
# all tasks show how noise changes each voxel. docs/guide/cluster.md
#
#SBATCH --job-name=replicates
#SBATCH --array=1-100
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --time=01:00:00
set -euo pipefail
scanner=${SCANNER:-siemens-vision-quadra} events=${EVENTS:-scan.petsird}
grid=${GRID:-150,150,265} voxel_mm=${VOXEL_MM:-4}
loraster recon --operator listmode --scanner "$scanner" --events "$events" --grid "$grid" \
    --voxel-mm "$voxel_mm" --algorithm osem --subsets "${SUBSETS:-20}" \
    --bootstrap "$SLURM_ARRAY_TASK_ID" -o "replicate-$SLURM_ARRAY_TASK_ID.nii.gz"
