#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bootstrap replicates by a job array: task k draws what was measured again with seed k, and its image
# tells how far noise moves each voxel. docs/guide/cluster.md
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
