"""The prompt of kelpie, through a pseudo-terminal and through a pipe.

Usage: repl_test.py KELPIE
"""
import faulthandler
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KELPIE = ""
PROMPT = "kelpie> "
MORE = "   ...> "
SECONDS = 400  # more than all waits that can fail in one run; the test says where it hangs before ctest ends it
SLOW = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <termios.h>
#include <unistd.h>
int tcsetattr(int file, int actions, const struct termios* to) {
  int (*next)(int, int, const struct termios*) =
      (int (*)(int, int, const struct termios*))dlsym(RTLD_NEXT, "tcsetattr");
  usleep(30000);
  return next(file, actions, to);
}
ssize_t read(int file, void* to, size_t size) {
  ssize_t (*next)(int, void*, size_t) = (ssize_t(*)(int, void*, size_t))dlsym(RTLD_NEXT, "read");
  if (file == 0) usleep(30000);
  return next(file, to, size);
}
"""


class Terminal:
    """A session at a terminal."""

    def __init__(self, home, *options):
        pid, self.descriptor = pty.fork()
        if pid == 0:
            # As a shell starts it, whatever the test itself was started from.
            for number in [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM]:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            environment = dict(os.environ, HOME=home, TERM="xterm", XDG_STATE_HOME="")
            os.execve(KELPIE, [KELPIE, "repl", *options], environment)
        self.pid = pid
        self.text = ""

    def read(self, end):
        """What is printed next: nothing at the end of the session, None when that does not come in time."""
        left = end - time.monotonic()
        if left <= 0 or not select.select([self.descriptor], [], [], left)[0]:
            return None
        try:
            return os.read(self.descriptor, 65536)
        except OSError:  # the other end is closed
            return b""

    def expect(self, text, seconds=60):
        """Waits for the text; returns what came before it."""
        end = time.monotonic() + seconds
        while text not in self.text:
            data = self.read(end)
            if data is None:
                raise AssertionError(f"no {text!r} in {self.text!r}")
            if not data:
                raise AssertionError(f"ended without {text!r}: {self.text!r}")
            # without the sequences that move the cursor
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode()).replace("\r", "")
        before, self.text = self.text.split(text, 1)
        return before

    def send(self, text):
        os.write(self.descriptor, text.encode())

    def ask(self, line, prompt=PROMPT):
        """Sends a line at a prompt; returns what is printed before the next prompt."""
        self.send(line + "\r")
        return self.expect(prompt)

    def close(self, seconds=60):
        """Waits for the end of the session; returns its exit status."""
        end = time.monotonic() + seconds
        pid, status = 0, 0
        while pid == 0:
            data = self.read(min(end, time.monotonic() + 0.05))  # the terminal must take all output
            if data:
                self.text += data.decode(errors="replace")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0 and time.monotonic() > end:
                raise AssertionError(f"the session does not end: {self.text!r}")
            if pid == 0 and data == b"":
                time.sleep(0.01)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)

    def kill(self):
        """Ends a session that may have ended."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            self.close()
        except (ProcessLookupError, ChildProcessError):
            pass


class AtATerminal(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.terminal = self.start("--target=reference")

    def start(self, *options):
        terminal = Terminal(self.home.name, *options)
        terminal.expect(PROMPT)
        return terminal

    def tearDown(self):
        self.terminal.kill()
        self.home.cleanup()

    def test_forms_of_one_and_of_several_lines(self):
        ask = self.terminal.ask
        self.assertIn("it = 3 : int", ask("1 + 2;"))
        self.assertIn("it = 9 : int", ask("it * it;"))
        ask("function double(x) =", MORE)
        ask("  let y = x;", MORE)
        self.assertIn("double = fn : a -> a :: (a in number)", ask("  in x + y;"))
        self.assertIn("it = [2, 4] : [int]", ask("{double(i) : i in [1, 2]} $"))
        ask('"two', MORE)
        self.assertIn('it = "two\nlines" : [char]', ask('lines";'))
        ask("1; % a comment", MORE)
        self.assertIn("it = 1 : int", ask("that goes on %"))

    def test_mistakes_leave_the_session(self):
        ask = self.terminal.ask
        ask("x = 5;")
        self.assertIn("[K0201]", ask("y + 1;"))
        self.assertIn("[K0102]", ask("(1; 2);"))
        self.assertIn("[K0501]", ask("[1][x];"))
        self.assertIn("no command", ask(":nonsense"))
        self.assertIn("it = 5 : int", ask("x;"))
        self.terminal.send("exit;\r")
        self.assertEqual(self.terminal.close(), 0)

    def test_commands(self):
        ask = self.terminal.ask
        ask("function dotp(a, b) = sum({x * y : x in a; y in b});")
        self.assertIn("dotp : ([a], [a]) -> a :: (a in number)", ask(":type dotp"))
        self.assertIn("rand(1.0) : float", ask(":type rand(1.0)"))
        self.assertIn("get : ([a], [int]) -> [a]", ask(":type get"))
        self.assertIn("undefined_it", ask(":type undefined_it"))
        self.assertIn("REDUCE", ask(":emit fused dotp"))
        self.assertIn("void", ask(":emit cpu dotp([1.0], [2.0])"))
        report = ask(":fusion dotp")
        self.assertIn("kernel", report)
        self.assertRegex(report, r"predicted [1-9]")
        self.assertIn("depends on its argument", ask(":emit map"))
        self.assertIn("reference", ask(":target"))
        ask("v = [1:1000];")
        ask(":target interp")
        self.assertIn("interp", ask(":target"))
        self.assertIn("it = 499500 : int", ask("sum(v);"))
        self.assertIn(":fusion", ask(":help"))
        path = os.path.join(self.home.name, "some.nesl")
        with open(path, "w") as file:
            file.write("loaded = sum(v);\nfunction three(x) = 3;\n")
        printed = ask(":load " + path)
        self.assertIn("loaded = 499500 : int", printed)
        self.assertIn("three = fn : a -> int", printed)
        self.assertIn("it = 3 : int", ask("three(0);"))
        self.assertIn("loaded = 499500 : int", ask(":load " + path.removesuffix(".nesl")))
        self.assertIn("cannot read " + path + "x:", ask(":load " + path + "x"))
        self.terminal.send(":quit\r")
        self.assertEqual(self.terminal.close(), 0)

    def test_interrupts(self):
        for target in ["reference", "interp", "cpu"]:
            self.terminal.ask(":target " + target)
            self.terminal.ask("function endless(s) = endless(reverse(s));")
            self.terminal.send("endless([1, 2, 3]); behind = 3;\r")
            self.terminal.expect("behind = 3;")
            time.sleep(0.5)
            self.terminal.send("\x03")
            self.assertIn("interrupted", self.terminal.expect(PROMPT), target)
            told = self.terminal.ask("behind;")
            self.assertIn("this form reads `behind`, which has no value", told, target)
            self.assertIn("the form that should have bound `behind` was not evaluated", told, target)
            self.assertIn("it = 2 : int", self.terminal.ask("1 + 1;"), target)
        self.terminal.send("1 +\r")
        self.terminal.expect(MORE)
        self.terminal.send("2 + 3")
        self.terminal.send("\x03")
        self.terminal.expect(PROMPT)
        self.assertIn("it = 7 : int", self.terminal.ask("7;"))

    def start_slowly(self):
        """A session in which reading and changing the mode of the terminal take their time."""
        compiler = shutil.which("c++")
        if not compiler:
            self.skipTest("needs a compiler")
        source, library = os.path.join(self.home.name, "slow.c"), os.path.join(self.home.name, "slow.so")
        with open(source, "w") as file:
            file.write(SLOW)
        subprocess.run([compiler, "-x", "c", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        os.environ["LD_PRELOAD"] = library
        try:
            return self.start()
        finally:
            del os.environ["LD_PRELOAD"]

    def test_interrupts_while_input_is_read(self):
        """Typed text that Ctrl-C takes away between the wait for it and the reading of it."""
        slow = self.start_slowly()
        try:
            for _ in range(5):
                slow.send("2 + 3")
                slow.send("\x03")
                slow.expect(PROMPT, 20)
            self.assertIn("it = 4 : int", slow.ask("4;"))
        finally:
            slow.kill()

    def test_end_as_soon_as_the_prompt_is_seen(self):
        """Ctrl-D means the end only to a terminal that no longer waits for whole lines."""
        slow = self.start_slowly()
        try:
            slow.send("\x04")
            self.assertEqual(slow.close(10), 0)
        finally:
            slow.kill()

    def test_endless_loops_of_scalars(self):
        self.terminal.ask("function spin(i) = if i < 0 then i else spin(rem(i, 1000) + 1);")
        for target in ["reference", "interp", "cpu"]:
            self.terminal.ask(":target " + target)
            self.terminal.send("spin(1);\r")
            self.terminal.expect("spin(1);")
            time.sleep(0.5)
            self.terminal.send("\x03")
            self.assertIn("interrupted", self.terminal.expect(PROMPT), target)
            self.assertIn("it = 2 : int", self.terminal.ask("1 + 1;"), target)

    def test_completion_history_and_end(self):
        self.terminal.send("remove_dup\t([1, 1, 2]);\r")
        self.assertIn("it = [1, 2] : [int]", self.terminal.expect(PROMPT))
        self.terminal.send("my_own_name = 4;\r")
        self.terminal.expect(PROMPT)
        self.terminal.send("MY_O\t + 1;\r")
        self.assertIn("it = 5 : int", self.terminal.expect(PROMPT))
        self.terminal.send("max_\t")
        self.terminal.expect("max_index")
        self.terminal.expect(PROMPT)
        self.terminal.send("\x15\x1b[A\r")  # clear the line, then the one before
        self.assertIn("it = 5 : int", self.terminal.expect(PROMPT))
        self.terminal.send("\x04")
        self.assertEqual(self.terminal.close(), 0)
        self.terminal = self.start("--target=reference")
        self.terminal.send("\x1b[A\x1b[A\r")
        self.assertIn("my_own_name = 4 : int", self.terminal.expect(PROMPT))


class ThroughAPipe(unittest.TestCase):
    def pipe(self, text, *options):
        done = subprocess.run([KELPIE, *options], input=text.encode(), capture_output=True, timeout=60)
        return done.stdout.decode(), done.stderr.decode(), done.returncode

    def test_no_prompts_and_a_status(self):
        output, messages, status = self.pipe("function f_(x) =\n x + 1;\nf_(2);\n:type f_\n", "repl", "--target=interp")
        self.assertEqual(output, "f_ = fn : int -> int\nit = 3 : int\nf_ : int -> int\n")
        self.assertEqual((messages, status), ("", 0))

    def test_failures(self):
        output, messages, status = self.pipe("1; 2 + ;\n3;\n4", "repl", "--target=reference")
        self.assertEqual(output, "it = 1 : int\nit = 3 : int\n")
        self.assertIn("[K0101]", messages)
        self.assertIn("[K0104]", messages)
        self.assertEqual(status, 1)

    def test_without_arguments(self):
        output, _, status = self.pipe("1 + 2;")
        self.assertEqual((output, status), ("it = 3 : int\n", 0))

    def test_a_program_reads_the_lines_after_it(self):
        output, _, _ = self.pipe('prompt("?");\nan answer\n2;\n', "repl", "--target=reference")
        self.assertEqual(output, '?\nit = "an answer" : [char]\nit = 2 : int\n')

    def test_a_long_form_takes_no_square_time(self):
        text = "let x = 0;\n" + "x = x + 1;\n" * 5_000 + "in x;\n1;\n"
        output, _, _ = self.pipe(text, "repl", "--target=reference")
        self.assertEqual(output, "it = 5000 : int\nit = 1 : int\n")


if __name__ == "__main__":
    KELPIE = sys.argv.pop(1)
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    unittest.main(verbosity=2)
