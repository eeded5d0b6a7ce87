"""An executor of concurrent.futures of three workers: executor.py METHOD|threads"""
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

from task import square


def executor(method):
    if method == "threads":
        return ThreadPoolExecutor(3)
    return ProcessPoolExecutor(3, mp_context=multiprocessing.get_context(method))


if __name__ == "__main__":
    with executor(sys.argv[1]) as workers:
        print(sum(workers.map(square, range(12))))
