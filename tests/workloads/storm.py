#!/usr/bin/python3
"""A pool in a storm of forks that keeps its own record: storm.py LOG STOP, until the file STOP is there.

Each process writes two lines to LOG, each by one call: `born PID START PARENT`, where START is field 22 of
/proc/self/stat (ticks since boot) and PARENT is who called fork, and `ends PID START NS` just before its end (ns since
boot).
"""

import multiprocessing
import os
import sys
import threading
import time

LOG, STOP = sys.argv[1], sys.argv[2]
OUT = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def start():
    with open("/proc/self/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])


def say(*words):
    os.write(OUT, (" ".join(map(str, words)) + "\n").encode())


def born(parent):
    say("born", os.getpid(), start(), parent)


def ends():
    say("ends", os.getpid(), start(), time.clock_gettime_ns(time.CLOCK_BOOTTIME))


def forked(work):
    """Forks a child that works and ends; its pid."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        born(parent)
        work()
        ends()
        os._exit(0)
    return pid


def shortly():
    time.sleep(0.002)


def orphan():
    """Leaves a child behind that outlives its parent."""
    forked(lambda: time.sleep(0.01))


def from_a_thread():
    thread = threading.Thread(target=lambda: os.waitpid(forked(shortly), 0))
    thread.start()
    thread.join()


def task(number):
    os.waitpid(forked(shortly), 0)
    os.waitpid(forked(orphan), 0)
    if number % 4 == 0:
        from_a_thread()
    return os.getpid()


class Worker(multiprocessing.Process):
    """Works off tasks, then ends and is followed by another one."""

    def __init__(self):
        super().__init__()
        self.creator = os.getpid()

    def run(self):
        born(self.creator)
        for number in range(8):
            task(number)
        ends()


def main():
    multiprocessing.set_start_method("fork")
    born(os.getppid())
    workers = []
    while not os.path.exists(STOP):
        workers = [worker for worker in workers if worker.is_alive()]
        while len(workers) < 4:
            worker = Worker()
            worker.start()
            workers.append(worker)
        os.waitpid(forked(shortly), 0)
    for worker in workers:
        worker.join()
    ends()


main()
