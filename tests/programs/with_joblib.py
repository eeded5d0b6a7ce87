"""joblib with three workers: with_joblib.py BACKEND TASKS"""
import os
import sys

# numpy may be there or not, and brings descriptors of its own, and threads in whoever imports it, which the tracker of
# resources does too: the report is to be the same.
sys.modules["numpy"] = None
os.environ["OPENBLAS_NUM_THREADS"] = "1"
from joblib import Parallel, delayed  # noqa: E402

from task import square

if __name__ == "__main__":
    parallel = Parallel(n_jobs=3, backend=sys.argv[1], batch_size=1)
    print(sum(parallel(delayed(square)(n) for n in range(int(sys.argv[2])))))
