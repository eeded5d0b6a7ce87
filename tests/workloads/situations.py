#!/usr/bin/env python3
"""Situations that findings are about, each with a twin without the defect.

    situations.py NAME bad|good [N]

N is a number of processes where that matters.
"""
import mmap
import multiprocessing
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


def pool(n, method="fork", **options):
    return multiprocessing.get_context(method).Pool(n, **options)


def executor(n, method="fork"):
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(n, mp_context=multiprocessing.get_context(method))


def rest(seconds):
    time.sleep(seconds)
    return seconds


def die(seconds):
    time.sleep(seconds)
    os.kill(os.getpid(), signal.SIGKILL)


def dies(bad, n):
    workers = pool(n)
    lost = workers.apply_async(die if bad else rest, (0.05,))
    lost.wait(1.2 if bad else None)
    workers.close()
    if bad:
        workers.terminate()
    workers.join()


def recycles(bad, n):
    with pool(n, maxtasksperchild=2 if bad else None) as workers:
        workers.map(rest, [0.03] * (n * 6), chunksize=1)
        workers.close()
        workers.join()


def idles(bad, n):
    with pool(n) as workers:
        workers.map(rest, [0.3] * (1 if bad else n), chunksize=1)
        workers.close()
        workers.join()


def owned(bad, n, end):
    """A process that owns workers, and ends without or with its pool's shutdown."""
    import pickle

    read, write = os.pipe()
    owner = os.fork()
    if owner == 0:
        workers = executor(n)
        list(workers.map(rest, [0.05] * n))
        os.write(write, pickle.dumps(list(workers._processes)))
        if not bad:
            workers.shutdown()
            os._exit(0)
        end()
    pids = pickle.loads(os.read(read, 4096))
    os.waitpid(owner, 0)
    time.sleep(0.7)
    for pid in pids if bad else []:
        os.kill(pid, signal.SIGTERM)
    time.sleep(0.1)


def orphans(bad, n):
    owned(bad, n, lambda: os.kill(os.getpid(), signal.SIGKILL))


def leftover(bad, n):
    owned(bad, n, lambda: os._exit(0))


def breaks(bad, n):
    with executor(n) as workers:
        list(workers.map(rest, [0.05] * n))
        try:
            workers.submit(die if bad else rest, 0.1).result()
        except Exception as error:
            print(error)


def locked(bad, n):
    lock = threading.Lock()
    held, release = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            release.wait(9)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    if not bad:
        release.set()
        thread.join()
    child = forked(lock.acquire)
    time.sleep(0.7)
    if bad:
        os.kill(child, signal.SIGKILL)
        release.set()
        thread.join()
    os.waitpid(child, 0)


def stops(bad, n):
    child = forked(lambda: time.sleep(0.4))
    if bad:
        os.kill(child, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(child, signal.SIGCONT)
    os.waitpid(child, 0)


def sessions(bad, n):
    subprocess.run(["sleep", "0.1"], check=True, start_new_session=bad)


def missing(bad, n):
    try:
        subprocess.run(["/usr/bin/no-such-program" if bad else "true"], check=True)
    except FileNotFoundError as error:
        print(error)


def refused(bad, n):
    """As somebody else, since no limit of processes holds for root."""
    import resource

    def work():
        if bad:
            resource.setrlimit(resource.RLIMIT_NPROC, (n, n))
        os.setgid(54322)
        os.setuid(54322)
        for _ in range(2 * n):
            try:
                forked(lambda: time.sleep(0.2))
            except BlockingIOError:
                pass

    os.waitpid(forked(work), 0)
    time.sleep(0.4)


def main_waits(bad, n):
    process = multiprocessing.get_context("fork").Process(target=rest, args=(1.5 if bad else 0.2,))
    process.start()
    time.sleep(0.3)


def asleep(bad, n):
    read, write = os.pipe()

    def wait():
        os.read(read, 1)

    children = [forked(wait) for _ in range(n)]

    def give():
        time.sleep(0.2)
        if bad:
            # Nobody of the tree can go on: the helper that will is asleep too, and then stopped.
            os.kill(children[0], signal.SIGSTOP)
            time.sleep(1.4)
            os.kill(children[0], signal.SIGCONT)
        os.write(write, b"x" * n)

    helper = forked(give)
    for child in [*children, helper]:
        os.waitpid(child, 0)


def core(bad, n):
    """A process that may not be dumped writes no core, whoever would take it."""
    import ctypes
    import resource
    import tempfile

    def work():
        os.chdir(folder)
        if bad:
            highest = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (highest, highest))
        else:
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
        os.abort()

    with tempfile.TemporaryDirectory() as folder:
        os.waitpid(forked(work), 0)


def pid_again(bad, n):
    def child():
        pid = forked(lambda: None)
        os.waitpid(pid, 0)
        return pid

    first = child()
    for _ in range(1000):
        if bad:
            with open("/proc/sys/kernel/ns_last_pid", "w") as last:
                last.write(str(first - 1))
        if not bad or child() == first:
            break
    else:
        sys.exit("the pid wasn't handed out again")
    if not bad:
        child()


def limited(limit):
    """The tasks file of a new memory group with a limit."""
    name = "/rtrace-situation-%d" % os.getpid()
    old, new = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"
    if os.path.isdir(old):
        folder, file = old + name, "memory.limit_in_bytes"
    else:
        folder, file = new + name, "memory.max"
    os.mkdir(folder)
    with open(os.path.join(folder, file), "w") as out:
        out.write(str(limit))
    return folder


def too_large(bad, n):
    folder = limited(100 * MIB)

    def work():
        with open(folder + "/cgroup.procs", "w") as out:
            out.write(str(os.getpid()))
        bytearray(b"x") * ((500 if bad else 20) * MIB)

    try:
        os.waitpid(forked(work), 0)
    finally:
        for _ in range(100):
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.02)


def spins(bad, n):
    flag = threading.Event()
    thread = threading.Thread(target=flag.wait)
    thread.start()
    until = time.monotonic() + (60 if bad else 0.3)

    def work():
        while time.monotonic() < until:
            pass

    child = forked(work)
    time.sleep(1.5)
    if bad:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    flag.set()
    thread.join()


def pooled(bad, n):
    if bad:
        with pool(n) as workers:
            workers.map(rest, [0.05] * n, chunksize=1)
            workers.close()
            workers.join()
    else:
        for _ in range(n):
            os.waitpid(forked(lambda: rest(0.05)), 0)


def burn(seconds):
    """Uses so much CPU time, however long that takes."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def crowded(bad, n):
    workers = n if bad else 1
    with pool(workers) as crew:
        crew.map(burn, [1.6 / workers] * workers, chunksize=1)
        crew.close()
        crew.join()


def large_forks(bad, n):
    """A process of 640 MiB in small pages makes copies of itself, or starts programs without one."""
    kept = mmap.mmap(-1, 640 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        # Without huge pages, whatever is usual here.
        kept.madvise(15)
    except OSError:
        pass
    for place in range(0, len(kept), mmap.PAGESIZE):
        kept[place] = 1
    for _ in range(n):
        if bad:
            child = forked(lambda: None)
        else:
            child = os.posix_spawn("/bin/true", ["true"], os.environ)
        os.waitpid(child, 0)


def main():
    name, quality = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    globals()[name](quality == "bad", count)


if __name__ == "__main__":
    main()
