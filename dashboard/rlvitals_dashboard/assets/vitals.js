// What the browser does by itself: theme, address bar, zoom, folding, relative times, and the watch over the heart.
(function () {
  "use strict";

  const { clicked, idOf } = window.vitalsClicks;
  function send(id, props) { window.dash_clientside.set_props(id, props); }

  function alive(trouble) { window.vitalsConnection.beat(trouble); }
  function quiet() { return window.vitalsConnection.quiet(); }

  // A pulse with the fingerprints of what the page shows, as they stand in it with its blocks. Dash holds back what asks
  // for a beat while the next is awaited, so that the pulse kept there may be an answer behind, or a drawing's ahead.
  function shown(pulse) {
    const place = document.querySelector("#page .prints");
    if (!place) return pulse;
    try {
      return { ...pulse, prints: { ...pulse.prints, ...JSON.parse(place.textContent) } };
    } catch (garbled) {
      // An extension of the browser may change any text; all blocks are then drawn anew.
      return { ...pulse, prints: {} };
    }
  }
  window.vitalsShown = shown;

  const steps = [[60, 1, "s", "second"], [3600, 60, "min", "minute"], [86400, 3600, "h", "hour"], [Infinity, 86400, "d", "day"]];
  function relative(seconds) {
    const size = Math.abs(seconds);
    const [, scale, unit, long] = steps.find(([limit]) => size < limit);
    const amount = size < 2 ? 0 : Math.floor(size / scale);
    const said = window.vitalsDisplay.fromNow(seconds < 0 ? amount : -amount, long);
    if (said) return said;
    const words = Math.floor(size / scale) + " " + unit;
    return seconds < 0 ? "in " + words : size < 2 ? "just now" : words + " ago";
  }
  function tick() {
    for (const time of document.querySelectorAll("time.ago")) {
      const words = time.dateTime ? relative((Date.now() - Date.parse(time.dateTime)) / 1000) : "";
      if (time.textContent !== words) time.textContent = words;
    }
  }
  setInterval(tick, 1000);
  // A time that was just drawn is said at once. What tick writes must settle, or this would go round for ever.
  new MutationObserver(tick).observe(document.documentElement, { childList: true, subtree: true });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.vitals = {
    theme(clicks) {
      return clicks ? window.vitalsDisplay.flip() : document.documentElement.dataset.theme;
    },

    routed(place) { window.vitalsConnection.routed(place); },

    beat(pulse) {
      if (!pulse) return;
      alive(pulse.trouble);
      if (pulse.redraw && !window.vitalsRun.held()) window.vitalsRun.redraw();
      else send("pulse", { data: { ...shown(pulse), redraw: undefined, trouble: undefined, beat: Date.now() } });
    },

    // A lost connection ends the chain of beats without a word; after a silence the chain is begun anew.
    watch(_ticks, pulse) {
      if (quiet()) send(...(pulse ? ["pulse", { data: { ...shown(pulse), nudge: Date.now() } }] : ["redraw", { data: Date.now() }]));
    },

    // The same for the pages of several blocks; there is at most one of them at a time.
    pageBeat(beats, ids) {
      if (!ids.length || !beats[0]) return;
      alive(beats[0].trouble);
      send({ type: "pulse", page: ids[0].page }, { data: { ...shown(beats[0]), trouble: undefined, beat: Date.now() } });
    },

    pageWatch(_ticks, pulses, ids) {
      if (ids.length && quiet()) send(ids[0], { data: { ...shown(pulses[0]), nudge: Date.now() } });
    },

    // After a deed the page looks at once, whether or not the service tells of a change.
    nudge(done, pulses, ids) {
      if (done && ids.length) send(ids[0], { data: { ...shown(pulses[0]), version: 0, nudge: Date.now() } });
    },

    // Of what was typed, only what belongs to the button that was pressed.
    deed(_clicks, values, ids) {
      const pressed = clicked();
      if (!pressed.length) return;
      const { deed, subject } = idOf(pressed[0]);
      const whose = [subject, subject.split(":")[0]];
      const mine = ids.map((id, i) => [id, values[i]]).filter(([id]) => id.deed === deed && whose.includes(id.subject));
      send("deed", { data: { deed, subject, said: Object.fromEntries(mine.map(([id, value]) => [id.name, value])), at: Date.now() } });
    },

    // What a page was asked for, in its address.
    query(asked) {
      if (asked) history.replaceState(history.state, "", location.pathname + "?" + new URLSearchParams(asked).toString().replaceAll("%2C", ",").replaceAll("%40", "@"));
    },

    // A fault leads to its line in the editor.
    toLine() {
      const hits = clicked();
      const area = document.getElementById("draft");
      if (hits.length !== 1 || !area) return;
      const line = idOf(hits[0]).line;
      const lines = area.value.split("\n");
      const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
      area.focus();
      area.setSelectionRange(start, start + lines[line - 1].length);
      area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 6);
    },
  };
})();
