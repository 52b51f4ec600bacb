#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reconstructs one image on many GPUs by MPI, with one GPU for each rank and the same result as with one process. A job
# that was stopped continues from its last checkpoint, with any number of ranks. docs/guide/cluster.md
#
# Without Slurm: mpirun --oversubscribe --bind-to none -n 4 loraster recon ... with the same options.
#
#SBATCH --job-name=recon
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
#SBATCH --requeue
set -euo pipefail
scanner=${SCANNER:-united-imaging-uexplorer} events=${EVENTS:-scan.petsird}
grid=${GRID:-300,300,970} voxel_mm=${VOXEL_MM:-2} checkpoint=${CHECKPOINT:-recon.checkpoint}
resume=()
if [ -e "$checkpoint" ]; then
    resume=(--resume)
fi
srun --mpi="${MPI:-pmix}" loraster recon --operator listmode --scanner "$scanner" --events "$events" \
    --grid "$grid" --voxel-mm "$voxel_mm" --algorithm osem --subsets "${SUBSETS:-20}" \
    --combine "${COMBINE:-exact}" --checkpoint "$checkpoint" "${resume[@]}" -o "${OUT:-image.nii.gz}"
