// The pages behind one button, where the bar has no room for them.
(function () {
  "use strict";

  function open(wanted) {
    const button = document.getElementById("menu-toggle");
    if (!button) return;
    button.setAttribute("aria-expanded", String(wanted));
    button.parentElement.dataset.menu = wanted ? "open" : "";
  }
  function isOpen() {
    const button = document.getElementById("menu-toggle");
    return Boolean(button) && button.getAttribute("aria-expanded") === "true";
  }

  document.addEventListener("click", (press) => {
    const target = press.target.closest ? press.target : null;
    if (target && target.closest("#menu-toggle")) return open(!isOpen());
    if (isOpen() && !(target && target.closest("#nav") && !target.closest("#nav a"))) open(false);
  });
  document.addEventListener("keydown", (press) => {
    if (press.key !== "Escape" || !isOpen()) return;
    open(false);
    document.getElementById("menu-toggle").focus();
  });
})();
