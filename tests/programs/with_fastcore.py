"""fastcore's parallel with three workers: with_fastcore.py PAUSE"""
import sys

from fastcore.parallel import parallel

from task import square

if __name__ == "__main__":
    print(sum(parallel(square, range(12), n_workers=3, progress=False, pause=float(sys.argv[1]))))
