"""The code, for a member's own Python, that leaves no space in its `/tmp`, and gives it back."""

FILL = """
import errno, os
with open("/tmp/.pallas-testing", "wb", buffering=0) as file:
    for size in (1 << 20, 1 << 10, 1):
        try:
            while True:
                file.write(bytes(size))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
"""
FREE = "import os; os.path.exists('/tmp/.pallas-testing') and os.remove('/tmp/.pallas-testing')"
