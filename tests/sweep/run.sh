#!/bin/bash
# The jobs of docs/sweeps.md with the tools that they are for: its line of GNU parallel, conf/sweep/slurm.sh on a Slurm of one
# node that this script starts and ends, and conf/sweep/kubernetes.yaml in kubernetes-validate, which has the schemas of
# Kubernetes. Each real run is merged and compared with the undivided one. `make test-sweep` calls this with the program.
set -euo pipefail
cd "$(dirname "$0")/../.."
repository=$PWD
fabrics=48
work=$(mktemp -d)
pids=()

end() {
    [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap end EXIT

say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# Merges the results of a directory and compares them with the undivided run.
same() {
    holdfast sim merge "$1" >merged
    cmp merged whole || fail "$1 differs from the undivided run"
}

mkdir "$work/bin"
cp "${1:?the program}" "$work/bin/holdfast"
PATH=$work/bin:$PATH
cd "$work"
holdfast sim --random --count $fabrics --quiet >whole

say "GNU parallel"
line=$(grep -m1 '^seq .*| parallel ' "$repository/docs/sweeps.md")
eval "${line/100000/$fabrics}"
same results
rm results/shard-5-of-16.json
! holdfast sim merge results 2>missing || fail "a missing shard is not noticed"
grep -q '^error: 1 of 16 shards missing in results: 5; ' missing || fail "$(cat missing)"
eval "$(sed -n 's/^error: holdfast/holdfast/p' missing)"
same results

say "Slurm"
node=$(hostname -s)
cat >slurm.conf <<CONF
ClusterName=sweep
SlurmctldHost=$node(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 RealMemory=2048
PartitionName=sweep Nodes=ALL Default=YES
CONF
export SLURM_CONF=$work/slurm.conf
mkdir state spool
(umask 077 && head -c 128 /dev/urandom >munge.key)
munged --foreground --force --socket="$work/munge.socket" --key-file="$work/munge.key" --pid-file="$work/munged.pid" \
    --seed-file="$work/munge.seed" >munged.log 2>&1 &
pids+=($!)
slurmctld -D >slurmctld.log 2>&1 &
pids+=($!)
slurmd -D >slurmd.log 2>&1 &
pids+=($!)
for _ in $(seq 60); do
    [ "$(sinfo -h -o %t 2>/dev/null)" != idle ] || break
    sleep 0.5
done
export COUNT=$fabrics RESULTS=slurm
sbatch --test-only "$repository/conf/sweep/slurm.sh" || fail "$(tail -n 5 slurmctld.log slurmd.log)"
sbatch --wait "$repository/conf/sweep/slurm.sh"
same slurm
rm slurm/shard-3-of-16.json slurm/shard-7-of-16.json
sbatch --wait --array=3,7 "$repository/conf/sweep/slurm.sh"
same slurm

say "Kubernetes"
python3 -m venv venv
venv/bin/pip install --quiet kubernetes-validate==1.37.0
venv/bin/kubernetes-validate --strict "$repository/conf/sweep/kubernetes.yaml"
sed 's/completionMode/completionmode/' "$repository/conf/sweep/kubernetes.yaml" >wrong.yaml
! venv/bin/kubernetes-validate --strict wrong.yaml >/dev/null 2>&1 || fail "a wrong key is not noticed"

say "all passed"
