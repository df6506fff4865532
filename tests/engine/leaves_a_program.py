"""A supervised child that fails for good, and leaves a program behind that holds its output open."""

import subprocess
import sys

from app.base.conversation import Parent

left = subprocess.Popen(["sleep", "60"])
parent = Parent()
frame = parent.inbox.get()
assert frame is not None
with open(frame[0]["pid"], "w") as file:
    file.write(str(left.pid))
parent.send({"failed": "there is no port left"})
sys.exit(2)
