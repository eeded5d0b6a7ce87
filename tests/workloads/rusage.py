#!/usr/bin/python3
"""Runs a real program and prints what wait4 and /proc say of it, in the form of usage.c."""

import os
import sys
import time

pid = os.fork()
if pid == 0:
    program = "import json; text = json.dumps(list(range(300000))); print(len(json.loads(text)), file=open('/dev/null', 'w'))"
    os.execv(sys.executable, [sys.executable, "-c", program])
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
# It still runs to its last switch: only then the numbers are final.
time.sleep(0.05)
io = {}
try:
    with open(f"/proc/{pid}/io", encoding="ascii") as file:
        io = dict(line.split(": ") for line in file)
except FileNotFoundError:
    pass
_, _, used = os.wait4(pid, 0)
times = [round(seconds * 1e6) for seconds in (used.ru_utime, used.ru_stime)]
counts = [used.ru_minflt, used.ru_majflt, used.ru_nvcsw, used.ru_nivcsw]
counts += [int(io.get(name, -1)) for name in ("rchar", "wchar", "read_bytes", "write_bytes")]
print(pid, *times, *counts)
