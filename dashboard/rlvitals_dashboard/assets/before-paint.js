// Runs before the first paint, so that a dark page never flashes white; and where a file of the page does not come, as
// when the service starts anew meanwhile, it says so and asks for the page again until all do.
(function () {
  var AGAIN_MS = 2000, waiting = false;
  function ask() {
    fetch(location.href, { cache: "no-store" }).then(function (answer) {
      if (answer.ok) location.reload(); else setTimeout(ask, AGAIN_MS);
    }, function () { setTimeout(ask, AGAIN_MS); });
  }
  // Told by the page, too, where the script that draws it is not there.
  window.vitalsIncomplete = function () {
    if (waiting) return;
    waiting = true;
    setTimeout(ask, AGAIN_MS);
    document.getElementById("incomplete").hidden = false;
  };
  addEventListener("error", function (event) {
    if (event.target.tagName === "SCRIPT" && document.getElementById("incomplete") && !document.querySelector("#page main")) window.vitalsIncomplete();
  }, true);

  var stored = null, colours = null;
  try {
    stored = localStorage.getItem("rlvitals-theme");
    colours = localStorage.getItem("rlvitals-colours");
  } catch (refused) { /* private mode: follow the system */ }
  var dark = window.matchMedia && matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = (stored === "light" || stored === "dark" ? stored : dark ? "dark" : "light") + (colours === "safe" ? "-safe" : "");
})();
