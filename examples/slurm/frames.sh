#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reconstructs the frames of a dynamic scan by a job array. Each task reconstructs some of the frames. Images have the
# number of the frame in their name, as with a single run: dynamic-1.nii.gz, dynamic-2.nii.gz ... docs/guide/cluster.md
#
#SBATCH --job-name=frames
#SBATCH --array=1-8
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-task=1
#SBATCH --ntasks=1
#SBATCH --time=02:00:00
set -euo pipefail
scanner=${SCANNER:-united-imaging-uexplorer} events=${EVENTS:-scan.petsird}
grid=${GRID:-150,150,485} voxel_mm=${VOXEL_MM:-4} frames=${FRAMES:-12x10,12x60,9x300}
loraster recon --operator listmode --scanner "$scanner" --events "$events" --grid "$grid" \
    --voxel-mm "$voxel_mm" --algorithm osem --subsets "${SUBSETS:-20}" --frames "$frames" \
    --part "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" -o "${OUT:-dynamic.nii.gz}"
