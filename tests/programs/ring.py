"""Processes of an MPI program pass a token round and add up their numbers."""
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
size, rank = world.Get_size(), world.Get_rank()
left, right = (rank - 1) % size, (rank + 1) % size
for turn in range(20):
    assert world.sendrecv((rank, turn), dest=right, source=left) == (left, turn)
total = world.allreduce(rank)
time.sleep(0.2)
if rank == 0:
    print(total)
