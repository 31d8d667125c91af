// What is shown once is copied; where the browser does not allow it, the text is chosen for the person to copy.
(function () {
  "use strict";

  // A link that is made shows what the address says when it is made.
  document.addEventListener("click", (press) => {
    const button = press.target.closest && press.target.closest('button[id*=\'"share"\']');
    if (!button) return;
    const id = JSON.parse(button.id), found = location.pathname.match(/\/run\/[^/]+(.*)$/);
    const view = (found ? found[1] : "") + location.search;
    if (id.type === "do") window.dash_clientside.set_props({ ...id, type: "say", name: "view" }, { value: view });
  }, true);

  document.addEventListener("click", (press) => {
    const button = press.target.closest && press.target.closest("button.copy");
    const secret = button && button.parentElement.querySelector(".secret");
    if (!secret) return;
    const choose = () => window.getSelection().selectAllChildren(secret);
    if (!navigator.clipboard) return choose();
    navigator.clipboard.writeText(secret.textContent).then(() => button.classList.add("copied"), choose);
  });
})();
