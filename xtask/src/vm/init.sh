#!/bin/sh
# First program of a virtual machine: runs the test programs named in RTRACE_TESTS, then turns it off.
# A line `-- NAME` precedes a program's output, a line `-- NAME ended with STATUS` follows it.
export PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
# Not over /tmp: this machine's clone or build folder may be below it.
mount -t tmpfs -o mode=1777 tmpfs /scratch
export TMPDIR=/scratch
mount -t securityfs securityfs /sys/kernel/security
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
if [ "$RTRACE_CGROUP" = 1 ]; then
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for controller in memory pids cpu; do
    mkdir "/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller" || rmdir "/sys/fs/cgroup/$controller"
  done
else
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
ip link set lo up 2>/dev/null
echo "-- kernel $(uname -r), control groups $RTRACE_CGROUP, $(nproc) CPUs, $(cut -d' ' -f1 /proc/uptime) s after its start"

. /etc/rtrace-tests
cd "$RTRACE_TESTS_FOLDER" || exit 1
"$RTRACE_BIN" record --quiet -o /scratch/verified.parquet -- true && "$RTRACE_BIN" report --json /scratch/verified.parquet \
  | grep -A 40 '"verified_instructions"' | sed -n '2,/}/s/^ *"\([a-z_]*\)": \([0-9]*\),*$/-- verified \1 \2/p'
for name in $(echo "$RTRACE_TESTS" | tr , ' '); do
  echo "-- $name"
  # Where a test uses up the host's memory, only the process that says so is to go.
  case $name in oom | hooks_matter) echo -1000 ;; *) echo 0 ;; esac > /proc/self/oom_score_adj
  # What is ignored elsewhere is what only a machine of its own may go through.
  "/tests/$name" --test-threads=1 --include-ignored
  echo "-- $name ended with $?"
done
echo "-- all done after $(cut -d' ' -f1 /proc/uptime) s"
echo o > /proc/sysrq-trigger
sleep 60
