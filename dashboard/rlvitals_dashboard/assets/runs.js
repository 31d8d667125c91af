// The table of runs: draws a row for each run, touches only rows that changed, and keeps what is chosen and asked for.
(function () {
  "use strict";

  const { clicked, idOf } = window.vitalsClicks;
  const FULL_LOOK_MS = 15000, TYPING_MS = 250, NAMES_SHOWN = 5;
  const DEFAULTS = { archived: "no", sort: "-light" };
  const COLUMNS = 12;
  let rows = new Map(), order = [], view = {}, chosen = new Set(), words = {}, heads = {}, bodies = new Map();
  let version = 0, since = "", lastFull = 0, urgent = false, typing = 0;

  function send(id, props) { window.dash_clientside.set_props(id, props); }
  function by(id) { return document.getElementById(id); }
  function say(name, values) { return words[name].replace(/\{(\w+)\}/g, (_all, key) => values[key]); }
  function counted(count, one, many) { return say(count === 1 ? one : many, { count: count.toLocaleString(document.documentElement.lang) }); }
  function plain(pieces) { return pieces.map((piece) => (typeof piece === "string" ? piece : piece[0])).join(""); }

  function make(tag, className, ...children) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children);
    return node;
  }

  // Pieces of text, never markup: what would not be seen is marked.
  function text(pieces) {
    return pieces.map((piece) => {
      if (typeof piece === "string") return document.createTextNode(piece);
      const odd = make("mark", "odd", piece[0]);
      odd.title = piece[1];
      return odd;
    });
  }

  function badge([tone, mark, word]) {
    const shape = make("span", "mark", mark);
    shape.setAttribute("aria-hidden", "true");
    return make("span", "badge tone-" + tone, shape, make("span", "", word));
  }

  function absent(word, why) {
    const node = make("span", "muted", word);
    node.title = why;
    return node;
  }

  function cell(of, ...children) {
    const node = make("td", "of-" + of, make("div", "in", ...children));
    const head = heads[of];
    if (head) node.dataset.label = head.label;
    if (head && head.numeric) node.classList.add("numeric");
    return node;
  }

  function box(row) {
    const input = make("input");
    input.type = "checkbox";
    input.checked = chosen.has(row.id);
    input.setAttribute("aria-label", say("choose", { name: plain(row.name) }));
    return make("td", "pick", make("label", "", input));
  }

  function who(row) {
    const link = make("a", "name", ...text(row.name));
    link.href = row.href;
    return cell("name", link, make("div", "reason", ...text(row.reason)));
  }

  function people(row) {
    const marks = row.labels.map((label) => make("span", "run-chip label", ...text(label)));
    marks.push(...row.tags.map((tag) => make("span", "run-chip", ...text(tag))));
    if (row.more) marks.push(make("span", "run-chip", say("more", { count: row.more })));
    if (row.archived) marks.push(make("span", "run-chip", words.archived));
    const owner = row.owner.length ? make("span", "who", ...text(row.owner)) : make("span", "muted", words.nobody);
    return cell("owner", owner, make("div", "chips", ...marks));
  }

  function seen(row) {
    const time = make("time", "ago", row.seen.slice(0, 19).replace("T", " ") + " UTC");
    time.dateTime = time.title = row.seen;
    return cell("seen", time);
  }

  function draw(row) {
    const alerts = row.alerts.length ? row.alerts.map(badge) : [make("span", "muted", words.none)];
    const node = make(
      "tr", "run tone-" + row.tone, box(row),
      cell("light", badge(row.light), ...(row.state ? [badge(row.state)] : [])),
      who(row),
      cell("project", ...text(row.project)),
      cell("framework", make("div", "", ...text(row.framework)), make("div", "muted", ...text(row.model))),
      cell("step", row.step),
      cell("rate", row.rate),
      cell("kl_coef", ...(row.kl === null ? [absent(words.missing, words.no_kl)] : [row.kl])),
      cell("gpu_hours", ...(row.gpu === null ? [absent(words.missing, words.no_ranks)] : [row.gpu])),
      cell("firing", ...alerts),
      people(row),
      seen(row),
    );
    node.dataset.run = row.id;
    node.dataset.print = row.print;
    if (chosen.has(row.id)) node.classList.add("chosen");
    return node;
  }

  // One row anew; everything else stays as it is, also what is being typed or pointed at.
  function put(row) {
    const known = rows.get(row.id);
    if (known && known.row.print === row.print) return;
    const node = draw(row);
    if (known && known.node.isConnected) {
      const held = known.node.contains(document.activeElement) && document.activeElement.tagName;
      known.node.replaceWith(node);
      if (held) (node.querySelector(held.toLowerCase()) || node).focus();
    }
    rows.set(row.id, { row, node });
  }

  function folded() { return new Set((view.fold || "").split(",").filter(Boolean).map(decodeURIComponent)); }

  // A body for each group, in the order in which the runs first name it.
  function body(table, group) {
    const known = bodies.get(group);
    if (known) return known;
    const made = make("tbody");
    if (view.group) {
      const button = make("button", "fold");
      button.dataset.group = group;
      const head = make("th", "", button, make("span", "count muted"));
      head.colSpan = COLUMNS;
      head.scope = "rowgroup";
      made.append(make("tr", "group", head));
    }
    table.append(made);
    bodies.set(group, made);
    return made;
  }

  function arrange() {
    const table = document.querySelector(".runs-table");
    if (!table) return;
    const groups = new Map(), shut = folded();
    table.classList.toggle("grouped", Boolean(view.group));
    for (const id of order) {
      const found = rows.get(id);
      const group = view.group ? found.row.group : "";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(found);
    }
    for (const [group, node] of bodies) if (!groups.has(group)) { node.remove(); bodies.delete(group); }
    let before = table.tHead;
    for (const [group, found] of groups) {
      const node = body(table, group);
      if (before.nextElementSibling !== node) before.after(node);
      before = node;
      if (view.group) headOf(node, found, !shut.has(group));
      const shown = view.group && shut.has(group) ? [] : found.map((one) => one.node);
      settle(node, shown, view.group ? 1 : 0);
    }
  }

  function settle(node, shown, from) {
    const wanted = new Set(shown);
    for (const child of [...node.children].slice(from)) if (!wanted.has(child)) child.remove();
    shown.forEach((child, place) => {
      const there = node.children[place + from];
      if (there !== child) node.insertBefore(child, there || null);
    });
  }

  function headOf(node, found, open) {
    const button = node.querySelector(".fold"), firing = found.reduce((sum, one) => sum + one.row.firing, 0);
    const name = found[0].row.project;
    button.replaceChildren(make("span", "chevron", open ? "▾" : "▸"), ...text(name));
    button.setAttribute("aria-expanded", String(open));
    const told = counted(found.length, "one_run", "many_runs") + (firing ? ", " + counted(firing, "one_alert", "many_alerts") : "");
    node.querySelector(".count").textContent = told;
  }

  function take(told) {
    since = told.since || since;
    for (const row of told.rows) {
      const known = rows.get(row.id);
      if (!told.full && (!known || known.row.place !== row.place)) urgent = true;
      if (known || told.full) put(row);
    }
    if (!told.full) return;
    urgent = false;
    lastFull = Date.now();
    order = told.order;
    const wanted = new Set(order);
    for (const id of rows.keys()) if (!wanted.has(id)) { rows.delete(id); chosen.delete(id); }
    arrange();
    state(told);
    choose();
  }

  function state(told) {
    const summary = by("runs-summary"), empty = by("runs-empty");
    if (!summary || !empty) return;
    if (summary.textContent !== told.summary) summary.textContent = told.summary;
    by("runs-list").hidden = told.empty !== "";
    empty.querySelector(".first-run").hidden = told.empty !== "none";
    empty.querySelector(".unfit").hidden = told.empty !== "unfit";
    by("runs-bar").hidden = told.empty === "none";
  }

  function ask(full) {
    const prints = full ? Object.fromEntries([...rows].map(([id, one]) => [id, one.row.print])) : {};
    send("runs-pulse", { data: { version, since, view, full, prints, at: Date.now() } });
  }

  function narrow() { return ["q", "light", "state", "project", "framework", "owner", "label"].some((name) => view[name]) || view.archived === "only"; }

  function show() {
    const clear = by("runs-clear");
    if (clear) clear.hidden = !narrow();
    const more = by("runs-more");
    if (more) more.classList.toggle("primary", ["state", "project", "framework", "owner", "label"].some((name) => view[name]));
    for (const button of document.querySelectorAll("#runs-bar [data-light]"))
      button.setAttribute("aria-pressed", String((view.light || "").split(",").includes(button.dataset.light)));
    const sort = view.sort || DEFAULTS.sort, column = sort.replace("-", "");
    for (const button of document.querySelectorAll(".runs-table [data-sort]")) {
      const here = button.dataset.sort === column, falling = sort.startsWith("-");
      button.querySelector(".way").textContent = here ? (falling ? " ↓" : " ↑") : "";
      if (here) button.parentNode.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else button.parentNode.removeAttribute("aria-sort");
    }
    const query = new URLSearchParams(Object.entries(view).filter(([name, value]) => value && value !== DEFAULTS[name]));
    const tail = query.toString().replaceAll("%2C", ",");
    history.replaceState(history.state, "", location.pathname + (tail ? "?" + tail : ""));
  }

  function look(changes) {
    view = { ...view, ...changes };
    show();
    if ("group" in changes || "fold" in changes) regroup();
    if (Object.keys(changes).some((name) => name !== "fold" && name !== "group")) ask(true);
  }

  function regroup() {
    for (const node of bodies.values()) node.remove();
    bodies = new Map();
    arrange();
  }

  // What is chosen, by id and name.
  function pairs() { return [...chosen].filter((id) => rows.has(id)).map((id) => [id, plain(rows.get(id).row.name)]); }

  function choose() {
    const bar = by("runs-bulk"), all = by("runs-all");
    if (!bar || !all) return;
    const picked = pairs();
    for (const place of bar.querySelectorAll(".how-many")) {
      const told = counted(picked.length, "one_run", "many_runs");
      if (place.textContent !== told) place.textContent = told;
    }
    const named = picked.slice(0, NAMES_SHOWN).map((pair) => pair[1].slice(0, 40)).join(", ");
    bar.querySelector(".which").textContent = named + (picked.length > NAMES_SHOWN ? " …" : "");
    const compare = by("runs-compare");
    compare.href = compare.dataset.way + picked.slice(0, 6).map((pair) => encodeURIComponent(pair[0])).join(",");
    bar.hidden = !picked.length;
    const whole = picked.length > 0 && picked.length === order.length;
    all.textContent = whole ? "☑" : picked.length ? "◪" : "☐";
    all.setAttribute("aria-pressed", String(whole));
  }

  function pick(ids, on) {
    for (const id of ids) {
      on ? chosen.add(id) : chosen.delete(id);
      const node = rows.get(id).node;
      node.classList.toggle("chosen", on);
      node.querySelector("input").checked = on;
    }
    choose();
  }

  function sortBy(column) {
    const now = view.sort || DEFAULTS.sort, words = ["name", "project", "framework", "owner"].includes(column);
    const first = (words ? "" : "-") + column, second = (words ? "-" : "") + column;
    look({ sort: now === first ? second : first });
  }

  function clearAll() {
    send("runs-search", { value: "" });
    for (const field of document.querySelectorAll("#runs-bar select")) if (field.dataset.filter !== "group") field.value = field.dataset.filter === "archived" ? "no" : "";
    look({ q: "", light: "", state: "", project: "", framework: "", owner: "", label: "", archived: "no" });
  }

  // A way within the dashboard needs no new document.
  function follow(event, link) {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    history.pushState({}, "", link.href);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
    window.scrollTo(0, 0);
  }

  function tab(button) {
    for (const one of button.parentNode.children) {
      const here = one === button;
      one.setAttribute("aria-selected", String(here));
      one.tabIndex = here ? 0 : -1;
      by(one.getAttribute("aria-controls")).hidden = !here;
    }
    button.focus();
  }

  document.addEventListener("click", (event) => {
    const at = (way) => event.target.closest(way);
    let hit;
    if (!at(".page.runs")) return;
    if ((hit = at("a.name, #runs-compare"))) follow(event, hit);
    else if ((hit = at("[data-sort]"))) sortBy(hit.dataset.sort);
    else if ((hit = at("[data-light]"))) {
      const lights = (view.light || "").split(",").filter(Boolean), light = hit.dataset.light;
      look({ light: (lights.includes(light) ? lights.filter((one) => one !== light) : [...lights, light]).join(",") });
    } else if ((hit = at("button.fold"))) {
      const shut = folded();
      shut.has(hit.dataset.group) ? shut.delete(hit.dataset.group) : shut.add(hit.dataset.group);
      look({ fold: [...shut].map(encodeURIComponent).join(",") });
    } else if ((hit = at("#runs-more"))) hit.setAttribute("aria-expanded", String(by("runs-bar").classList.toggle("open")));
    else if (at("#runs-all")) pick(order, chosen.size < order.length);
    else if (at("#runs-none")) pick([...chosen], false);
    else if (at("#runs-clear, .runs-clear")) clearAll();
    else if ((hit = at("[role=tab]"))) tab(hit);
  });

  document.addEventListener("change", (event) => {
    const row = event.target.closest(".runs-table tr.run"), filter = event.target.dataset.filter;
    if (row && event.target.type === "checkbox") pick([row.dataset.run], event.target.checked);
    else if (filter && event.target.closest("#runs-bar")) look({ [filter]: event.target.value });
  });

  document.addEventListener("input", (event) => {
    if (event.target.id !== "runs-search") return;
    clearTimeout(typing);
    typing = setTimeout(() => look({ q: event.target.value }), TYPING_MS);
  });

  document.addEventListener("keydown", (event) => {
    const search = by("runs-search"), hit = event.target.closest && event.target.closest("[role=tab]");
    if (hit && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      const tabs = [...hit.parentNode.children], step = event.key === "ArrowRight" ? 1 : tabs.length - 1;
      tab(tabs[(tabs.indexOf(hit) + step) % tabs.length]);
    }
    if (search && event.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.vitalsRuns = {
    // The page came: everything is drawn anew from what it brought.
    open(told) {
      if (!told || !by("runs-list")) return "";
      [rows, bodies, chosen] = [new Map(), new Map(), new Set()];
      [version, since, urgent] = [0, "", false];
      words = JSON.parse(by("runs-list").dataset.words);
      heads = {};
      for (const button of document.querySelectorAll(".runs-table [data-sort]"))
        heads[button.dataset.sort] = { label: button.firstChild.textContent, numeric: button.parentNode.classList.contains("numeric") };
      view = told.view;
      for (const field of document.querySelectorAll("#runs-bar select")) field.value = field.dataset.chosen;
      take(told);
      show();
      ask(false);
      return String(order.length);
    },

    beat(told) {
      if (!told || !by("runs-list")) return;
      window.vitalsConnection.beat(told.trouble);
      version = told.version;
      if (told.rows) take(told);
      ask(urgent || Date.now() - lastFull > FULL_LOOK_MS);
    },

    watch() { if (by("runs-list") && window.vitalsConnection.quiet()) ask(true); },

    // With what is chosen as it is pressed, see `vitals.deed`.
    deed(_clicks, values, ids) {
      const pressed = clicked();
      if (!pressed.length) return;
      const { deed } = idOf(pressed[0]);
      const said = Object.fromEntries(ids.map((id, i) => [id.name, values[i]]));
      send("bulk-deed", { data: { deed, chosen: pairs(), said, at: Date.now() } });
    },

    done(at) { if (at && by("runs-list")) ask(true); },
  };
})();
