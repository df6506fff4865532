"""Searches a text with regular expressions, in a process that can be ended: run as a file, with nothing but `re`.

Standard input is one JSON object {"patterns": {name: pattern}, "text": text}. For each pattern in order one line of
JSON goes to standard output: [name, the last match's first group, or null].
"""

import json
import re
import sys


def main() -> None:
    asked = json.load(sys.stdin)
    for name, pattern in asked["patterns"].items():
        text = None
        for match in re.finditer(pattern, asked["text"], re.MULTILINE):
            text = match[1]
        print(json.dumps([name, text]), flush=True)


if __name__ == "__main__":
    main()
