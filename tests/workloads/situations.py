#!/usr/bin/env python3
"""Situations that findings are about, each with a twin without the defect.

    situations.py NAME bad|good [N]

N is a number of processes where that matters.
"""
import mmap
import os
import signal
import subprocess
import sys
import threading
import time

MIB = 1 << 20


def forked(work):
    """A child that does work and ends."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    return pid


def zombie(bad, n):
    pid = forked(lambda: None)
    if not bad:
        os.waitpid(pid, 0)
    time.sleep(0.9)
    if bad:
        os.waitpid(pid, 0)


def survivor(bad, n):
    forked(lambda: time.sleep(0.8))
    if not bad:
        os.wait()


def signalled(bad, n):
    number = signal.SIGSEGV if bad else 0
    os.waitpid(forked(lambda: os.kill(os.getpid(), number)), 0)


def threaded(bad, n):
    stop = threading.Event()
    extra = [threading.Thread(target=stop.wait) for _ in range(n)]
    children = []
    if not bad:
        children = [forked(lambda: time.sleep(0.1)) for _ in range(2)]
    for thread in extra:
        thread.start()
    if bad:
        children = [forked(lambda: time.sleep(0.1)) for _ in range(2)]
    for child in children:
        os.waitpid(child, 0)
    # Programs that are executed are no hazard.
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    stop.set()
    for thread in extra:
        thread.join()


def storm(bad, n):
    for _ in range(n if bad else n // 10):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ), 0)


def reserved(bad, n):
    size = (3 << 30) if bad else (200 << 20)
    kept = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
    children = [forked(lambda: time.sleep(0.2)) for _ in range(n)]
    for child in children:
        os.waitpid(child, 0)
    kept.close()


def shrinks(bad, n):
    def work():
        big = bytearray((300 if bad else 20) * MIB)
        del big
        os.execv("/bin/true", ["true"])

    os.waitpid(forked(work), 0)


def shares(bad, n):
    big = bytearray(150 * MIB)
    if not bad:
        del big

    def work():
        own = None if bad else bytearray(60 * MIB)
        time.sleep(0.5)
        del own

    for child in [forked(work) for _ in range(n)]:
        os.waitpid(child, 0)


def leaves(bad, n):
    name = "/dev/shm/rtrace-situation-%d" % os.getpid()
    with open(name, "wb") as file:
        file.write(b"x" * (40 * MIB))
    if not bad:
        os.unlink(name)
    else:
        print(name, flush=True)


def grows(bad, n):
    def work():
        kept = []
        for _ in range(40):
            task = bytearray(30 * MIB)
            if bad:
                kept.append(bytearray(5 * MIB))
            time.sleep(0.02)
            del task
            time.sleep(0.02)

    os.waitpid(forked(work), 0)


def namespace(bad, n):
    command = ["unshare", "--fork", "--pid"] if bad else ["unshare", "--fork", "--net"]
    subprocess.run([*command, "true"], check=True)


def client(bad, n):
    import shutil
    import tempfile

    folder = tempfile.mkdtemp()
    try:
        script = os.path.join(folder, "srun" if bad else "runs")
        with open(script, "w") as file:
            file.write("#!/bin/sh\nsleep 0.3\n")
        os.chmod(script, 0o755)
        subprocess.run([script, "-n", "4", "solver"], check=True)
    finally:
        shutil.rmtree(folder)


def main():
    name, quality = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    globals()[name](quality == "bad", count)


if __name__ == "__main__":
    main()
