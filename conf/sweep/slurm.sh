#!/bin/sh
# 100,000 random fabrics in 16 shards, as a job array of Slurm: docs/sweeps.md. Each task has its number in
# SLURM_ARRAY_TASK_ID and writes one file to `results`, below the directory in which sbatch is called.
#SBATCH --job-name=holdfast-sweep
#SBATCH --array=0-15
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --output=sweep-%a.log
exec holdfast sim --random --count "${COUNT:-100000}" --shard /16 --results "${RESULTS:-results}" --quiet
