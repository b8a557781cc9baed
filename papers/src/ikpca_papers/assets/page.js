"use strict";

// Color scheme: that of the system, until the reader chooses one.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const preference = window.matchMedia("(prefers-color-scheme: dark)");
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const apply = (theme) => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(theme === "dark"));
  };
  apply(stored() || (preference.matches ? "dark" : "light"));
  preference.addEventListener("change", () => { if (!stored()) apply(preference.matches ? "dark" : "light"); });
  button.addEventListener("click", () => {
    const theme = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("theme", theme); } catch { /* pages from files may have no storage */ }
    apply(theme);
  });
})();

// Figures are enlarged on click.
(() => {
  const dialog = document.getElementById("enlarged");
  for (const button of document.querySelectorAll(".zoom")) {
    button.addEventListener("click", () => {
      const small = button.querySelector("img");
      dialog.querySelector("img")?.remove();
      dialog.appendChild(small.cloneNode());
      dialog.showModal();
    });
  }
  document.getElementById("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
})();

// Curves: the SVG is redrawn when a choice changes.
(() => {
  const WIDTH = 560, HEIGHT = 330, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46;
  const DASHES = ["6 4", "7 3 2 3", "", "9 2 2 2 2 2", "2 3", "12 4"];

  const svg = (name, attributes, parent, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  };
  const html = (name, properties, parent) => {
    const node = Object.assign(document.createElement(name), properties);
    if (parent) parent.appendChild(node);
    return node;
  };
  const number = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 0.01 && size < 10000 ? String(Number(value.toPrecision(3))) : value.toExponential(1).replace(".0e", "e");
  };

  const scale = (low, high, from, to, log) => {
    const [a, b] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
    const span = b - a || 1;
    return (value) => from + ((log ? Math.log10(value) : value) - a) / span * (to - from);
  };
  const ticks = (low, high, log) => {
    const found = [];
    if (log) {
      const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
      const step = Math.max(1, Math.ceil((last - first + 1) / 7));
      for (let power = first; power <= last; power += step) found.push(10 ** power);
      if (found.length > 1) return found;
      return [low, Math.sqrt(low * high), high];
    }
    const raw = (high - low || 1) / 5, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((times) => times * unit).find((size) => size >= raw);
    for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) found.push(at);
    return found;
  };

  class Plot {
    constructor(panel, data, title, names, choice, parent) {
      Object.assign(this, { panel, label: data.label, words: data.axis, unit: data.unit, title, names, choice, cursor: null });
      const box = html("div", { className: "plot" }, parent);
      if (panel.name) html("h3", { textContent: panel.name }, box);
      this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: "0" }, box);
      this.readout = html("p", { className: "readout" }, box);
      this.readout.setAttribute("aria-live", "polite");
      this.picture.addEventListener("pointermove", (event) => this.point(event));
      this.picture.addEventListener("pointerleave", () => this.move(null));
      this.picture.addEventListener("keydown", (event) => this.key(event));
    }

    curves() {
      const { log, axis, shown } = this.choice;
      return this.panel.series.filter((one) => shown.has(one.name)).map((one) => {
        const xs = one[axis];
        const points = one.values.map((value, place) => [xs[place], value]);
        return { name: one.name, points: points.filter(([x, y]) => Number.isFinite(x) && (!log || y > 0)) };
      }).filter((one) => one.points.length);
    }

    draw() {
      this.picture.replaceChildren();
      this.cursor = null;
      this.readout.textContent = "";
      this.drawn = this.curves();
      const names = this.drawn.map((one) => one.name).join(", ") || "nothing chosen";
      this.picture.setAttribute("aria-label", `${this.title} ${this.panel.name}: ${this.label} of ${names}. Arrow keys read the values.`);
      if (!this.drawn.length) {
        svg("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, this.picture, "Choose a method above.");
        return;
      }
      const all = this.drawn.flatMap((one) => one.points);
      const xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
      const log = this.choice.log;
      const lowX = this.choice.axis === "seconds" ? 0 : Math.min(...xs), highX = Math.max(...xs);
      const lowY = log ? Math.min(...ys) : Math.min(0, ...ys), highY = Math.max(...ys);
      this.x = scale(lowX, highX, LEFT, WIDTH - RIGHT, false);
      this.y = scale(lowY, highY, HEIGHT - BOTTOM, TOP, log);
      this.axes(lowX, highX, lowY, highY, log);
      for (const one of this.drawn) {
        const path = one.points.map(([x, y], place) => `${place ? "L" : "M"}${this.x(x).toFixed(1)} ${this.y(y).toFixed(1)}`).join("");
        const place = this.names.indexOf(one.name) % 6;
        svg("path", { d: path, fill: "none", "stroke-width": 2, "stroke-dasharray": DASHES[place], style: `stroke: var(--s${place})`, "data-series": one.name }, this.picture);
      }
      this.line = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" }, this.picture);
    }

    axes(lowX, highX, lowY, highY, log) {
      for (const at of ticks(lowY, highY, log)) {
        const y = this.y(at);
        svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }, this.picture);
        svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.picture, number(at));
      }
      for (const at of ticks(lowX, highX, false)) {
        svg("text", { x: this.x(at), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, this.picture, number(at));
      }
      const words = this.choice.axis === "seconds" ? "Seconds" : this.words;
      svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, this.picture, words);
      const middle = (TOP + HEIGHT - BOTTOM) / 2;
      svg("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, this.picture, this.label);
    }

    point(event) {
      const box = this.picture.getBoundingClientRect();
      this.move((event.clientX - box.left) / box.width * WIDTH);
    }

    key(event) {
      const step = { ArrowLeft: -12, ArrowRight: 12 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.move(Math.min(WIDTH - RIGHT, Math.max(LEFT, (this.cursor ?? LEFT) + step)));
    }

    move(place) {
      this.cursor = place;
      if (!this.drawn || !this.drawn.length) return;
      if (place === null) {
        this.line.setAttribute("visibility", "hidden");
        this.readout.textContent = "";
        return;
      }
      const near = this.drawn.map((one) => {
        const far = ([x]) => Math.abs(this.x(x) - place);
        const point = one.points.reduce((best, next) => (far(next) < far(best) ? next : best));
        return { name: one.name, point };
      });
      const x = this.x(near[0].point[0]);
      this.line.setAttribute("x1", x);
      this.line.setAttribute("x2", x);
      this.line.setAttribute("visibility", "visible");
      const unit = this.choice.axis === "seconds" ? " s" : "";
      const lead = this.choice.axis === "seconds" ? "" : `${this.unit} `;
      this.readout.textContent = near.map(({ name, point }) => `${name} ${number(point[1])} (${lead}${number(point[0])}${unit})`).join(" · ");
    }
  }

  const radios = (parent, legend, group, options, change) => {
    const box = html("fieldset", {}, parent);
    html("legend", { textContent: legend }, box);
    options.forEach(([value, words], place) => {
      const label = html("label", {}, box);
      const input = html("input", { type: "radio", name: group, value, checked: place === 0 }, label);
      label.append(words);
      input.addEventListener("change", () => change(value));
    });
  };

  document.querySelectorAll(".curves").forEach((box, index) => {
    const data = JSON.parse(box.querySelector("script").textContent);
    const names = [...new Set(data.panels.flatMap((panel) => panel.series.map((one) => one.name)))];
    const timed = data.panels.every((panel) => panel.series.every((one) => one.seconds.length === one.values.length));
    const choice = { log: true, axis: "passes", shown: new Set(names) };
    const controls = html("div", { className: "controls" }, box);
    const plots = [];
    const redraw = () => plots.forEach((plot) => plot.draw());
    const methods = html("fieldset", {}, controls);
    html("legend", { textContent: "Methods" }, methods);
    names.forEach((name, place) => {
      const label = html("label", {}, methods);
      const input = html("input", { type: "checkbox", checked: true, value: name }, label);
      const swatch = svg("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" }, label);
      svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": DASHES[place % 6], style: `stroke: var(--s${place % 6})` }, swatch);
      label.append(name);
      input.addEventListener("change", () => {
        if (input.checked) choice.shown.add(name); else choice.shown.delete(name);
        redraw();
      });
    });
    radios(controls, "Scale", `scale${index}`, [["log", "logarithmic"], ["linear", "linear"]], (value) => { choice.log = value === "log"; redraw(); });
    if (timed) {
      radios(controls, "Over", `axis${index}`, [["passes", "passes"], ["seconds", "seconds"]], (value) => { choice.axis = value; redraw(); });
    }
    const place = html("div", { className: "plots" }, box);
    for (const panel of data.panels) plots.push(new Plot(panel, data, box.dataset.title, names, choice, place));
    redraw();
  });
})();
