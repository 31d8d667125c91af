// A log on its way to the service: dropped or chosen, sent by the browser itself, with its progress told.
(function () {
  "use strict";

  let under_way = null;

  function say(english, values) { return window.vitalsDisplay.say(english, values); }

  function tell(words, share) {
    const place = document.getElementById("import-progress");
    if (!place) return;
    place.hidden = false;
    place.querySelector("span").textContent = words;
    const bar = place.querySelector("progress");
    if (share === null) bar.removeAttribute("value");
    else bar.value = share;
  }

  function done(told) {
    under_way = null;
    const place = document.getElementById("import-progress");
    if (place) place.hidden = true;
    window.dash_clientside.set_props("import-told", { data: { ...told, at: Date.now() } });
    if (told.status === 200 && told.body.run)
      history.replaceState(history.state, "", location.pathname + "?" + new URLSearchParams({ run: told.body.run }));
  }

  function read(text) {
    try { return JSON.parse(text); } catch (odd) { return {}; }
  }

  function value(name) {
    const field = document.getElementById("import-" + name);
    return field ? field.value.trim() : "";
  }

  function send(files) {
    if (under_way) return;
    if (files.length !== 1)
      return done({ status: 0, file: "", body: { title: say("One file at a time"), detail: say("A tracker's folder has its log in one file: choose that, or pack the folder's file.") } });
    const file = files[0];
    const query = new URLSearchParams();
    for (const name of ["project", "name", "run", "format", "every"]) if (value(name)) query.set(name, value(name));
    if (!query.get("name")) query.set("name", file.name.slice(0, 200));
    const call = under_way = new XMLHttpRequest();
    call.open("POST", "/api/v1/import?" + query);
    call.setRequestHeader("content-type", "application/octet-stream");
    call.upload.onprogress = (told) => tell(say("Sending {file} …", { file: file.name }), told.lengthComputable ? told.loaded / told.total : null);
    call.upload.onload = () => tell(say("The service reads {file} …", { file: file.name }), null);
    call.onload = () => done({ status: call.status, file: file.name, body: read(call.responseText) });
    call.onerror = () => done({ status: 0, file: file.name, body: { title: say("The service does not answer"), detail: say("Nothing was imported. Try again.") } });
    tell(say("Sending {file} …", { file: file.name }), 0);
    call.send(file);
  }

  // Dash has no field for a file that leaves it where it is.
  function pick() {
    const place = document.getElementById("import-picker");
    if (!place || place.firstChild) return;
    const field = document.createElement("input");
    field.type = "file";
    field.id = "import-file";
    place.appendChild(field);
  }
  new MutationObserver(pick).observe(document.documentElement, { childList: true, subtree: true });

  function zone(event) {
    return event.target.closest && event.target.closest(".drop");
  }

  document.addEventListener("dragover", (event) => {
    const at = document.querySelector(".drop");
    if (!at) return;
    event.preventDefault(); // a file that misses the place does not replace the page
    at.classList.toggle("over", Boolean(zone(event)));
  });
  document.addEventListener("dragleave", (event) => {
    const at = zone(event);
    if (at) at.classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    const at = document.querySelector(".drop");
    if (!at) return;
    event.preventDefault();
    at.classList.remove("over");
    if (zone(event) && event.dataTransfer.files.length) send(event.dataTransfer.files);
  });
  document.addEventListener("change", (event) => {
    if (event.target.id !== "import-file" || !event.target.files.length) return;
    send(event.target.files);
    event.target.value = "";
  });
})();
