// What was pressed, as Dash tells it to a function of the browser: buttons that merely came in have no value.
(function () {
  "use strict";

  window.vitalsClicks = {
    clicked() { return window.dash_clientside.callback_context.triggered.filter((t) => t.value); },
    idOf(trigger) { return JSON.parse(trigger.prop_id.slice(0, trigger.prop_id.lastIndexOf("."))); },
  };
})();
