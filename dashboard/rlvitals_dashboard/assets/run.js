// A run's charts: one cursor for all of them, the step that is looked at, keys, and the address that says it all.
(function () {
  "use strict";

  const { clicked, idOf } = window.vitalsClicks;
  const KEYS_OF_VIEW = ["attempt", "scale", "smooth", "find"];
  const QUIET_MS = 250;
  const HEAT_MS = 15000;
  const LONGEST_PRESS_MS = 10000;
  const SCALES = ["", "linear", "log"];
  const SMOOTHS = ["", "ema-0.6", "ema-0.9", "ema-0.98", "median-5", "median-21"];
  const VALUE = "value";
  const MARKS = ["NaN", "+Inf", "−Inf"];

  let view = null;
  let glance = { step: null, paused: false };
  let hovered = null;
  let telling = 0;
  let pulse = null;
  let strayed = "";
  let heated = { page: null, key: "", step: null, at: 0 };
  let pressed = null;
  let owed = 0;

  function send(id, props) { window.dash_clientside.set_props(id, props); }
  function flip(list, key) { return list.includes(key) ? list.filter((k) => k !== key) : [...list, key]; }
  function here() { return document.querySelector("main.run"); }
  function plots() { return [...document.querySelectorAll("main.run .js-plotly-plot")].filter((gd) => gd.data && gd._fullLayout && gd._fullLayout.xaxis && gd._fullLayout.xaxis.range && gd._fullLayout._size); }
  // Not under a hand that is drawing a zoom: the charts that it is in would be gone.
  function redraw() {
    if (!pressed) { send("redraw", { data: Date.now() }); return; }
    clearTimeout(owed);
    owed = setTimeout(() => { pressed = null; redraw(); }, LONGEST_PRESS_MS);
  }

  function look(changes) {
    if (!view) return;
    const asked = { ...view, ...changes };
    turn(asked);
    send("view", { data: asked });
  }

  function same(one, other, but) { return Object.keys(one).every((key) => but.includes(key) || String(one[key]) === String(other[key])); }

  // The charts that are there are given other steps; for anything else they are made anew.
  function turn(asked) {
    const before = view;
    view = asked;
    strayed = "";
    hovered = null;
    if (!before || before.run !== asked.run || same(before, asked, [])) return;
    if (pulse && same(before, asked, ["from", "to"])) steps();
    else redraw();
  }

  async function steps() {
    if (!await window.vitalsCharts.show(view, pulse.frame)) redraw();
    settle();
  }

  // A drawing that was begun before a zoom ends after it: then the charts show steps that are not asked for. They
  // are given the right ones once; what does not help is not tried for ever.
  function astray() {
    if (!view || !pulse || window.vitalsCharts.going()) return false;
    return plots().filter((gd) => !gd.closest(".heat")).some(({ layout: { xaxis } }) =>
      view.from === null ? xaxis.autorange === false : !xaxis.range || xaxis.range[0] !== view.from || xaxis.range[1] !== view.to);
  }

  // Distributions come after the charts, and anew where there are other steps to see.
  function heat() {
    if (!view || !pulse || glance.paused) return;
    const key = [view.run, view.attempt, view.from, view.to].join();
    const grown = view.to === null && pulse.last_step !== heated.step && Date.now() - heated.at > HEAT_MS;
    if (here() === heated.page && key === heated.key && !grown) return;
    heated = { page: here(), key, step: pulse.last_step, at: Date.now() };
    send("heat-ask", { data: heated.at });
  }

  // Numbers as the page writes them, see words.number.
  function number(value) {
    const size = Math.abs(value);
    const sign = value < 0 ? "−" : "";
    if (size === 0) return "0";
    if (size >= 1e15 || size < 1e-4) {
      const [digits, power] = size.toExponential(2).split("e");
      return sign + Number(digits) + "e" + Number(power);
    }
    for (const [least, scale, prefix] of [[1e12, 1e12, "T"], [1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]])
      if (size >= least) return sign + Number((size / scale).toPrecision(4)) + prefix;
    return sign + (size >= 1000 ? Math.round(size).toLocaleString("en") : String(Number(size.toPrecision(4))));
  }

  // The first index of a rising list whose number is at least the wanted one.
  function reach(list, wanted) {
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  }

  // What a chart has at a step: its value, which kind of no number, or nothing.
  function said(gd, step) {
    const line = gd.data.find((t) => t.name === VALUE);
    if (!line) return distribution(gd, step);
    const bucket = (line.meta && line.meta.bucket) || 1;
    const linear = line.meta ? line.meta.linear : null;
    const kinds = gd.data.filter((t) => MARKS.includes(t.name) && t.x.some((at) => Math.abs(at - step) < (bucket > 1 ? bucket / 2 : 0.5))).map((t) => t.name);
    const i = reach(line.x, step);
    const near = i < line.x.length && (bucket > 1 ? line.x[i] - step < bucket : line.x[i] === step);
    const place = near ? line.y[i] : null;
    const true_ = (y) => linear ? Math.sign(y) * Math.expm1(Math.abs(y) * Math.LN10) * linear : y;
    let words = place === null || place === undefined ? "" : number(true_(place));
    if (words && bucket > 1) {
      const [low, high] = ["least", "greatest"].map((name) => gd.data.find((t) => t.name === name).y[i]);
      if (low !== null && low !== undefined && low !== high) words += " (" + number(true_(low)) + " – " + number(true_(high)) + ")";
    }
    return [words, ...kinds].filter(Boolean).join(", ") || document.getElementById("scrub").dataset.missing;
  }

  // Of a heat map: the row in which most of that step's values are.
  function distribution(gd, step) {
    const heat = gd.data[0];
    if (!heat || heat.type !== "heatmap" || !heat.x.length) return "";
    const i = reach(heat.x, step);
    const at = i > 0 && (i === heat.x.length || step - heat.x[i - 1] < heat.x[i] - step) ? i - 1 : i;
    let best = 0;
    for (let row = 1; row < heat.z.length; row++) if (heat.z[row][at] > heat.z[best][at]) best = row;
    const share = heat.z.length ? heat.z[best][at] : null;
    return share === null || share === undefined ? "" : Math.round(share * 100) + " %: " + heat.text[best];
  }

  function place(gd, step, kind) {
    let line = gd.querySelector(":scope > .cursor." + kind);
    const axis = gd._fullLayout.xaxis;
    const inside = step !== null && step >= Math.min(...axis.range) && step <= Math.max(...axis.range);
    if (!inside) { if (line) line.hidden = true; return; }
    if (!line) {
      line = document.createElement("div");
      line.className = "cursor " + kind;
      gd.append(line);
    }
    const size = gd._fullLayout._size;
    line.hidden = false;
    line.style.transform = "translateX(" + (axis._offset + axis.d2p(step)) + "px)";
    line.style.top = size.t + "px";
    line.style.height = size.h + "px";
  }

  // The charts, their words and the scrubber, at the step under the pointer or else at the one that was chosen.
  function show() {
    const step = hovered === null ? glance.step : hovered;
    for (const gd of plots()) {
      place(gd, hovered, "hovered");
      place(gd, glance.step, "chosen");
      const card = gd.closest("figure.chart");
      const at = card && card.querySelector(".caption .at");
      const words = step === null ? "" : said(gd, step);
      if (at && at.textContent !== words) at.textContent = words;
      if (card) card.classList.toggle("looked", step !== null);
    }
    scrub();
  }

  function ends() {
    const all = plots().map((gd) => gd.data.find((t) => t.name === "extent")).filter(Boolean);
    if (!all.length) return null;
    return [Math.min(...all.map((t) => t.x[0])), Math.max(...all.map((t) => t.x[t.x.length - 1]))];
  }

  function scrub() {
    const box = document.getElementById("scrub");
    if (!box) return;
    if (!box.firstChild) {
      const range = document.createElement("input");
      range.type = "range";
      range.step = 1;
      range.setAttribute("aria-label", box.dataset.label);
      range.addEventListener("input", () => choose(Number(range.value)));
      box.append(range, document.createElement("output"));
    }
    const [range, output] = box.children;
    const bounds = ends();
    range.disabled = !bounds;
    if (!bounds) return;
    [range.min, range.max] = bounds;
    if (document.activeElement !== range || glance.step === null) range.value = glance.step === null ? bounds[1] : glance.step;
    const step = hovered === null ? glance.step : hovered;
    const words = step === null ? box.dataset.newest : box.dataset.at.replace("{step}", step.toLocaleString("en"));
    if (output.textContent !== words) output.textContent = words;
    range.setAttribute("aria-valuetext", words);
    here().classList.toggle("held", glance.paused);
    here().classList.toggle("pinned", glance.step !== null);
  }

  // The charts follow at once; the rest of the page hears of it when the hand rests.
  function choose(step) {
    glance = { ...glance, step };
    show();
    clearTimeout(telling);
    telling = setTimeout(() => { if (here()) tell(glance); telling = 0; }, QUIET_MS);
  }

  function tell(seen) {
    glance = seen;
    send("glance", { data: seen });
  }

  // What the page says is older than what a hand just chose and has not told yet.
  function hear(seen) { if (seen && !telling) glance = seen; }

  function walk(by) {
    const bounds = ends();
    if (!bounds) return;
    const from = glance.step === null ? bounds[1] : glance.step;
    choose(Math.min(Math.max(from + by, bounds[0]), bounds[1]));
  }

  function follow() {
    clearTimeout(telling);
    telling = 0;
    hovered = null;
    tell({ step: null, paused: false });
    if (view && view.from !== null) look({ from: null, to: null });
    else redraw();
  }

  function hold() {
    const paused = !glance.paused;
    tell({ ...glance, paused });
    if (!paused) redraw();
  }

  function next(list, key) { return list[(list.indexOf(key) + 1) % list.length]; }

  function typing(target) { return target.closest && target.closest("input, textarea, select, [contenteditable], dialog"); }

  const KEYS = {
    ArrowLeft: (event) => walk(event.shiftKey ? -10 : -1),
    ArrowRight: (event) => walk(event.shiftKey ? 10 : 1),
    f: follow,
    " ": hold,
    g: () => look({ scale: next(SCALES, view.scale) }),
    l: () => look({ scale: next(SCALES, view.scale) }),
    s: () => look({ smooth: next(SMOOTHS, view.smooth) }),
    "/": () => document.getElementById("find").focus(),
    "?": () => document.getElementById("keys").showModal(),
    Escape: () => { if (glance.step !== null) choose(null); else if (view.from !== null) look({ from: null, to: null }); },
  };

  document.addEventListener("keydown", (event) => {
    if (!here() || !view || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === " " && event.target.closest("button, summary, a")) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
  });

  document.addEventListener("click", (event) => {
    if (!here()) return;
    const keys = document.getElementById("keys");
    if (event.target.closest("#show-keys")) keys.showModal();
    if (event.target.closest("#shut-keys")) keys.close();
    const picture = event.target.closest("button.picture");
    if (picture) save(picture.closest("figure.chart"));
    for (const open of document.querySelectorAll("main.run details.choice[open], main.run details.save[open]"))
      if (!open.contains(event.target) || event.target.closest(".offered button, .files a, .files button")) open.open = false;
  });

  // Drawn here, in the browser, as it is seen.
  function save(card) {
    const gd = card.querySelector(".js-plotly-plot");
    const name = card.querySelector(".name").textContent;
    const size = gd.getBoundingClientRect();
    const ground = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
    const layout = { ...gd.layout, paper_bgcolor: ground, plot_bgcolor: ground, title: { text: name.replaceAll("<", "&lt;"), font: { size: 13 } } };
    layout.margin = { ...layout.margin, t: 34 };
    window.Plotly.downloadImage({ data: gd.data, layout }, {
      format: "png", scale: 2, width: Math.round(size.width), height: Math.round(size.height) + 26,
      filename: (here().dataset.run || "run") + " " + name.replace(/[^\w.-]+/g, "_"),
    });
  }

  function under(event) {
    const drag = event.target.closest && event.target.closest("main.run .nsewdrag");
    const gd = drag && drag.closest(".js-plotly-plot");
    if (!gd || !gd._fullLayout) return null;
    const axis = gd._fullLayout.xaxis;
    const step = Math.round(axis.p2d(event.clientX - gd.getBoundingClientRect().left - axis._offset));
    return Number.isFinite(step) ? step : null;
  }

  document.addEventListener("pointermove", (event) => {
    if (!here() || event.pointerType === "touch") return;
    const step = under(event);
    if (step === hovered) return;
    hovered = step;
    requestAnimationFrame(show);
  }, { passive: true });
  document.addEventListener("pointerdown", (event) => {
    const step = here() ? under(event) : null;
    if (step !== null) window.vitalsCharts.wire(event.target.closest(".js-plotly-plot"));
    pressed = step === null ? null : { step, x: event.clientX, y: event.clientY, at: event.timeStamp, gd: event.target.closest(".js-plotly-plot") };
  }, { capture: true, passive: true });
  document.addEventListener("pointerup", (event) => {
    const began = pressed;
    pressed = null;
    if (owed) { clearTimeout(owed); owed = 0; setTimeout(redraw, QUIET_MS); }
    if (!began || !here()) return;
    const still = Math.hypot(event.clientX - began.x, event.clientY - began.y) < 5 && event.timeStamp - began.at < 500;
    if (still) choose(glance.step === began.step ? null : began.step);
    // A drawing that was under way came in between: the chart that knows of the drag is gone, its steps are known here.
    const step = began.gd.isConnected ? null : under(event);
    if (step !== null && Math.abs(event.clientX - began.x) > 5) look({ from: Math.min(step, began.step), to: Math.max(step, began.step + 1) });
  }, { capture: true, passive: true });
  window.addEventListener("resize", () => { if (here()) requestAnimationFrame(show); });
  // A chart that was just drawn gets its cursor, and the scrubber its end.
  let settling = 0;
  function settle() {
    clearTimeout(settling);
    settling = setTimeout(settled, 120);
  }

  function settled() {
    if (!here()) return;
    show();
    plots().forEach(window.vitalsCharts.wire);
    const asked = [view && view.run, view && view.from, view && view.to].join();
    if (strayed !== asked && astray()) { strayed = asked; steps(); } else heat();
  }

  document.addEventListener("pointercancel", () => { pressed = null; }, { capture: true, passive: true });

  window.vitalsRun = { view: () => view, held: () => glance.paused, zoomed, redraw };
  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.run = {
    address(asked, seen) {
      if (!asked) return;
      window.vitalsConnection.beat("");
      turn(asked);
      hear(seen);
      const query = new URLSearchParams();
      for (const key of KEYS_OF_VIEW) if (asked[key]) query.set(key, asked[key]);
      if (asked.from !== null && asked.to !== null) { query.set("from", asked.from); query.set("to", asked.to); }
      if (asked.more.length) query.set("more", asked.more.join(","));
      if (asked.closed.join() !== "progress,rlvitals") query.set("closed", asked.closed.join(","));
      if (glance.step !== null) query.set("step", glance.step);
      if (glance.paused) query.set("paused", "1");
      const tail = query.toString();
      history.replaceState(history.state, "", location.pathname + (tail ? "?" + tail.replaceAll("%2C", ",") : ""));
    },

    zoom() { clicked().forEach((move) => zoomed(move.value)); },

    unzoom(clicks, now) {
      if (clicks && now) look({ from: null, to: null });
    },

    pick(_clicks, now) {
      const hits = clicked();
      if (hits.length !== 1 || !now) return;
      const { what, value } = idOf(hits[0]);
      const fresh = { ...now, [what]: value };
      send("view", { data: what === "attempt" ? { ...fresh, from: null, to: null } : fresh });
    },

    find(words, now) {
      if (now && (words || "") !== (now.find || "")) send("view", { data: { ...now, find: words || "" } });
    },

    fold(_clicks, now) {
      const hits = clicked();
      if (hits.length === 1 && now) send("view", { data: { ...now, closed: flip(now.closed, idOf(hits[0]).family).sort() } });
    },

    more(_clicks, now) {
      const hits = clicked();
      if (hits.length === 1 && now) send("view", { data: { ...now, more: flip(now.more, idOf(hits[0]).family).sort() } });
    },

    // The browser is not told of what a page begins with, but when its charts are there. After a beat, too: its pulse
    // comes back; were the beat itself an input, Dash would hold this back until the long wait for it is over.
    glanced(seen, told, asked) {
      if (asked) view = asked;
      if (told) pulse = told;
      hear(seen);
      settle();
    },

    // The charts are there; what else the page shows may have come before or after them.
    drawn(told) { if (told) send("pulse", { data: window.vitalsShown(told) }); },

    // A beat that was asked for before a person held the charts brings what they are not to show.
    tails(told) { if (told && !glance.paused) window.vitalsCharts.take(told); },

    hold(clicks) { if (clicks) hold(); },
    follow(clicks) { if (clicks) follow(); },
  };

  function zoomed(move) {
    if (!view || !move) return;
    if (move["xaxis.autorange"] && view.from !== null) look({ from: null, to: null });
    if (move["xaxis.range[0]"] === undefined) return;
    const from = Math.floor(move["xaxis.range[0]"]);
    const to = Math.max(Math.ceil(move["xaxis.range[1]"]), from + 1);
    if (from !== view.from || to !== view.to) look({ from, to });
  }
})();
