"""Starts a web server, asks it 20 times and ends it: serve.py PROGRAM ARGUMENT...

PORT in the arguments, and in the files *.template of this folder, stands for a free port.
"""
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])
for template in pathlib.Path().glob("*.template"):
    template.with_suffix("").write_text(template.read_text().replace("PORT", port))
server = subprocess.Popen([word.replace("PORT", port) for word in sys.argv[1:]])


def ask():
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
        return answer.read()


for _ in range(200):
    try:
        ask()
        break
    except OSError:
        time.sleep(0.05)
for _ in range(20):
    assert ask() == b"served\n"
server.send_signal(signal.SIGTERM)
sys.exit(server.wait())
