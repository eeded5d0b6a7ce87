"""A workflow of nipype's MultiProc plugin: an image, two steps at once that call executables, a sum.

workflow.py images|scripts: the steps call MRtrix's mrconvert and mrcalc, or a script with many short programs.
"""
import os
import sys

from nipype import Function, MapNode, Node, Workflow, config

config.set("execution", "check_version", "false")
config.set("execution", "poll_sleep_duration", "0.5")


def make_image():
    import os

    path = os.path.join(os.getcwd(), "image.mif")
    header = b"mrtrix image\ndim: 16,16,16\nvox: 1,1,1\nlayout: +0,+1,+2\ndatatype: UInt8\nfile: . 256\nEND\n"
    with open(path, "wb") as image:
        image.write(header.ljust(256, b"\0") + bytes(range(256)) * 16)
    return path


def image_step(number, image):
    import os
    import subprocess

    copy, out = os.path.join(os.getcwd(), "copy.mif"), os.path.join(os.getcwd(), "out.mif")
    subprocess.run(["mrconvert", "-quiet", "-nthreads", "0", image, copy], check=True)
    subprocess.run(["mrcalc", "-quiet", "-nthreads", "0", copy, str(number), "-multiply", out], check=True)
    return os.path.getsize(out)


def script_step(number, image):
    import os
    import subprocess

    out = os.path.join(os.getcwd(), "out.txt")
    subprocess.run([os.environ["SCRIPT"], out], check=True)
    return os.path.getsize(out)


def total(sizes):
    return sum(sizes)


if __name__ == "__main__":
    os.environ["SCRIPT"] = os.path.abspath("short_programs.sh")
    step = image_step if sys.argv[1] == "images" else script_step
    image = Node(Function([], ["image"], make_image), name="image")
    steps = MapNode(Function(["number", "image"], ["size"], step), iterfield=["number"], name="steps")
    steps.inputs.number = [1, 2]
    end = Node(Function(["sizes"], ["sum"], total), name="total")
    workflow = Workflow("workflow", base_dir=os.path.abspath("work"))
    workflow.connect([(image, steps, [("image", "image")]), (steps, end, [("size", "sizes")])])
    workflow.run("MultiProc", plugin_args={"n_procs": 2, "memory_gb": 2})
