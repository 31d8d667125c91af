// Runs side by side: a zoom of one chart is one of all, and stands in the address.
(function () {
  "use strict";

  const VIEW = { type: "view", page: "compare" };
  const HOUR = 3600;

  function show(view) {
    window.dash_clientside.set_props(VIEW, { data: view });
    const query = new URLSearchParams(Object.entries(view).filter(([, value]) => value));
    query.delete("add");
    query.delete("and");
    const tail = query.toString().replaceAll("%2C", ",");
    history.replaceState(history.state, "", location.pathname + (tail ? "?" + tail : ""));
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.compare = {
    zoom(_relayouts, view) {
      const moves = window.dash_clientside.callback_context.triggered.filter((t) => t.value);
      if (moves.length !== 1 || !view) return;
      const move = moves[0].value;
      const scale = view.by === "time" ? HOUR : 1;
      if (move["xaxis.autorange"] && view.from) { show({ ...view, from: "", to: "" }); return; }
      if (move["xaxis.range[0]"] === undefined) return;
      let [from, to] = [Number(move["xaxis.range[0]"]) * scale, Number(move["xaxis.range[1]"]) * scale];
      if (!view.by) { from = Math.floor(from); to = Math.max(Math.ceil(to), from + 1); }
      if (String(from) !== view.from || String(to) !== view.to) show({ ...view, from: String(from), to: String(to) });
    },

    unzoom(clicks, view) {
      if (clicks && view) show({ ...view, from: "", to: "" });
    },
  };
})();
