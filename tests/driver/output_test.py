"""What kelpie leaves behind: lines in a pipe when it is ended, compiled kernels in a folder.

Usage: output_test.py KELPIE
"""
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

KELPIE = ""
ENDLESS = "function turn(i) = if i < 0 then i else turn(if i > 5 then 0 else i + 1);\n"
SECONDS = 100


class OutputTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, text=""):
        path = os.path.join(self.folder.name, name)
        if text:
            with open(path, "w") as file:
                file.write(text)
        return path

    def test_forms_that_are_done_are_in_the_pipe(self):
        program = self.path("program.nesl", ENDLESS + "1 + 2;\nturn(1);\n")
        kelpie = subprocess.Popen([KELPIE, "run", "--target=interp", program], stdout=subprocess.PIPE)
        try:
            text = b""
            while b"it = 3 : int\n" not in text:
                self.assertTrue(select.select([kelpie.stdout], [], [], SECONDS)[0], text)
                text += os.read(kelpie.stdout.fileno(), 4096)
        finally:
            kelpie.send_signal(signal.SIGTERM)
            kelpie.wait(SECONDS)
            kelpie.stdout.close()

    def test_the_cache_is_where_the_variable_says(self):
        cache = self.path("cache")
        program = self.path("program.nesl", "sum({sqrt(float(i)) : i in [0:20000000]});\n")
        done = subprocess.run([KELPIE, "run", "--target=cpu", program], stdout=subprocess.PIPE, timeout=SECONDS,
                              env=dict(os.environ, KELPIE_CACHE=cache))
        self.assertEqual(done.returncode, 0)
        # A compiler that is still at work finishes alone.
        end = time.monotonic() + SECONDS
        while not (os.path.isdir(cache) and any(name.startswith("cpu-") for name in os.listdir(cache))):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)


if __name__ == "__main__":
    KELPIE = sys.argv.pop(1)
    unittest.main()
