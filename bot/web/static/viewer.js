// Progressive enhancement: the page is complete without this script.
"use strict";
(() => {
  const title = document.getElementById("title").textContent;
  document.title = `${document.title.replace(" · Footnote", "")} · ${title}`;

  const place = /^#found-(\d+)$/.exec(location.hash)?.[1] ?? "1";
  const places = [`#found-${place}`, `.text [data-place="${place}"]`, "#hit", ".text .hit"];
  const target = () => places.map((one) => document.querySelector(one)).find((one) => one?.getClientRects().length);
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const showMark = (behavior = "instant") => {
    target()?.scrollIntoView({ block: "center", inline: "center", behavior });
  };
  const isHidden = (mark) => {
    const box = mark.getBoundingClientRect();
    return box.bottom > innerHeight - 40 || box.top < document.querySelector(".bar").getBoundingClientRect().bottom;
  };
  const picture = document.querySelector(".paper img");
  if (target()) {
    const open = () => { // until the picture is there, another view may have been chosen
      const mark = target();
      if (mark && isHidden(mark)) showMark();
    };
    if (!picture?.getClientRects().length || picture.complete) open();
    else picture.addEventListener("load", open, { once: true });
  }
  for (const one of document.getElementsByName("view")) one.addEventListener("change", () => showMark());

  // When zoomed in, by any means, load a higher resolution.
  const WIDEST = 1900; // pixels of the widest picture of a whole page, and a little
  const lookFromNear = () => {
    const pixels = picture.clientWidth * devicePixelRatio * (visualViewport?.scale ?? 1);
    document.body.classList.toggle("near", pixels > WIDEST);
  };
  if (picture) {
    for (const one of [window, visualViewport]) one?.addEventListener("resize", lookFromNear);
    lookFromNear();
  }

  const copy = document.getElementById("copy");
  if (copy) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      const quote = document.querySelector(".quote").textContent;
      const text = `\u201c${quote}\u201d\n\u2014 ${document.getElementById("citation").textContent}`;
      const done = await putInClipboard(text);
      document.getElementById("copied").textContent = done ? "Copied" : "Your browser didn’t allow copying";
    });
  }
  const putInClipboard = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { // browsers have no clipboard for pages without TLS
      const field = document.body.appendChild(document.createElement("textarea"));
      field.value = text;
      field.select();
      const done = document.execCommand("copy");
      field.remove();
      return done;
    }
  };

  // Renew the link halfway to its expiry, as long as the server permits. Nothing is reloaded.
  const RETRY = 60_000;
  let base = document.body.dataset.base;
  const adopt = (tokens) => {
    const renew = (text) => text.replace(/[\w-]{112}/g, (token) => tokens[token] ?? token);
    for (const name of ["href", "action"]) {
      for (const one of document.querySelectorAll(`[${name}*="v/"]`)) {
        one.setAttribute(name, renew(one.getAttribute(name)));
      }
    }
    for (const one of document.querySelectorAll(".sharp img")) { // those that are there would be loaded again
      if (!one.naturalWidth) one.setAttribute("src", renew(one.getAttribute("src")));
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
    showMark(still ? "instant" : "smooth");
  };
  const zoomKeys = { "+": 1, "=": 1, "-": -1, "0": -9 };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea")) return;
    const field = document.querySelector(`[data-focus="${CSS.escape(event.key)}"]`);
    const more = document.getElementById("more");
    if (field && more && !field.getClientRects().length) more.checked = true;
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
