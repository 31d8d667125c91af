// Whether the service can be reached and what stands in the way: says so on every page, and finds the way back.
(function () {
  "use strict";

  const SILENT_MS = 25000, IDLE_MS = 6000, AGAIN_MS = 2500, PATIENCE_MS = 8000, ASTRAY_MS = 3000, GRACE_MS = 2500, CRASH_MS = 60000;
  const root = document.documentElement;
  let state = "well", words = "", since = Date.now(), troubled = "";
  let lastBeat = Date.now(), lastAnswer = Date.now(), lastAsked = Date.now();
  let crash = "", crashedAt = 0;
  let asking = false, beating = false, broken = false, lostAt = 0, place = null, strayed = 0;

  function send(id, props) { window.dash_clientside.set_props(id, props); }
  function failed() { return document.querySelector("#page > .failed"); }
  function silent() { return Date.now() - (beating ? lastBeat : lastAnswer) > SILENT_MS; }

  function question() {
    const run = location.pathname.match(/\/run\/([^/]+)/);
    return "/api/v1" + (run ? "/runs/" + run[1] : "") + "/changes?after=0&wait_s=0";
  }

  const STATES = { 401: "over", 403: "refused", 404: "gone", 410: "gone" };

  async function ask() {
    if (asking) return;
    asking = true;
    lastAsked = Date.now();
    let found = "dead", told = "";
    try {
      const answer = await fetch(question(), { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
      found = answer.ok ? "well" : STATES[answer.status] || "trouble";
      if (!answer.ok) told = await answer.json().then((problem) => problem.detail || problem.title || "", () => "");
    } catch (nobody) { /* no answer at all */ }
    asking = false;
    arrive(found, told);
  }

  function arrive(found, told) {
    const healed = found === "well" && state !== "well";
    if (found !== state) since = Date.now();
    state = found;
    words = told;
    if (found === "well") {
      lastAnswer = Date.now();
      if (healed) broken = true;
      const page = failed();
      if ((page && page.classList.contains("heals")) || (strayed && (healed || Date.now() - strayed > 4 * ASTRAY_MS))) {
        strayed = 0;
        send("retry", { data: Date.now() });
      }
    }
    show();
  }

  // Of the banner's blocks, which are all in the page, at most one is shown.
  function show() {
    const lost = lostAt && Date.now() - lostAt > GRACE_MS;
    let shown = state !== "well" ? state : troubled ? "trouble" : lost || silent() ? "lost" : "";
    if (failed() && shown !== "dead") shown = "";
    if ((root.dataset.connection || "") !== shown) root.dataset.connection = shown;
    const block = shown && document.querySelector("#failure > ." + shown);
    if (block) {
      const told = block.querySelector(".told"), time = block.querySelector("time");
      const said = (state !== "well" ? words : troubled).slice(0, 400);
      if (told && told.textContent !== said) told.textContent = said;
      const at = new Date(state !== "well" ? since : lostAt || lastBeat).toISOString();
      if (time.dateTime !== at) { time.dateTime = at; time.title = at; }
    }
    sign(shown);
  }

  function sign(shown) {
    const dot = document.getElementById("live-sign"), word = document.getElementById("live-word");
    if (!dot || !word) return;
    const ill = shown || (failed() && state !== "well");
    const now = !ill ? "live" : shown === "lost" ? "silent" : "trouble";
    if (dot.dataset.state !== now) dot.dataset.state = now;
    if (dot.title !== troubled) dot.title = troubled;
    const said = ill ? word.dataset.lost : word.dataset.live;
    if (said && word.textContent !== said) word.textContent = said;
  }

  // What the service said of its own stumbling goes once nothing has stumbled for a while.
  function forget() {
    const at = document.querySelector("#crash time");
    const told = at ? at.dateTime : "";
    if (told !== crash) [crash, crashedAt] = [told, Date.now()];
    else if (told && Date.now() - crashedAt > CRASH_MS) send("crash", { children: null });
  }

  // For undo buttons, which no page here has, Dash keeps all that was ever set: each beat of a page left open.
  function forgetUndo() {
    for (const store of window.dash_stores || []) store.getState().history.past.length = 0;
  }

  function watch() {
    const now = Date.now();
    forget();
    forgetUndo();
    if (place !== null && location.pathname !== place) strayed = strayed || now;
    else strayed = 0;
    const page = failed();
    const uneasy = state !== "well" || broken || troubled || (page && page.classList.contains("heals"));
    const astray = strayed && now - strayed > ASTRAY_MS;
    const still = now - Math.max(lastBeat, lastAnswer) > IDLE_MS;
    if (!document.hidden && (still || uneasy || astray) && now - lastAsked > AGAIN_MS) ask();
    show();
  }
  setInterval(watch, 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });

  // Dash says of a question without an answer nothing, and a deed would be under way for ever.
  const fetched = window.fetch;
  window.fetch = (...given) => {
    const answer = fetched(...given);
    if (/_dash-update-component/.test(given[0]) && given[1] && /"(bulk-)?deed\.data"/.test(given[1].body))
      answer.then((told) => { if (told.status >= 500) unanswered(); }, unanswered);
    return answer;
  };
  function unanswered() {
    const said = window.vitalsDisplay.say("The service did not answer. Look whether it was done before you try again.");
    const word = { type: "Div", namespace: "dash_html_components", props: { className: "notice tone-critical", children: said } };
    send("verdict-place", { className: "" });
    send("verdict", { children: word });
    ask();
  }

  // The socket lives in a worker, which tells the page alone when it is lost and when it is back.
  const Native = window.SharedWorker;
  if (Native)
    window.SharedWorker = function (...given) {
      const worker = new Native(...given);
      worker.port.addEventListener("message", (message) => {
        const kind = message.data && message.data.type;
        if (kind === "disconnected") [broken, lostAt] = [true, lostAt || Date.now()];
        if (kind === "connected") lostAt = 0;
        if (kind === "disconnected" || (kind === "connected" && broken)) ask();
      });
      return worker;
    };

  window.vitalsConnection = {
    // A page heard from the service; `trouble` is what the service said was wrong.
    beat(trouble) {
      beating = true;
      lastBeat = Date.now();
      [broken, lostAt] = [false, 0];
      troubled = trouble || "";
      if (troubled || (state !== "well" && state !== "gone")) ask();
      show();
    },
    // Whether a page's chain of beats has broken off and can be begun anew: whoever is told so begins it.
    quiet() {
      const due = !document.hidden && state === "well" && (broken || silent());
      if (due) [broken, lastBeat] = [false, Date.now()];
      return due;
    },
    routed(told) {
      if (!told) return;
      place = told.path;
      beating = false;
      lastBeat = lastAnswer = Date.now();
      troubled = "";
      if (failed() || state !== "well") ask();
      show();
    },
  };
})();
