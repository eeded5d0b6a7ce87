"""What the workers of all these programs do: they work, and rest a little, and give a number back."""
import time


def square(n):
    time.sleep(0.05)
    return n * n
