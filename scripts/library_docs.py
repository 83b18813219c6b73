#!/usr/bin/env python3
"""Writes docs/library.md: every function of the NESL library with its type and documentation string.

    library_docs.py           writes the page
    library_docs.py --check   fails when the page is not what would be written

The texts come from frontend/builtins.def, frontend/graphics.def and frontend/library/*.nesl.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "frontend"
PAGE = ROOT / "docs" / "library.md"

# Title, beginnings of section comments in builtins.def, library files.
SECTIONS = [
    ("Logic", ["logical"], []),
    ("Comparison", ["comparison"], []),
    ("Arithmetic and conversion", ["arithmetic", "conversion"], ["arithmetic"]),
    ("Constants", ["constants"], ["constants"]),
    ("Random numbers", ["random numbers"], []),
    ("Building, moving and cutting sequences", ["building and indexing", "moving elements"], ["sequences"]),
    ("Nesting", [], ["nesting"]),
    ("Reductions and scans", ["reductions and scans"], ["scans"]),
    ("Sorting and searching", [], ["sorting"]),
    ("Sets and groups", [], ["sets"]),
    ("Hash tables", [], ["hash_tables"]),
    ("Values of any type", ["derived from the structure"], ["generic"]),
    ("Strings", [], ["strings"]),
    ("Numbers as text", [], ["numerals"]),
    ("Output, files, streams and time", ["checks, output and time", "the outside world"], ["streams"]),
    ("Graphics: bounds and scaling", [], ["graphics"]),
    ("Graphics: windows", ["graphics"], []),
]

INTRODUCTION = """\
# The library

Written by `scripts/library_docs.py` from `frontend/builtins.def`, `frontend/graphics.def` and the NESL sources in
`frontend/library/`; do not edit. Every name here may be redefined by a program; the library itself keeps its own.

Operators are calls: `a -> i` is `read(a,i)`, `d <- iv` is `write(d,iv)`, `a ++ b` is `append(a,b)`, `@v` is
`string(v)`, `#v` is `length(v)`, `-a` is `negate(a)`, `a[i]` is `elt(a,i)`. `[s:e:d]` is `iseq(s,d,e)`, and `[s:e]` has
the stride 1. `s || k` pads the string s with spaces to the width |k|, at the right for k > 0 and at the left for k < 0.

"Serial" functions may not be called inside an apply-to-each. An "Error" stops the top-level form and is reported at
the call.
"""


class Entry:
    def __init__(self, name, call, type_, text, serial=False):
        self.name, self.call, self.type, self.text, self.serial = name, call, type_, text, serial
        self.uses = set()  # words of a function's body

    def row(self):
        text = ("Serial. " if self.serial else "") + self.text
        cells = [f"`{self.call}`", f"`{self.type}`" if self.type else "", text]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def words(text):
    return " ".join(text.split())


def builtins():
    """Section comment -> entries, of the tables of typed primitives."""
    sections = {}
    macro = re.compile(r'^// ---- (?P<section>.*?) ----|^KELPIE_(?P<kind>BUILTIN|SERIAL)\((?P<arguments>.*?)\)\n(?=\S|\Z|\n)',
                       re.M | re.S)
    string = re.compile(r'"((?:[^"\\]|\\.)*)"')
    for file, section in ((FRONTEND / "builtins.def", ""), (FRONTEND / "graphics.def", "graphics")):
        for match in macro.finditer(file.read_text() + "\n"):
            if match["section"] is not None:
                section = match["section"]
                continue
            name, type_, text = re.match(
                r'\s*("(?:[^"\\]|\\.)*")\s*,\s*("(?:[^"\\]|\\.)*")\s*,\s*\w+\([^()]*\)\s*,(.*)', match["arguments"], re.S).groups()
            name, type_ = string.findall(name)[0], string.findall(type_)[0]
            text = re.sub(r"\\(.)", r"\1", "".join(string.findall(text)))
            sections.setdefault(section, []).append(Entry(name, name, type_, text, match["kind"] == "SERIAL"))
    return sections


def matching_parenthesis(text, start):
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise SystemExit(f"unbalanced parameters: {text[:60]}")


def library(path):
    """The forms of a library file; they begin in the first column."""
    entries = []
    forms = re.split(r"^(?=\w)", path.read_text(), flags=re.M)
    for form in forms:
        if form.startswith("function"):
            name = re.match(r"function\s+(\w+)", form)[1]
            end = matching_parenthesis(form, form.index("("))
            rest = re.match(r'\s*:\s*(?P<type>[^"]*?)\s*"(?P<text>[^"]*)"', form[end:])
            if not rest:
                raise SystemExit(f"{path.name}: {name} has no signature or no documentation")
            call = words(form[len("function"):end])
            entries.append(Entry(name, call, words(rest["type"]), words(rest["text"])))
            entries[-1].uses = set(re.findall(r"\w+", form[end + rest.end():]))
        elif form.startswith("datatype"):
            name, field = re.match(r"datatype\s+(\w+)\s+(.*?);$", form, re.M | re.S).groups()
            entries.append(Entry(name, name, words(field), "Record type and its constructor."))
        elif match := re.match(r"(\w+) = (.*?);", form, re.S):
            entries.append(Entry(match[1], match[1], "", f"`{words(match[2])}`"))
    return entries


def mark_serial(primitives, sources):
    """What calls a serial function is serial, too."""
    serial = {entry.name for entries in primitives.values() for entry in entries if entry.serial}
    functions = [entry for entries in sources.values() for entry in entries if entry.uses]
    before = -1
    while len(serial) != before:
        before = len(serial)
        serial |= {entry.name for entry in functions if entry.uses & serial}
    for entry in functions:
        entry.serial = entry.name in serial


def page():
    primitives = builtins()
    files = {path.stem: library(path) for path in (FRONTEND / "library").glob("*.nesl")}
    mark_serial(primitives, files)
    out = [INTRODUCTION]
    for title, comments, sources in SECTIONS:
        entries = []
        for comment in comments:
            found = [section for section in primitives if section.startswith(comment)]
            if len(found) != 1:
                raise SystemExit(f"builtins.def has no section, or several, of {comment}")
            entries += primitives.pop(found[0])
        for source in sources:
            entries += files.pop(source)
        shown = [entry for entry in entries if not entry.name.startswith("prim_")]
        out += [f"\n## {title}\n", "| call | type | meaning |", "|---|---|---|"] + [entry.row() for entry in shown]
    if primitives or files:
        raise SystemExit(f"not in any section of the page: {sorted(primitives)} {sorted(files)}")
    return "\n".join(out) + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        raise SystemExit(__doc__)
    text = page()
    if not sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        raise SystemExit("docs/library.md is not current: run scripts/library_docs.py")


if __name__ == "__main__":
    main()
