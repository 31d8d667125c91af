// Gives a run's charts other steps, and new ones: those in sight first, the others when the browser has time.
(function () {
  "use strict";

  const SLOW_MS = 150;
  const GRAPH_EVENTS = ["relayout", "restyle", "hover", "unhover", "click", "selected", "deselect"].map((name) => "plotly_" + name);
  let going = null;

  function send(id, props) { window.dash_clientside.set_props(id, props); }
  function plot(card) { return [...card.querySelectorAll(".js-plotly-plot")].find((gd) => gd.data && gd._fullData && gd._fullLayout); }
  function cards() { return [...document.querySelectorAll("main.run figure.chart:not(.heat)")].filter(plot); }
  function metricOf(gd) { return JSON.parse(gd.closest('[id^="{"]').id).metric; }
  function linear(gd) { const line = gd.data.find((t) => t.name === "value"); return !line || !line.meta || line.meta.linear === null; }
  function frame() { return new Promise((done) => requestAnimationFrame(done)); }
  function idle() { return new Promise((done) => (window.requestIdleCallback ? requestIdleCallback(done, { timeout: 200 }) : setTimeout(done, 1))); }

  function inSight(card) {
    const box = card.getBoundingClientRect();
    return box.bottom > 0 && box.top < window.innerHeight && box.width > 0;
  }

  async function ask(view, frame, some, signal) {
    const place = location.pathname.split("/run/")[0] + "/charts/" + encodeURIComponent(view.run);
    const body = JSON.stringify({ view, frame, theme: document.documentElement.dataset.theme, metrics: some.map((card) => metricOf(plot(card))) });
    const answer = await fetch(place, { method: "POST", headers: { "content-type": "application/json" }, body, signal });
    if (!answer.ok) throw new Error("the service answered " + answer.status);
    return answer.json();
  }

  // Where the answer takes long, the axis alone is there first, with what the charts have.
  function preview(view, some) {
    if (view.from === null) return;
    for (const gd of some.map(plot)) if (gd && gd.isConnected) window.Plotly.relayout(gd, { "xaxis.range": [view.from, view.to] });
  }

  // Answers with what of the card's words has to be said anew.
  async function draw(card, part, view) {
    const gd = plot(card);
    if (!gd || !part) return [];
    const before = linear(gd);
    waiting.delete(gd);
    const layout = { ...part.figure.layout, autosize: true, height: undefined, width: undefined };
    await window.Plotly.react(gd, part.figure.data, layout);
    wire(gd);
    aim(card, view);
    const metric = metricOf(gd), words = [];
    if (linear(gd) !== before) words.push([{ type: "caption", metric }, { children: part.caption }]);
    const marks = card.querySelector(".marks:not(.limits)");
    if (part.marks.length || (marks && marks.firstChild)) words.push([{ type: "marks", metric }, { children: part.marks }]);
    return words;
  }

  // The files to keep have the steps that are seen.
  function aim(card, view) {
    for (const link of card.querySelectorAll(".files a")) {
      const to = new URL(link.href);
      for (const key of ["from", "to"]) if (view[key] === null) to.searchParams.delete(key); else to.searchParams.set(key, view[key]);
      link.href = to.pathname + to.search;
    }
  }

  // Dash's component keeps a copy of its figure, draws that anew at each event, and tells the whole page of it.
  function wire(gd) {
    if (gd.vitalsWired || !gd._ev || !gd._ev.listeners("plotly_relayout").length) return;
    gd.vitalsWired = true;
    for (const name of GRAPH_EVENTS) gd.removeAllListeners(name);
    gd.on("plotly_relayout", (move) => window.vitalsRun.zoomed(move));
  }

  // What a beat goes on with, of the charts of several answers.
  function join(one, other) {
    if (!one) return other;
    const joined = Object.fromEntries(["at", "scales", "smooth"].map((key) => [key, { ...one[key], ...other[key] }]));
    return { ...other, ...joined, enveloped: [...one.enveloped, ...other.enveloped] };
  }

  async function give(view, drawnBy, all, signal) {
    const near = all.filter(inSight), far = all.filter((card) => !near.includes(card));
    const slow = setTimeout(() => preview(view, near), SLOW_MS);
    let pulse = null;
    for (const some of [near, far].filter((list) => list.length)) {
      const words = [];
      const told = await ask(view, drawnBy, some, signal).finally(() => clearTimeout(slow));
      if (told.redraw) return false;
      for (const card of some) {
        if (some === far) await idle();
        if (signal.aborted) return true;
        words.push(...await draw(card, told.parts[metricOf(plot(card))], view));
      }
      await frame();
      if (signal.aborted) return true;
      for (const [id, props] of words) send(id, props);
      if (!pulse) send("tools", { children: told.tools });
      const held = pulse && pulse.zoomed;
      pulse = join(pulse, told.pulse);
      if (!held && (pulse.zoomed || some === far || !far.length)) send("pulse", { data: window.vitalsShown(pulse) });
    }
    return true;
  }

  // New points that a chart did not get yet, by chart.
  const waiting = new Map();
  let draining = false;

  function take(tails) {
    // A beat that was asked for before a zoom: there the charts stand still.
    const shown = window.vitalsRun.view();
    if (shown && shown.from !== null) return;
    for (const gd of waiting.keys()) if (!gd.isConnected) waiting.delete(gd);
    for (const gd of cards().map(plot)) {
      const tail = tails[metricOf(gd)];
      if (tail) waiting.set(gd, [...(waiting.get(gd) || []), tail]);
    }
    if (!draining) drain();
  }

  async function drain() {
    draining = true;
    try {
      while (waiting.size) {
        const near = [...waiting.keys()].filter((gd) => inSight(gd.closest("figure")));
        if (near.length) { near.forEach(extend); await frame(); continue; }
        await idle();
        const [far] = waiting.keys();
        if (far) extend(far);
      }
    } finally {
      draining = false;
    }
  }

  // A point that was drawn meanwhile is left out.
  function extend(gd) {
    const tails = waiting.get(gd), fresh = new Map();
    waiting.delete(gd);
    if (!gd.isConnected || !gd.data) return;
    for (const [{ x, y }, indices] of tails) {
      indices.forEach((trace, row) => {
        const line = fresh.get(trace) || { x: [], y: [] }, there = line.x.length ? line.x : gd.data[trace].x;
        const last = there.length ? there[there.length - 1] : -Infinity;
        x[row].forEach((step, i) => { if (step > last) { line.x.push(step); line.y.push(y[row][i]); } });
        fresh.set(trace, line);
      });
    }
    const grown = [...fresh].filter(([, line]) => line.x.length), of = (key) => grown.map(([, line]) => line[key]);
    const extent = gd.data.findIndex((line) => line.name === "extent"), bounds = gd.layout.xaxis.autorangeoptions;
    if (bounds && fresh.has(extent) && fresh.get(extent).x.length) bounds.clipmax = fresh.get(extent).x.at(-1);
    if (grown.length) window.Plotly.extendTraces(gd, { x: of("x"), y: of("y") }, grown.map(([trace]) => trace));
  }

  window.vitalsCharts = {
    wire,
    take,
    going: () => going !== null,
    // `drawnBy` is the fingerprint of what the charts were drawn by. False where they must be made anew.
    async show(view, drawnBy) {
      if (going) going.abort();
      const mine = going = new AbortController();
      const all = cards();
      try {
        return all.length > 0 && await give(view, drawnBy, all, mine.signal);
      } catch (trouble) {
        return mine.signal.aborted;
      } finally {
        if (going === mine) going = null;
      }
    },
  };
})();
