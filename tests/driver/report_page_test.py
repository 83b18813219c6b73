"""The page of `kelpie fusion --format=html` in headless Chromium: everything on it can be reached and done from the
keyboard, and says what the report says. Skipped (77) where there is no Chromium or no Graphviz.

    report_page_test.py KELPIE
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

PROGRAM = """function norm2(xs) = let s1 = sum(xs); gts = {x in xs | x > 0.0}; s2 = sum(gts)
  in ({x / s1 : x in xs}, {x / s2 : x in xs});
xs = {float(i) : i in [0:100]};
norm2(xs);
"""

# What a person does, with key events, and what the page then shows.
VISIT = """<script>
const seen = {errors: []};
window.addEventListener("error", (event) => seen.errors.push(event.message));
try {
const section = [...document.querySelectorAll("section.region")].find((s) => s.textContent.includes("norm2_reduce_1"));
const details = () => section.querySelector(".details").innerText;
const drawn = () => [...section.querySelectorAll(".drawing")].filter((d) => !d.hidden);
const nodes = () => [...drawn()[0].querySelectorAll("g.node")];
const node = (name) => nodes().find((g) => g.getAttribute("aria-label").endsWith(" " + name));
const press = (key, at = document.activeElement) =>
  at.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
seen.reachable = nodes().every((g) => g.tabIndex === 0) && [...section.querySelectorAll("tr.pair")].every((r) => r.tabIndex === 0);
seen.hint = details();
nodes()[0].focus();
press("ArrowDown");
seen.moved = nodes().indexOf(document.activeElement) >= 0 && document.activeElement !== nodes()[0];
press("ArrowUp");
seen.back = document.activeElement === nodes()[0];
node("norm2_reduce_1").focus();
press("Enter");
seen.one = details();
node("norm2_map_4").focus();
press(" ");
seen.apart = details();
press("Escape");
seen.cleared = details();
node("norm2_reduce_1").focus();
press("Enter");
node("norm2_filter_2").focus();
press("Enter");
seen.together = details();
const none = section.querySelector("input[value=none]");
none.checked = true;
none.dispatchEvent(new Event("change", {bubbles: true}));
seen.strategies = drawn().map((d) => d.dataset.strategy);
seen.togetherInNone = details();
const shown = () => [...section.querySelectorAll(".ofstrategy")].filter((d) => !d.hidden);
seen.ofNone = shown().map((d) => d.innerText);
press("Escape", nodes()[0]);
node("norm2_map_4").focus();
press("Enter");
seen.kernelInNone = details();
press("Escape");
const row = shown()[0].querySelector("tr.pair");
press("Enter", row);
press("Escape", row);
seen.clearedByRow = details();
press(" ", row);
seen.bySpace = details();
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
seen.repeatedIds = ids.filter((id, k) => ids.indexOf(id) !== k);
const svg = drawn()[0].querySelector("svg");
const whole = svg.getBoundingClientRect().width, box = drawn()[0].clientWidth;
section.querySelector(".zoom input").click();
seen.widths = [whole, parseFloat(svg.getAttribute("width")) * 4 / 3, svg.getBoundingClientRect().width, box];
seen.page = document.body.innerText;
seen.row = row.cells[1].innerText;
seen.ofRow = details();
const ilp = section.querySelector("input[value=ilp]");
ilp.checked = true;
ilp.dispatchEvent(new Event("change", {bubbles: true}));
seen.ofIlp = shown().map((d) => d.innerText);
} catch (error) {
  seen.errors.push(String(error));
}
document.documentElement.innerHTML = "<body>" + encodeURIComponent(JSON.stringify(seen)) + "</body>";
</script></body></html>"""


def chromium():
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            subprocess.run([KELPIE, "fusion", "--compare", "--format=html", "-o", page, "-"], input=PROGRAM, text=True, check=True)
            with open(page, encoding="utf-8") as file:
                text = file.read()
            with open(page, "w", encoding="utf-8") as file:
                file.write(text.replace("</body></html>", VISIT))
            dom = subprocess.run([chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
                                  "--virtual-time-budget=2000", "--dump-dom", f"file://{page}"],
                                 capture_output=True, text=True, check=True, timeout=120)
        cls.seen = json.loads(urllib.parse.unquote(re.search("<body>(.*)</body>", dom.stdout, re.S)[1].strip()))

    def test_nothing_fails(self):
        self.assertEqual(self.seen["errors"], [])

    def test_keys_reach_everything(self):
        self.assertTrue(self.seen["reachable"])
        self.assertTrue(self.seen["moved"] and self.seen["back"])
        self.assertIn("Choose a kernel", self.seen["hint"])
        self.assertIn("Choose a kernel", self.seen["cleared"])

    def test_a_kernel_shows_its_line_and_code(self):
        for part in ("REDUCE norm2_reduce_1", "<stdin>:1:", "let s1 = sum(xs)", "before fusion", "generated code of"):
            self.assertIn(part, self.seen["one"])

    def test_two_kernels_show_why(self):
        self.assertIn("in different kernels", self.seen["apart"])
        self.assertIn("norm2_map_4 needs the finished result of norm2_reduce_1", self.seen["apart"])
        self.assertIn("together in one kernel", self.seen["together"])
        self.assertIn("REDUCE+FILTER", self.seen["together"])

    def test_strategies_can_be_switched(self):
        self.assertEqual(self.seen["strategies"], ["none"])
        self.assertIn("in different kernels", self.seen["togetherInNone"])
        self.assertIn("nothing forbids it: ilp has them together (REDUCE+FILTER)", self.seen["togetherInNone"])

    def test_rows_of_the_list_can_be_chosen(self):
        self.assertIn(self.seen["row"], self.seen["ofRow"])
        self.assertIn("Choose a kernel", self.seen["clearedByRow"])
        self.assertEqual(self.seen["bySpace"], self.seen["ofRow"])

    def test_kernels_and_reasons_are_those_of_the_strategy_shown(self):
        self.assertEqual(len(self.seen["ofNone"]), 1)
        self.assertEqual(len(self.seen["ofIlp"]), 1)
        none, ilp = self.seen["ofNone"][0], self.seen["ofIlp"][0]
        self.assertIn("kernels of none", none)
        self.assertRegex(none, r"[1-5]: norm2_filter_2\b")
        self.assertIn("apart, and why, with none", none)
        self.assertIn("nothing forbids it: ilp has them together", none)
        self.assertIn("kernels of ilp", ilp)
        self.assertIn("1: norm2_reduce_1_filter_2", ilp)
        self.assertNotIn("ilp has them together", ilp)

    def test_a_kernel_shows_the_code_of_the_strategy_shown(self):
        self.assertIn("its kernel, not fused", self.seen["kernelInNone"])
        self.assertIn("generated code of norm2_map_4,", self.seen["kernelInNone"])

    def test_drawings_keep_their_size_unless_the_whole_is_wanted(self):
        shown, own, whole, box = self.seen["widths"]
        self.assertAlmostEqual(shown, own, delta=1)
        self.assertLessEqual(whole, box)

    def test_all_ids_differ(self):
        self.assertEqual(self.seen["repeatedIds"], [])

    def test_totals_and_what_is_not_stored_are_there(self):
        self.assertIn("all regions, each once", self.seen["page"])
        self.assertIn("not stored but computed by", self.seen["page"])


if __name__ == "__main__":
    KELPIE = sys.argv.pop(1)
    if not chromium() or not shutil.which("dot"):
        print("no Chromium or no Graphviz here")
        sys.exit(77)
    unittest.main()
