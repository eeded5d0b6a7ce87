#!/usr/bin/python3
"""Runs shells in odd directories; each writes where the kernel says that it is to OUT/NAME.

    directories.py OUT
"""

import os
import subprocess
import sys

OUT = os.path.realpath(sys.argv[1])
# The shell's own link; the program that reads it has inherited the directory.
LINE = 'readlink -n "/proc/$$/cwd" > "%s/$0" 2>/dev/null' % OUT


def shell(name, **how):
    """A shell that is told its name twice: its last argument is what the test looks for."""
    return subprocess.run(["/bin/sh", "-c", LINE, name, "name=" + name], check=False, **how)


def below(folder, names):
    """Makes folders in each other and goes there step by step: paths of more than 4,096 bytes can't be named."""
    os.chdir(folder)
    for name in names:
        if not os.path.isdir(name):
            os.mkdir(name)
        os.chdir(name)


def in_new_mounts(name, lines):
    """A shell that a script, with mounts of its own, starts as `$shell`."""
    script = "set -e; mount --make-rprivate /; " + lines
    mine = "exec /bin/sh -c '%s' %s name=%s" % (LINE, name, name)
    subprocess.run(["unshare", "-m", "/bin/sh", "-c", script + "; " + mine], check=True, cwd=OUT)


def main():
    for folder in ["a b", "m", "n", "deep"]:
        os.makedirs(os.path.join(OUT, "w", folder), exist_ok=True)
    work = os.path.join(OUT, "w")
    shell("plain", cwd=os.path.join(work, "a b"))
    odd = os.path.join(os.fsencode(work), b"\xff\n\x1b[31m\\")
    os.makedirs(odd, exist_ok=True)
    shell("bytes", cwd=odd)
    shell("top", cwd="/")
    in_new_mounts("mounted", "mount -t tmpfs none w/m; mkdir -p w/m/in/side; cd w/m/in/side")
    in_new_mounts("bound", "mkdir -p w/n/x/y; mount --bind w/n/x w/m; mount -t tmpfs none w/m/y; cd w/m/y")
    in_new_mounts("unmounted", "mount -t tmpfs none w/m; mkdir -p w/m/in/side; cd w/m/in/side; umount -l %s/w/m" % OUT)
    gone = os.path.join(work, "gone")
    os.makedirs(gone, exist_ok=True)
    os.chdir(gone)
    os.rmdir(gone)
    shell("removed")
    below(os.path.join(work, "deep"), ["z" * 200] * 10 + ["e"] * 60)
    shell("deep")
    below(os.path.join(work, "deep"), ["x" * 200] * 30)
    shell("long")
    below(os.path.join(work, "deep"), ["y"] * 150)
    shell("many")


main()
