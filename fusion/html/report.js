"use strict";
const report = JSON.parse(document.getElementById("data").textContent);
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const bytes = (n) => {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; n >= 1000 && unit < 4; ++unit) n /= 1000;
  return n.toFixed(unit === 0 || n >= 100 ? 0 : 1) + " " + units[unit];
};
const time = (us) => us.toFixed(2) + " µs";

// What is shown of one region, for one strategy at a time.
class Region {
  // `kernels` by strategy: the clusters with their kernels.
  constructor(root, data, kernels) {
    this.root = root;
    this.data = data;
    this.kernels = kernels;
    this.selected = [];
    this.details = root.querySelector(".details");
    this.byStrategy = Object.fromEntries(data.strategies.map((s) => [s.strategy, s]));
    root.querySelectorAll("input[type=radio]").forEach((radio) => {
      radio.addEventListener("change", () => this.show(radio.value));
    });
    const fit = root.querySelector(".zoom input");
    fit.addEventListener("change", () => {
      root.querySelectorAll(".drawing").forEach((d) => d.classList.toggle("fitted", fit.checked));
    });
    root.querySelectorAll("g.node").forEach((group) => this.listen(group));
    root.querySelectorAll("tr.pair").forEach((row) => {
      const choose = () => { this.selected = [Number(row.dataset.a), Number(row.dataset.b)]; this.update(); };
      row.addEventListener("click", choose);
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
        if (event.key === "Escape") { this.selected = []; this.update(); }
      });
    });
    this.show(data.chosen);
  }
  number(group) { return Number(group.id.split("-").pop()); }
  listen(group) {
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
    const v = this.number(group);
    group.setAttribute("aria-label", this.data.nodes[v].kind + " " + this.data.nodes[v].name);
    group.addEventListener("mouseenter", () => { if (!this.selected.length) this.describe([v]); });
    group.addEventListener("focus", () => { if (!this.selected.length) this.describe([v]); });
    group.addEventListener("click", () => this.toggle(v));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.toggle(v); }
      if (event.key === "Escape") { this.selected = []; this.update(); }
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const all = [...this.root.querySelectorAll(".drawing:not([hidden]) g.node")]
          .sort((x, y) => this.number(x) - this.number(y));
        all[(all.indexOf(group) + step + all.length) % all.length].focus();
      }
    });
  }
  show(strategy) {
    this.strategy = strategy;
    this.root.querySelectorAll(".drawing, .ofstrategy").forEach((d) => { d.hidden = d.dataset.strategy !== strategy; });
    this.root.querySelectorAll("input[type=radio]").forEach((r) => { r.checked = r.value === strategy; });
    this.update();
  }
  toggle(v) {
    if (this.selected.includes(v)) this.selected = this.selected.filter((u) => u !== v);
    else this.selected = [...this.selected.slice(-1), v];
    this.update();
  }
  update() {
    this.root.querySelectorAll("g.node").forEach((group) => {
      const place = this.selected.indexOf(this.number(group));
      group.classList.toggle("first", place === 0);
      group.classList.toggle("second", place === 1);
    });
    this.describe(this.selected);
  }
  describe(nodes) {
    const out = this.details;
    out.replaceChildren();
    if (!nodes.length) {
      out.append(make("p", { className: "hint" },
        "Choose a kernel with a click, or with Tab, the arrow keys and Enter; choose a second one to see why they are together or apart. Escape clears."));
      return;
    }
    if (nodes.length === 2) out.append(...this.pair(nodes[0], nodes[1]));
    for (const v of nodes) out.append(...this.node(v));
  }
  node(v) {
    const node = this.data.nodes[v];
    const parts = [make("h3", {}, node.kind + " " + node.name)];
    if (node.source) parts.push(make("div", {}, node.place), make("pre", {}, node.source));
    if (node.text) parts.push(make("div", {}, "before fusion"), make("pre", {}, node.text));
    const cluster = (this.kernels[this.strategy] || []).find((c) => c.nodes.includes(v));
    if (cluster && cluster.text)
      parts.push(make("div", {}, "its kernel, " + (cluster.rules.join(", ") || "not fused")), make("pre", {}, cluster.text));
    if (cluster && cluster.code) parts.push(this.code(cluster));
    return parts;
  }
  // The generated kernel: long, so open only where it was opened before.
  code(cluster) {
    const lines = cluster.code.trim().split("\n").length;
    const box = make("details", { open: this.codeOpen === true },
      make("summary", {}, "generated code of " + cluster.kernel + ", " + lines + (lines === 1 ? " line" : " lines")),
      make("pre", { className: "code" }, cluster.code.trim()));
    box.addEventListener("toggle", () => { this.codeOpen = box.open; });
    return box;
  }
  pair(a, b) {
    const [low, high] = a < b ? [a, b] : [b, a];
    const found = this.data.pairs.find((p) => p.a === low && p.b === high);
    const clusters = this.byStrategy[this.strategy].cluster;
    const together = clusters[a] === clusters[b];
    const parts = [make("h3", {}, together ? "together in one kernel" : "in different kernels")];
    if (!this.data.nodes[a].kernel || !this.data.nodes[b].kernel)
      parts.push(make("p", {}, "a statement of the host is never part of a kernel"));
    else if (!found)
      parts.push(make("p", {}, "not joined by an edge or a common input; in a region of this size only such pairs are examined"));
    else {
      const rule = found.rule ? " (" + found.rule + ")" : "";
      if (found.together && !together)
        parts.push(make("p", {}, "nothing forbids it: " + this.data.chosen + " has them together" + rule));
      else if (together && !found.together) parts.push(make("p", {}, "With " + this.data.chosen + ", they are apart: " + found.reason));
      else parts.push(make("p", {}, found.reason + rule));
    }
    return parts;
  }
}
document.querySelectorAll("section.region").forEach((root) => {
  const [form, region] = root.dataset.region.split(",").map(Number);
  const { report: { regions }, others } = report.forms[form];
  const kernels = { [regions[region].chosen]: regions[region].clusters };
  for (const strategy in others) kernels[strategy] = others[strategy][region];
  new Region(root, regions[region], kernels);
});
