"use strict";
(() => {
  const data = JSON.parse(document.getElementById("drawing").textContent);
  const SIDE = 9999, REACH = 16;
  const GRAY = "#9a9a9a";
  const TRUST = [[0.6, "#a63603"], [0.8, "#f08a24"], [0.9, "#d9c9a3"], [0.95, "#7fb0dc"], [1, "#1f5fa8"]];
  const VALUES = [[0, "#3b2a6b"], [0.25, "#33638d"], [0.5, "#219089"], [0.75, "#7ac35a"], [1, "#f4e336"]];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false, current = -1, pinned = false, chosenClass = -1;
  let coloring = data.colorings.length ? 0 : "trust";
  const isDark = () => dark.matches && !printing;

  const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  const css = (c) => `rgb(${c.map(Math.round).join(",")})`;
  const mix = (a, b, t) => a.map((v, i) => v + (b[i] - v) * t);
  function ramp(stops, value) {
    let i = 1;
    while (i < stops.length - 1 && value > stops[i][0]) i++;
    const [a, from] = stops[i - 1], [b, to] = stops[i];
    const t = Math.min(1, Math.max(0, (value - a) / (b - a)));
    return css(mix(rgb(from), rgb(to), t));
  }
  // Dark colors are lightened on a dark background.
  function shown(hex) {
    const c = rgb(hex), light = (0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2]) / 255;
    return css(isDark() && light < 0.42 ? mix(c, [255, 255, 255], 0.42 - 0.5 * light) : c);
  }
  function colorOf(map, i) {
    if (coloring === "trust") return map.trust[i] === null ? GRAY : ramp(TRUST, map.trust[i]);
    const by = data.colorings[coloring];
    if (by.codes) return shown(by.classes[by.codes[i]].color);
    const v = by.values[i];
    return v === null ? GRAY : ramp(VALUES, by.high > by.low ? (v - by.low) / (by.high - by.low) : 0.5);
  }
  function markerOf(i) {
    const by = coloring === "trust" ? null : data.colorings[coloring];
    return by && by.codes ? by.classes[by.codes[i]].marker : "o";
  }
  function trace(g, marker, x, y, r) {
    g.beginPath();
    if (marker === "o") g.arc(x, y, r, 0, 2 * Math.PI);
    else if (marker === "s") g.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
    else {
      const s = marker === "v" ? -1 : 1, w = 1.2 * r;
      if (marker === "D") { g.moveTo(x, y - w); g.lineTo(x + w, y); g.lineTo(x, y + w); g.lineTo(x - w, y); }
      else { g.moveTo(x, y - s * w); g.lineTo(x + w, y + s * r); g.lineTo(x - w, y + s * r); }
      g.closePath();
    }
  }

  // A fixed random order, so that in data sorted by class the last class does not cover the others.
  const n = data.rows.length;
  const shuffled = [...Array(n).keys()];
  for (let i = n - 1, s = 1; i > 0; i--) {
    s = (s * 16807) % 2147483647;
    const j = s % (i + 1);
    [shuffled[i], shuffled[j]] = [shuffled[j], shuffled[i]];
  }

  const views = data.maps.map((map, m) => {
    const canvas = document.getElementById(`map-${m}`);
    const tip = canvas.parentElement.querySelector(".tip");
    return { map, canvas, tip, px: new Float32Array(n), py: new Float32Array(n), r: 3 };
  });

  function draw(view) {
    const { map, canvas } = view, ratio = Math.max(1, window.devicePixelRatio || 1);
    const size = canvas.clientWidth || 420, dot = printing ? 2 : ratio;
    canvas.width = canvas.height = Math.round(size * dot);
    const g = canvas.getContext("2d");
    g.scale(dot, dot);
    const r = view.r = Math.min(4.2, Math.max(1.4, size * Math.sqrt(0.055 / n)));
    const margin = 2.5 * r + 6, span = (size - 2 * margin) / SIDE;
    const order = coloring === "trust"
      ? [...shuffled].sort((a, b) => (map.trust[b] ?? 2) - (map.trust[a] ?? 2)) : shuffled;
    const codes = coloring === "trust" ? null : data.colorings[coloring].codes;
    for (const pass of chosenClass >= 0 && codes ? [false, true] : [true]) {
      for (const i of order) {
        if (map.x[i] === null) { view.px[i] = view.py[i] = NaN; continue; }
        const x = view.px[i] = margin + map.x[i] * span, y = view.py[i] = margin + map.y[i] * span;
        const inside = chosenClass < 0 || !codes || codes[i] === chosenClass;
        if (inside !== pass) continue;
        g.globalAlpha = inside ? 0.85 : 0.16;
        g.fillStyle = inside ? colorOf(map, i) : GRAY;
        trace(g, markerOf(i), x, y, r);
        g.fill();
      }
    }
    g.globalAlpha = 1;
    view.picture = null;
    if (current >= 0 && !printing) ring(view);
  }
  function ring(view) {
    const x = view.px[current], y = view.py[current];
    if (Number.isNaN(x)) return;
    const g = view.canvas.getContext("2d");
    g.lineWidth = 4; g.strokeStyle = isDark() ? "#000" : "#fff";
    g.beginPath(); g.arc(x, y, view.r + 5, 0, 2 * Math.PI); g.stroke();
    g.lineWidth = 2; g.strokeStyle = isDark() ? "#fff" : "#111"; g.stroke();
    g.fillStyle = colorOf(view.map, current);
    trace(g, markerOf(current), x, y, view.r + 1.5); g.fill();
  }
  const drawAll = () => views.forEach(draw);
  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawAll(); });
  }

  function facts(i) {
    return data.colorings.slice(0, 4).map((by) => {
      const value = by.codes ? by.classes[by.codes[i]].name : by.values[i] ?? "missing";
      return `${by.name}: ${value}`;
    });
  }
  const percent = (t) => (t === null ? "no value" : t.toFixed(2));
  const said = document.getElementById("said");
  function select(i, view) {
    if (i === current && !view) return;
    current = i;
    for (const each of views) {
      each.tip.hidden = true;
      if (i < 0 || each !== view || Number.isNaN(each.px[i])) continue;
      each.tip.replaceChildren();
      const add = (tag, text) => { const e = document.createElement(tag); e.textContent = text; each.tip.append(e); };
      add("strong", data.rows[i]);
      facts(i).forEach((line) => add("span", line));
      add("span", `trustworthiness here: ${percent(each.map.trust[i])}`);
      each.tip.hidden = false;
      const left = each.canvas.offsetLeft + each.px[i], right = left > each.canvas.clientWidth / 2;
      each.tip.style.left = right ? "auto" : `${left + 14}px`;
      each.tip.style.right = right ? `${each.canvas.parentElement.clientWidth - left + 14}px` : "auto";
      each.tip.style.top = `${Math.max(4, each.canvas.offsetTop + each.py[i] - 20)}px`;
    }
    said.textContent = i < 0 ? said.dataset.help
      : [data.rows[i], ...facts(i), "trustworthiness " + views.map((v) => `${v.map.name} ${percent(v.map.trust[i])}`).join(", ")].join(" · ");
    later();
  }
  function nearest(view, x, y, reach) {
    let best = -1, least = reach * reach;
    for (let i = 0; i < n; i++) {
      const d = (view.px[i] - x) ** 2 + (view.py[i] - y) ** 2;
      if (d < least) { least = d; best = i; }
    }
    return best;
  }
  function step(view, dx, dy) {
    if (current < 0 || Number.isNaN(view.px[current])) return nearest(view, view.canvas.clientWidth / 2, view.canvas.clientWidth / 2, 1e6);
    let best = -1, least = Infinity;
    for (let i = 0; i < n; i++) {
      const x = view.px[i] - view.px[current], y = view.py[i] - view.py[current];
      const along = x * dx + y * dy, across = Math.abs(x * dy - y * dx);
      if (i !== current && along > 0.01 && along >= across && along + 2 * across < least) { least = along + 2 * across; best = i; }
    }
    return best < 0 ? current : best;
  }
  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  for (const view of views) {
    const at = (e) => nearest(view, e.offsetX, e.offsetY, REACH);
    view.canvas.addEventListener("pointermove", (e) => { if (!pinned) select(at(e), view); });
    view.canvas.addEventListener("pointerleave", () => { if (!pinned) select(-1, null); });
    view.canvas.addEventListener("click", (e) => { const i = at(e); pinned = i >= 0; select(i, view); });
    view.canvas.addEventListener("keydown", (e) => {
      if (e.key === "Escape") { pinned = false; select(-1, null); }
      else if (MOVES[e.key]) { e.preventDefault(); pinned = true; select(step(view, ...MOVES[e.key]), view); }
    });
  }

  const legend = document.getElementById("legend");
  function swatch(marker, color) {
    const c = document.createElement("canvas"), g = c.getContext("2d");
    c.width = c.height = 24;
    g.fillStyle = color; trace(g, marker, 12, 12, 9); g.fill();
    return c;
  }
  function rampBar(stops, low, high, title) {
    const bar = document.createElement("canvas"), g = bar.getContext("2d"), box = document.createElement("div");
    bar.width = 180; bar.height = 12; bar.setAttribute("aria-hidden", "true");
    const [first, last] = [stops[0][0], stops[stops.length - 1][0]];
    for (let x = 0; x < 180; x++) { g.fillStyle = ramp(stops, first + (last - first) * x / 179); g.fillRect(x, 0, 1, 12); }
    box.className = "ramp";
    const text = (t) => { const s = document.createElement("span"); s.textContent = t; return s; };
    box.append(text(low), bar, text(high), text(title));
    return box;
  }
  const plainNumber = (v) => String(Number(v.toPrecision(4)));
  function showLegend() {
    legend.replaceChildren();
    if (coloring === "trust") {
      legend.append(rampBar(TRUST, "0.6 or less", "1", `trustworthiness of each row in the map; below ${data.threshold} many of its neighbors there are false`));
      return;
    }
    const by = data.colorings[coloring];
    if (!by.codes) { legend.append(rampBar(VALUES, plainNumber(by.low), plainNumber(by.high), by.name)); return; }
    const list = document.createElement("ul");
    list.className = "legend";
    by.classes.forEach((each, k) => {
      const item = document.createElement("li"), button = document.createElement("button"), name = document.createElement("span");
      button.type = "button";
      button.setAttribute("aria-pressed", String(k === chosenClass));
      name.textContent = `${each.name} (${each.count})`;
      button.title = each.name;
      button.append(swatch(each.marker, shown(each.color)), name);
      button.addEventListener("click", () => {
        chosenClass = chosenClass === k ? -1 : k;
        list.querySelectorAll("button").forEach((b, j) => b.setAttribute("aria-pressed", String(j === chosenClass)));
        later();
      });
      item.append(button); list.append(item);
    });
    legend.append(list);
  }

  const choice = document.getElementById("color-by");
  if (choice) {
    choice.addEventListener("change", () => {
      coloring = choice.value === "trust" ? "trust" : Number(choice.value);
      chosenClass = -1;
      showLegend(); later();
    });
  }
  const find = document.getElementById("find-row");
  if (find) {
    let last = -1;
    const search = () => {
      const text = find.value.trim().toLowerCase();
      if (!text) { pinned = false; last = -1; select(-1, null); return; }
      for (let k = 1; k <= n; k++) {
        const i = (last + k) % n;
        if (data.rows[i].toLowerCase().includes(text)) { last = i; pinned = true; select(i, views[0]); return; }
      }
      pinned = false; select(-1, null); said.textContent = `no drawn row is called ${find.value.trim()}`;
    };
    find.addEventListener("input", () => { last = -1; search(); });
    find.addEventListener("keydown", (e) => { if (e.key === "Enter") search(); });
  }
  for (const block of document.querySelectorAll("pre")) {
    if (!navigator.clipboard) break;
    const button = document.createElement("button");
    button.type = "button"; button.className = "copy"; button.textContent = "Copy";
    button.addEventListener("click", () => navigator.clipboard.writeText(block.querySelector("code").textContent)
      .then(() => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); }, () => { button.textContent = "Select and copy"; }));
    block.append(button);
  }
  const folded = [...document.querySelectorAll("details")];
  const turn = (on) => () => {
    printing = on;
    for (const each of folded) {
      if (on) { each.dataset.open = String(each.open); each.open = true; }
      else each.open = each.dataset.open === "true";
    }
    showLegend(); drawAll();
  };
  addEventListener("beforeprint", turn(true));
  addEventListener("afterprint", turn(false));
  dark.addEventListener("change", () => { showLegend(); drawAll(); });
  new ResizeObserver(later).observe(document.querySelector("main"));
  showLegend();
  drawAll();
})();
