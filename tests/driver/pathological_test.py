"""Programs that nobody writes, and some that somebody did: kelpie answers them in bounded time and memory.

Usage: pathological_test.py KELPIE
"""
import os
import signal
import sys
import tempfile
import time
import unittest

KELPIE = ""
SECONDS = 60  # on a busy machine; they take a few at most
MEMORY = 1 << 30


def doubling(levels):
    return "".join(f"x{i + 1} = (x{i}, x{i});" for i in range(levels))


class Pathological(unittest.TestCase):
    def run_program(self, program, target, command="run"):
        """Output, messages, exit status."""
        if isinstance(program, str):
            program = program.encode()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.nesl")
            with open(path, "wb") as file:
                file.write(program)
            arguments = [KELPIE, command, path] + ([f"--target={target}"] if command == "run" else [])
            names = [os.path.join(folder, name) for name in ("output", "messages")]
            files = [os.open(name, os.O_CREAT | os.O_WRONLY) for name in names]
            begin = time.monotonic()
            actions = [(os.POSIX_SPAWN_DUP2, files[0], 1), (os.POSIX_SPAWN_DUP2, files[1], 2)]
            pid = os.posix_spawn(KELPIE, arguments, os.environ, file_actions=actions)
            signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
            signal.alarm(SECONDS)
            _, status, usage = os.wait4(pid, 0)
            signal.alarm(0)
            for file in files:
                os.close(file)
            texts = []
            for name in names:
                with open(name, "rb") as file:
                    texts.append(file.read().decode("utf-8", "replace"))
        self.assertLess(time.monotonic() - begin, SECONDS, program[:80])
        self.assertLess(usage.ru_maxrss * 1024, MEMORY, program[:80])
        return texts[0], texts[1], os.waitstatus_to_exitcode(status)

    def fails(self, program, *messages, targets=("reference",)):
        for target in targets:
            with self.subTest(program=program[:80], target=target):
                _, text, status = self.run_program(program, target)
                self.assertEqual(status, 1, text[:300])
                for message in messages:
                    self.assertIn(message, text)
                self.assertNotIn("internal error", text)
                self.assertLess(len(text), 100_000)

    def gives(self, program, result, targets=("reference", "interp")):
        for target in targets:
            with self.subTest(program=program[:80], target=target):
                output, text, status = self.run_program(program, target)
                self.assertEqual((text[:300], status), ("", 0))
                self.assertIn(result, output)

    def test_loops_behind_checks_that_fail(self):
        """Checks in front of them that cannot fail are dropped; the loops stay behind those that can."""
        targets = ("reference", "interp", "cpu")
        halves = "function w(i) = if i >= 0 then w(i / 2) else i;\n"  # without end for 0
        walk = "function walk(i, s, x) = if i >= #v then s else walk(i + 1, s + v[i + x] + v[i], x);\n"
        self.fails("v = [3, 2, 2, 6, 4];\n" + halves + walk + "{let a = walk(0, 0, x); b = w(x) in a + b : x in [50]};",
                   "index 50 is out of range", targets=targets)
        self.fails("v = [3, 2, 2, 6, 4];\n" + halves + "function g(k, s, x) = if k >= #v then s else let a = v[k + x]; "
                   "b = w(v[x - 50]) in g(k + 1, s + a + b + v[k], x);\n{g(0, 0, x) : x in [50]};",
                   "index 50 is out of range", targets=targets)
        self.fails("v = [3, -1, 4];\n" + walk + "{walk(0, 0, x) + v[x + 60] : x in [50]};", "2:65", "index 50 is out of range",
                   targets=targets)
        self.fails("v = [3, -1, 4];\nfunction w(i, s) = if i >= 10 then s else w(i + 1, s * 3 + i);\nfunction g(k, s, x) = if "
                   "k >= #v then s else let a = v[k + x]; b = w(v[100], 0); c = v[k] in g(k + 1, s + a + b + c, x);\n"
                   "{g(0, 0, x) : x in [50]};", "index 50 is out of range", targets=targets)
        for certain in ("(if i >= 0 then v[i] else 1)", "(if i < #v + 3 then 2 else 1)"):
            self.fails("v = [3, -1, 4];\n" + walk.replace("v[i],", certain + ",") + "{walk(0, 0, x) + v[x + 60] : x in [50]};",
                       "index 50 is out of range", targets=targets)

        self.fails("v = [3, 2, 2, 6, 4];\nfunction w(i, c) = if i >= -1 then w(i / 2, c + rem(i, 5)) else i;\nfunction g(a, b, d) = let "
                   "m1 = v[d]; m2 = w(v[a], a + 3) in if d < b then g(a, b, d + 1) else v[a] + m2;\n{g(y, 0, 6) : y in [1, 0, 3]};",
                   "index 6 is out of range", targets=targets)

    def test_many_related_variables_of_a_loop(self):
        """All of which are compared with each other: what they keep is not searched for at any length."""
        names = [f"a{k}" for k in range(40)]
        compared = " or ".join(f"{a} < {b}" for k, a in enumerate(names) for b in names[:k])
        after = {a: names[(k + 1) % len(names)] for k, a in enumerate(names)}
        step = ", ".join(f"(if v[{a}] > 3 then {a} + 1 else max({a}, {after[a]}) + 1)" for a in names)
        program = (f"v = [1, 2, 3, 4];\nfunction turn({', '.join(names)}) = if a0 >= #v then a1 else if {compared} then v[a1] else turn({step});\n"
                   f"{{turn({', '.join('x' for _ in names)}) : x in [0, 1, 2]}};")
        begin = time.monotonic()
        self.gives(program, "it = [4, 4, 4] : [int]")
        self.assertLess(time.monotonic() - begin, 30)

    def test_deep_nesting(self):
        self.gives("(" * 9_990 + "1" + ")" * 9_990 + ";", "it = 1 : int")
        self.gives("[" * 3_000 + "1" + "]" * 3_000 + ";", "it = [[[")
        self.gives("negate(" * 9_000 + "1" + ")" * 9_000 + ";", "it = 1 : int")
        self.gives("if t then 1 else " * 4_000 + "2;", "it = 1 : int")
        self.gives("1" + "+1" * 9_000 + ";", "it = 9001 : int")
        self.gives("{" * 300 + "x" + " : x in [1]}" * 300 + ";", "it = [[[")
        for opening in "([{":
            self.fails(opening * 10_001, "[K0110]")
            self.fails(opening * 100_000, "[K0110]")
        self.fails("(" * 10_000 + "1" + ")" * 10_000 + ";", "[K0110]")
        self.fails("1" + "+1" * 500_000 + ";", "[K0110]")
        self.fails("(" + ",".join(["1"] * 500_000) + ");", "[K0110]")
        self.fails("function f_(x) : " + "int -> " * 9_000 + "int = 1;", "[K0309]")

    def test_long_sources(self):
        self.gives("#[" + ",".join(str(i % 1000) for i in range(2_600_000)) + "];", "it = 2600000 : int", ["reference"])
        self.gives('#"' + "a" * 1_000_000 + '";', "it = 1000000 : int")
        self.gives("1;" * 20_000, "it = 1 : int")
        self.gives("".join(f"function f_{i}(x) = x + {i};" for i in range(20_000)), "f_19999 = fn : int -> int")
        self.fails("x" * 1_000_000 + ";", "[K0201]")
        self.fails("1" * 1_000_000 + ";", "[K0311]")
        self.fails("x+;" * 300_000, "[K0101]", "too many errors")
        self.fails("undefined_x;" * 10_000, "[K0201]", "more messages are not shown")

    def test_long_chains_of_branches(self):
        branches = "".join(f"if 10 / (x - {k}) > {k} then let z = 5 / (x + {k}) in {k} else " for k in range(100))
        self.gives(f"function h(x) = {branches} 7; {{h(y) : y in [1000:1003]}};", "it = [7, 7, 7] : [int]")

    def test_text_put_together_from_branches(self):
        # A number in words: its parts are 1,200 kernels before fusion, most of which become one.
        def choice(words):
            return "".join(f'if n == {k} then "{word}" else ' for k, word in enumerate(words)) + '"?"'
        small = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
                 "seventeen eighteen nineteen").split()
        tens = "x x twenty thirty forty fifty sixty seventy eighty ninety".split()
        self.gives(
            f"function one(n) = {choice(small)}; function ten(n) = {choice(tens)};"
            "function below100(n) = if n < 20 then one(n) else if rem(n, 10) == 0 then ten(n / 10)"
            '  else ten(n / 10) ++ "-" ++ one(rem(n, 10));'
            'function below1000(n) = if n < 100 then below100(n) else one(n / 100) ++ " hundred" ++'
            '  (if rem(n, 100) == 0 then "" else " and " ++ below100(rem(n, 100)));'
            'function words(n) = if n == 0 then "zero" else'
            '  let m = n / 1000000; k = rem(n / 1000, 1000); u = rem(n, 1000);'
            '      a = if m == 0 then "" else below1000(m) ++ " million "; b = if k == 0 then "" else below1000(k) ++ " thousand ";'
            '      c = if u == 0 then "" else if (u < 100) and (n > 100) then "and " ++ below1000(u) else below1000(u)'
            "  in a ++ b ++ c;"
            "{words(p[0]) ++ words(p[1]) : p in [[12, 5], [1000000, 99]]};",
            'it = ["twelvefive", "one million ninety-nine"] : [[char]]')

    def test_long_chains_of_gathers(self):
        # Each link reads the one before it at computed places, behind a check; nested, every link is a kernel of
        # elements of short segments.
        links = {"rotate(V, 1)": "[0:k]", "{x + y : x in V; y in rotate(V, 1)}": "[0:k]",
                 "V -> reverse(index(#V))": "[0:k]", "drop(V, 1) ++ take(V, 1)": "[0:k]",
                 "interleave(even_elts(V), odd_elts(V))": "[0:k]", "transpose(V)": "dist([0:k], k)",
                 "take(V, min(2, #V)) ++ {x + 1 : x in drop(V, min(2, #V))}": "[0:k]"}
        for link, argument in links.items():
            chain = "".join(f"a{k + 1} = {link.replace('V', f'a{k}')}; " for k in range(16))
            program = f"function s(v) = let a0 = v; {chain} in a16; {{s({argument}) : k in [1:5]}};"
            output, text, status = self.run_program(program, "reference")
            self.assertEqual((text[:300], status), ("", 0))
            self.gives(program, output, ["interp"])
        cuts = "".join(f"a{k + 1} = take(a{k}, v[{k % 4}]) ++ {{x + 1 : x in drop(a{k}, v[{k % 4}])}}; " for k in range(20))
        self.gives(f"function s(v) = let a0 = v; {cuts} in a20; s([3, 1, 2, 4]);", "it = [3, 6, 12, 19] : [int]")

    def test_bytes(self):
        self.gives(b'"\xff\xfe" ++ "\xc3"; #"a\0b";', "it = 3 : int")
        self.fails(b"\xff\xfe 1;", "[K0107]")
        self.fails(b"1 + \0 2;", "0x00")
        self.fails('1; "abc;', "[K0106]")
        self.fails("1; % abc;", "[K0105]")
        self.fails("1; `", "[K0106]")

    def test_endless_recursion(self):
        targets = ["reference", "interp", "cpu"]
        self.fails("function f_(x) = 1 + f_(x + 1); f_(1);", "recursion", "too deep", targets=targets)
        self.fails("function g(x) = {g(y) : y in [x]}[0] + 1; g(1);", "recursion", "too deep", targets=targets)
        self.fails("function g(v) = flatten({g(x) : x in [v, v]}); g([] int);", "recursion", "too deep", targets=["interp", "cpu"])
        self.fails("function h(x) : int -> int; function g(x) = if h(x) > 0 then 1 else 2;"
                   "function h(x) : int -> int = g(x) + 1; h(1);", "recursion", "too deep", targets=targets)

    def test_types(self):
        self.fails("function p(x) = p((x, x)); p(1);", "contain itself")
        self.fails("function w(x) = x(x);", "[K0305]")
        self.fails("(x => x(x))(x => x(x));", "[K0305]")
        self.fails("datatype a(int, a);", "[K0204]")
        self.fails("let x0 = (1, 1);" + doubling(60) + "in #[x60];", "[K0314]")
        self.fails("x0 = (1, 1);" + doubling(60), "[K0314]")
        self.fails("function f0(x) = (x, x);" + "".join(
            f"function f{i + 1}(x) = let y = f{i}(x) in (y, y);" for i in range(60)) + "f60(1);", "[K0314]")
        self.fails("function d(x) = (x, x);" + "d(" * 60 + "1" + ")" * 60 + ";", "[K0314]")
        records = "datatype d0(int, int); function m0(x) = d0(x, x);" + "".join(
            f"datatype d{i + 1}(d{i}, d{i}); function m{i + 1}(x) = d{i + 1}(m{i}(x), m{i}(x));" for i in range(60))
        self.fails(records + "m60(1);", "[K0314]")
        self.gives(records + "m3(1);", "it = d3(d2(d1(")


if __name__ == "__main__":
    KELPIE = sys.argv.pop(1)
    unittest.main()
