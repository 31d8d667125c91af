// Runs before the first paint, so that a dark page never flashes white.
(function () {
  var stored = null, colours = null;
  try {
    stored = localStorage.getItem("rlvitals-theme");
    colours = localStorage.getItem("rlvitals-colours");
  } catch (refused) { /* private mode: follow the system */ }
  var dark = window.matchMedia && matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = (stored === "light" || stored === "dark" ? stored : dark ? "dark" : "light") + (colours === "safe" ? "-safe" : "");
})();
