// Completions: keys that lead to the next step or completion, and what is told of the token that is pointed at.
(function () {
  "use strict";

  const typing = (target) => target.closest && target.closest("input, textarea, select, [contenteditable]");

  function tell(token) {
    const told = document.getElementById("token-told");
    if (!told || !token || !token.title) return;
    told.textContent = token.title;
    for (const other of document.querySelectorAll(".tok.at")) other.classList.remove("at");
    token.classList.add("at");
  }

  function walk(box, by) {
    const tokens = [...box.children];
    const here = tokens.findIndex((token) => token.classList.contains("at"));
    const next = tokens[Math.min(Math.max(here + by, 0), tokens.length - 1)];
    if (!next) return;
    tell(next);
    next.scrollIntoView({ block: "nearest" });
  }

  function go(link) { if (link) link.click(); }

  function neighbour(by) {
    const entries = [...document.querySelectorAll(".text-links .entry")];
    const here = entries.findIndex((entry) => entry.classList.contains("here"));
    return entries[here + by];
  }

  document.addEventListener("mouseover", (event) => tell(event.target.closest(".tokens .tok")));
  document.addEventListener("click", (event) => tell(event.target.closest(".tokens .tok")));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const box = event.target.closest && event.target.closest(".tokens");
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (box && by) { walk(box, by); event.preventDefault(); return; }
    if (event.key === "j" || event.key === "k") { go(neighbour(event.key === "j" ? 1 : -1)); return; }
    if (by && !(event.target.closest && event.target.closest("[tabindex]"))) {
      go(document.querySelector(`[data-key="${event.key}"] a`));
    }
  });
})();
