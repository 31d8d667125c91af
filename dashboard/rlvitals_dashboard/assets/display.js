// Language and colours: what was chosen, kept by the browser; and what the scripts say, in that language.
(function () {
  "use strict";

  const root = document.documentElement;
  const TYPED = "rlvitals-typed", YEAR_S = 31536000;
  const KEPT = "#page textarea[id], #page input[id]:not([type=password]):not([type=file]):not([type=hidden])";

  function phrases() {
    const place = document.getElementById("phrases");
    return place ? JSON.parse(place.dataset.phrases) : {};
  }

  function chosen(button) {
    const { language, colours } = button.dataset;
    return language === undefined ? (root.dataset.theme.endsWith("-safe") ? "safe" : "") === colours : root.lang === language;
  }

  function mark() {
    for (const button of document.querySelectorAll(".display-choice button")) {
      const pressed = String(chosen(button));
      if (button.getAttribute("aria-pressed") !== pressed) button.setAttribute("aria-pressed", pressed);
    }
  }

  function paint(base, colours) {
    root.dataset.theme = base + (colours ? "-safe" : "");
    try {
      localStorage.setItem("rlvitals-theme", base);
      localStorage.setItem("rlvitals-colours", colours);
    } catch (refused) { /* not kept, then */ }
    mark();
    return root.dataset.theme;
  }

  // The page is asked for anew in the other language; what was typed into it comes back.
  function speak(language) {
    const typed = [...document.querySelectorAll(KEPT)].filter((field) => field.value).map((field) => [field.id, field.value]);
    try { sessionStorage.setItem(TYPED, JSON.stringify({ at: location.pathname, typed })); } catch (refused) { /* lost, then */ }
    document.cookie = `rlvitals_language=${language}; path=/; max-age=${YEAR_S}; samesite=lax`;
    location.reload();
  }

  let waiting = null;
  try {
    waiting = JSON.parse(sessionStorage.getItem(TYPED));
    sessionStorage.removeItem(TYPED);
  } catch (refused) { /* nothing to bring back */ }
  if (waiting && waiting.at !== location.pathname) waiting = null;

  function bringBack() {
    if (!waiting) return;
    waiting.typed = waiting.typed.filter(([id, value]) => {
      const field = document.getElementById(id);
      if (!field) return true;
      if (field.value === value) return false;
      const kind = field.tagName === "TEXTAREA" ? HTMLTextAreaElement : HTMLInputElement;
      Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(field, value);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      return false;
    });
    if (!waiting.typed.length) waiting = null;
  }

  new MutationObserver(() => { mark(); bringBack(); }).observe(root, { childList: true, subtree: true });

  document.addEventListener("click", (event) => {
    const menu = document.querySelector(".display-choice[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
    const button = event.target.closest && event.target.closest(".display-choice button");
    if (!button) return;
    const { language, colours } = button.dataset;
    if (language !== undefined && language !== root.lang) speak(language);
    if (colours !== undefined)
      window.dash_clientside.set_props("theme", { data: paint(root.dataset.theme.split("-")[0], colours) });
  });
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.querySelector(".display-choice[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  const relative = root.lang === "en" ? null : new Intl.RelativeTimeFormat(root.lang, { numeric: "auto", style: "short" });

  window.vitalsDisplay = {
    // Light or dark; the choice of colours stays.
    flip() {
      const [base, safe] = root.dataset.theme.split("-");
      return paint(base === "dark" ? "light" : "dark", safe || "");
    },
    // The English sentence in the language of the page, with the values in their places.
    say(english, values) {
      return (phrases()[english] || english).replace(/\{(\w+)\}/g, (place, name) => (values && name in values ? values[name] : place));
    },
    // A time from now in the language of the page; null where the English words are meant.
    fromNow(amount, unit) { return relative && relative.format(amount, unit); },
  };
})();
