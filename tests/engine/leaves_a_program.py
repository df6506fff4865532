"""A supervised child that fails for good, and leaves a program behind that holds its output open."""

import json
import subprocess
import sys

task = json.loads(sys.stdin.readline())
with open(task["pid"], "w") as file:
    file.write(str(subprocess.Popen(["sleep", "60"]).pid))
print(json.dumps({"failed": "there is no port left"}), flush=True)
sys.exit(2)
