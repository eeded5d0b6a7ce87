"""multiprocessing.Pool of three workers: pool.py METHOD"""
import multiprocessing
import sys

from task import square

if __name__ == "__main__":
    with multiprocessing.get_context(sys.argv[1]).Pool(3) as pool:
        print(sum(pool.map(square, range(12), chunksize=1)))
        pool.close()
        pool.join()
