/* SnackOps in the browser: comfort only. Every page works without this file.

   What it listens to in the markup:
   data-go="o"           a link that the keys `g o` follow
   data-filter           the field that `/` focuses
   data-keys-list        a list in which `j` and `k` move (rows: data-keys-item, else tbody tr) and `x` ticks
   data-check-all="ids"  a box that ticks every input of that name in its form; data-checked-count shows how many
   data-poll             an element whose htmx requests are updates: they can be paused, and rest in a hidden tab
   data-stale            shown while updates fail
   data-announce="…"     on the root of a fragment: spoken when it changes, at most every 30 s
   data-needs-script     hidden in the markup, shown here */
"use strict";
(() => {
  const find = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const say = (text) => {
    const region = find("#announce");
    if (region && text) region.textContent = text;
  };

  // --- keys ---------------------------------------------------------------------------------------------------
  const TYPING = "input:not([type=checkbox],[type=radio],[type=button],[type=submit]),textarea,select,[contenteditable]";
  const TYPED = "input:not([type=checkbox],[type=radio],[type=button],[type=submit],[type=hidden])[id],textarea[id]";
  const NEXT_KEY_MS = 1500;
  let waitsSince = -NEXT_KEY_MS;

  const rowsOf = (list) => {
    const marked = all("[data-keys-item]", list);
    return marked.length ? marked : all("tbody tr", list);
  };
  const currentList = () => document.activeElement?.closest?.("[data-keys-list]") || find("[data-keys-list]");
  const currentRow = (rows) => rows.findIndex((row) => row.contains(document.activeElement));

  function move(step) {
    const list = currentList();
    const rows = list ? rowsOf(list) : [];
    if (!rows.length) return;
    const now = currentRow(rows);
    const to = now < 0 ? 0 : Math.min(Math.max(now + step, 0), rows.length - 1);
    const goal = find("[data-keys-open]", rows[to]) || find("a[href]", rows[to]) || find("input,button", rows[to]);
    goal?.focus();
    rows[to].scrollIntoView({ block: "nearest" });
  }

  function tick() {
    const list = currentList();
    if (!list) return;
    const rows = rowsOf(list);
    find("input[type=checkbox]", rows[currentRow(rows)] || document.createElement("div"))?.click();
  }

  function showKeys() {
    const panel = find("dialog.keys");
    if (panel && !panel.open) panel.showModal();
  }

  function focusFilter() {
    const field = find("[data-filter]");
    if (!field) return false;
    const folded = field.closest("details");
    if (folded) folded.open = true;
    field.focus();
    field.select?.();
    return true;
  }

  const SINGLE = { "?": showKeys, "/": focusFilter, j: () => move(1), k: () => move(-1), x: tick };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenu(true);
    if (document.body.dataset.singleKeys === "off") return;
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !/^[jk]$/.test(event.key)) return;
    if (event.target.closest?.(TYPING) || find("dialog[open]")) return;
    if (event.timeStamp - waitsSince < NEXT_KEY_MS) {
      waitsSince = -NEXT_KEY_MS;
      const link = /^[a-z]$/.test(event.key) && find(`a[data-go="${event.key}"]`);
      if (link) {
        event.preventDefault();
        link.click();
        return;
      }
    }
    if (event.key === "g") {
      waitsSince = event.timeStamp;
      return;
    }
    if (Object.hasOwn(SINGLE, event.key) && SINGLE[event.key]() !== false) event.preventDefault();
  });

  // --- small comforts -----------------------------------------------------------------------------------------
  function closeMenu(toSummary) {
    for (const menu of all("details.person[open]")) {
      if (toSummary && menu.contains(document.activeElement)) find("summary", menu).focus();
      menu.open = false;
    }
  }

  function countChecked() {
    for (const box of all("[data-check-all]")) {
      const boxes = all(`input[name="${box.dataset.checkAll}"]`, box.form || document);
      const checked = boxes.filter((one) => one.checked).length;
      box.checked = checked > 0 && checked === boxes.length;
      box.indeterminate = checked > 0 && checked < boxes.length;
      for (const place of all("[data-checked-count]", box.form || document)) place.textContent = checked;
    }
  }

  document.addEventListener("change", (event) => {
    const name = event.target.dataset?.checkAll;
    if (name) {
      for (const one of all(`input[name="${name}"]`, event.target.form || document)) one.checked = event.target.checked;
    }
    countChecked();
  });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("details.person")) closeMenu(false);
    if (event.target.closest("[data-show-keys]")) showKeys();
    if (event.target.closest("[data-pause]")) pause(!paused);
    const zone = event.target.closest("[data-browser-zone]");
    if (zone) find(zone.dataset.browserZone).value = browserZone;
  });

  const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  function offerZone() {
    for (const button of all("[data-browser-zone]")) {
      const field = find(button.dataset.browserZone);
      const known = field && [...field.options].some((option) => option.value === browserZone);
      if (!known || field.value === browserZone) continue;
      find("[data-zone-name]", button).textContent = browserZone;
      button.hidden = false;
    }
  }

  // --- updates ------------------------------------------------------------------------------------------------
  const isPoll = (event) => event.detail.elt?.matches?.("[data-poll]");
  let paused = false;

  function pause(on) {
    paused = on;
    document.documentElement.classList.toggle("paused", on);
    for (const button of all("[data-pause]")) button.setAttribute("aria-pressed", String(on));
    try {
      sessionStorage.setItem("paused", on ? "1" : "");
    } catch {
      // Storage may be forbidden; the choice then lasts for this page only.
    }
    if (!on) refresh();
  }

  function refresh() {
    for (const element of all("[data-poll]")) window.htmx?.trigger(element, "refresh");
  }

  function stale(on) {
    for (const note of all("[data-stale]")) {
      if (on && note.hidden) say(note.textContent.trim());
      note.hidden = !on;
    }
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isPoll(event) && (paused || document.hidden)) event.preventDefault();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && !paused) refresh();
  });
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(name, (event) => isPoll(event) && stale(true));
  }
  document.addEventListener("htmx:afterRequest", (event) => {
    if (isPoll(event) && event.detail.successful) stale(false);
  });

  // An update leaves alone what somebody reads aloud, selects or types, and gives back focus, opened details, and what
  // was ticked or typed.
  let kept = null;
  let spoken = { at: -Infinity, text: "" };

  function nameOf(element) {
    if (element.id) return `#${CSS.escape(element.id)}`;
    const href = element.getAttribute("href");
    return href ? `a[href="${CSS.escape(href)}"]` : null;
  }

  const announced = (part) => (part.dataset.announce ?? find("[data-announce]", part)?.dataset.announce) || "";

  // A page that comes in place of its living part (HX-Retarget: #main) waits while somebody is at something in it.
  function placeOf(event, isBusyIn) {
    const { target, elt } = event.detail;
    if (target.id !== "main") return target;
    const place = isBusyIn(target) ? elt : target;
    event.detail.selectOverride = `#${place.id}`;
    event.detail.target = place;
    return place;
  }

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!isPoll(event) || !event.detail.target) return;
    const selection = getSelection();
    const active = document.activeElement;
    const isBusyIn = (part) =>
      (part.contains(active) && active.matches(TYPING)) ||
      (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
    const target = placeOf(event, isBusyIn);
    if (isBusyIn(target)) {
      event.detail.shouldSwap = false;
      return;
    }
    const focused = target.contains(active) ? active : null;
    kept = {
      target: target.id,
      focus: focused && nameOf(focused),
      open: all("details[open][id]", target).map((one) => one.id),
      ticked: all("input[type=checkbox]:checked[id]", target).map((one) => one.id),
      typed: all(TYPED, target).filter((one) => one.value !== one.defaultValue).map((one) => [one.id, one.value]),
      words: announced(target),
    };
  });

  document.addEventListener("htmx:afterSwap", () => {
    if (!kept) return;
    const root = document.getElementById(kept.target);
    if (!root) return;
    for (const id of kept.open) document.getElementById(id)?.setAttribute("open", "");
    for (const id of kept.ticked) {
      const box = document.getElementById(id);
      if (box) box.checked = true;
    }
    for (const [id, value] of kept.typed) {
      const field = document.getElementById(id);
      if (field) field.value = value;
    }
    if (kept.focus && !root.contains(document.activeElement)) find(kept.focus, root)?.focus({ preventScroll: true });
    for (const element of all("[data-needs-script]", root)) element.hidden = false;
    const words = announced(root);
    if (words && words !== spoken.text && words !== kept.words && performance.now() - spoken.at > 30_000) {
      spoken = { at: performance.now(), text: words };
      say(words);
    }
    kept = null;
    countChecked();
  });

  // --- start --------------------------------------------------------------------------------------------------
  for (const element of all("[data-needs-script]")) element.hidden = false;
  for (const button of all("[data-pause]")) button.hidden = !find("[data-poll]");
  try {
    if (sessionStorage.getItem("paused")) pause(true);
  } catch {
    // As above.
  }
  offerZone();
  countChecked();
})();
