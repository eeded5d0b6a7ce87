"""A multiprocessing pool with the start method given: pool.py fork|spawn|forkserver."""

import multiprocessing
import sys
import time


def work(number):
    time.sleep(0.01)
    return number * number


def main():
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(4) as pool:
        results = pool.map(work, range(20), chunksize=1)
        pool.close()
        pool.join()
    assert results == [number * number for number in range(20)]


if __name__ == "__main__":
    main()
