"""Tells whether two outputs of `kelpie run` of one program agree: exit status 0, or 1 and the first lines that do not.

    same_output.py ONE OTHER

All but floats agree to the letter, floats but for their last digits, as the order of a sum is the target's own. What is
bound to a name with "second" in it was measured, and is not compared.
"""

import math
import re
import sys

FLOAT = re.compile(r"(-?\d+\.\d+(?:E[+-]?\d+)?)")
BINDING = re.compile(r"\(?(\w+(?:, \w+)*)\)? = \(?(.*?)\)? : ")
RELATIVE, ABSOLUTE = 1e-9, 1e-12


def compared(line):
    """What counts of a line."""
    binding = BINDING.match(line)
    if not binding or "second" not in binding[1]:
        return line
    names, values = binding[1].split(", "), binding[2].split(", ")
    return ", ".join(value for name, value in zip(names, values) if "second" not in name)


def agree(one, other):
    ours, theirs = FLOAT.split(compared(one)), FLOAT.split(compared(other))
    if ours[::2] != theirs[::2]:
        return False
    return all(math.isclose(float(a), float(b), rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in zip(ours[1::2], theirs[1::2]))


def main():
    outputs = []
    for path in sys.argv[1:3]:
        with open(path, encoding="utf-8", errors="replace") as file:
            outputs.append(file.read().splitlines())
    one, other = outputs
    if len(one) != len(other):
        sys.exit(f"{len(one)} lines and {len(other)} lines")
    for ours, theirs in zip(one, other):
        if not agree(ours, theirs):
            sys.exit(f"{ours[:200]}\n{theirs[:200]}")


main()
