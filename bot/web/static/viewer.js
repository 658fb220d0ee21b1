// Comfort only: the page is complete without this script.
"use strict";
(() => {
  const title = document.getElementById("title").textContent;
  document.title = `${document.title.replace(" · Footnote", "")} · ${title}`;

  const mark = document.getElementById("found-1") ?? document.getElementById("hit");
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const showMark = () => {
    const box = mark.getBoundingClientRect();
    const bar = document.querySelector(".bar").getBoundingClientRect();
    if (box.bottom > innerHeight - 40 || box.top < bar.bottom) {
      mark.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    }
  };
  if (mark && !location.hash) {
    const picture = document.querySelector(".paper img");
    if (picture.complete) showMark();
    else picture.addEventListener("load", showMark, { once: true });
  }

  // The link is renewed halfway to its end, for as long as the server lets it live on. Nothing is loaded anew.
  const RETRY = 60_000;
  let base = document.body.dataset.base;
  const adopt = (tokens) => {
    const renew = (text) => text.replace(/[\w-]{112}/g, (token) => tokens[token] ?? token);
    for (const name of ["href", "action"]) {
      for (const one of document.querySelectorAll(`[${name}*="v/"]`)) {
        one.setAttribute(name, renew(one.getAttribute(name)));
      }
    }
    base = renew(base);
    history.replaceState(history.state, "", renew(location.href));
  };
  const renewAfter = (seconds) => {
    const due = Date.now() + 500 * seconds;
    const end = Date.now() + 1000 * seconds;
    const wait = () => setTimeout(tick, Math.max(1000, Math.min(due - Date.now(), RETRY)));
    const tick = async () => {
      if (Date.now() < due) return wait(); // a computer that slept wakes between two looks
      if (Date.now() > end) return;
      try {
        const answer = await fetch(`${base}/renewal`, { method: "POST" });
        if (answer.status === 503) return wait();
        if (!answer.ok) return;
        const { tokens, seconds: left } = await answer.json();
        const old = base;
        adopt(tokens);
        if (base !== old) renewAfter(left);
      } catch { wait(); }
    };
    wait();
  };
  if (base) renewAfter(Number(document.body.dataset.seconds)); // a page without a link never ends

  const sizes = [...document.getElementsByName("zoom")];
  const zoom = (step) => {
    const now = sizes.findIndex((size) => size.checked);
    if (!sizes.length) return;
    sizes[Math.max(0, Math.min(sizes.length - 1, now + step))].checked = true;
    if (mark) mark.scrollIntoView({ block: "center", inline: "center", behavior: still ? "instant" : "smooth" });
  };
  const zoomKeys = { "+": 1, "=": 1, "-": -1, "0": -9 };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea")) return;
    const field = document.querySelector(`[data-focus="${CSS.escape(event.key)}"]`);
    if (field) { event.preventDefault(); field.focus(); return field.select(); }
    if (event.key in zoomKeys) return zoom(zoomKeys[event.key]);
    const paged = event.key.startsWith("Page");
    if (paged && document.documentElement.scrollHeight > innerHeight + 8 && !atEdge(event.key)) return;
    const link = document.querySelector(`[data-key~="${CSS.escape(event.key)}"]`);
    if (link) { event.preventDefault(); link.click(); }
  });
  const atEdge = (key) => key === "PageDown"
    ? Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight - 4
    : scrollY <= 0;
})();
