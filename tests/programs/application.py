"""A web application for gunicorn."""
import time


def application(environ, start_response):
    time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"served\n"]
