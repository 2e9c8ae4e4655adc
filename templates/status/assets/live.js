"use strict";
// Keeps the page current: asks for the page again when the server says that something changed, and
// swaps the parts marked data-live without losing opened details, the scroll position or the focus.
(() => {
  const sign = document.getElementById("live");
  const openKeys = (root) =>
    new Map([...root.querySelectorAll("details[data-key]")].map((d) => [d.dataset.key, d.open]));

  function swap(old, fresh) {
    if (old.innerHTML === fresh.innerHTML) return;
    const open = openKeys(old);
    const focused = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    const { scrollX, scrollY } = window;
    for (const details of fresh.querySelectorAll("details[data-key]")) {
      if (open.has(details.dataset.key)) details.open = open.get(details.dataset.key);
    }
    old.replaceChildren(...fresh.childNodes);
    window.scrollTo(scrollX, scrollY);
    if (focused) old.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  let busy = false, again = false;
  async function refresh() {
    if (document.hidden || !getSelection().isCollapsed || busy) { again = true; return; }
    busy = true; again = false;
    try {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const old of document.querySelectorAll("[data-live]")) {
        const fresh = page.querySelector(`[data-live="${old.dataset.live}"]`);
        if (fresh) swap(old, fresh);
      }
    } catch { again = true; }
    busy = false;
  }

  function say(state, text) { sign.className = `live ${state}`; sign.textContent = text; }
  const source = new EventSource("/live");
  source.addEventListener("open", () => say("on", "live"));
  source.addEventListener("error", () => say("off", "not live: the server does not answer"));
  source.addEventListener("changed", refresh);

  function coarse(s) {
    const m = Math.floor(s / 60), h = Math.floor(s / 3600), d = Math.floor(s / 86400);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${m} min`;
    if (s < 86400) return `${h} h ${String(m % 60).padStart(2, "0")} min`;
    return s < 1209600 ? `${d} d ${h % 24} h` : `${d} d`;
  }
  setInterval(() => {
    for (const time of document.querySelectorAll("time[data-rel]")) {
      const s = Math.trunc((Date.parse(time.dateTime) - Date.now()) / 1000);
      const text = Math.abs(s) < 5 ? "now" : s > 0 ? `in ${coarse(s)}` : `${coarse(-s)} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
    if (again) refresh();
  }, 5000);
})();
