// Uploads PDFs that are dropped or chosen, and polls each one's progress until it is searchable.
"use strict";
(() => {
  const box = document.getElementById("upload");
  const list = document.getElementById("uploads");
  const root = box.dataset.root;
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const button = (text, act) => {
    const element = make("button", "plain", text);
    element.type = "button";
    element.addEventListener("click", act);
    return element;
  };
  const place = () => box.querySelector("select")?.value ?? box.dataset.place;

  // XMLHttpRequest, because fetch() does not report upload progress.
  const post = (path, body, onSent) => new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", root + path);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", ({ loaded, total }) => onSent?.(loaded / total));
    request.addEventListener("load", () => (request.status === 200 ? done(request.response[0]) : fail()));
    request.addEventListener("error", fail);
    request.send(body);
  });
  const form = (values) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(values)) data.append(name, value);
    return data;
  };

  const newRow = (name) => {
    const row = make("li");
    const bar = make("progress");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", `Upload of ${name}`);
    const said = make("p", "", "Waiting.");
    said.setAttribute("role", "status");
    row.append(make("b", "", name), bar, said);
    list.prepend(row);
    const say = (text, state = "") => { said.textContent = text; row.className = state; };
    return { row, bar, say };
  };
  const ask = ({ row, bar, say }, { text, token }) => {
    say(text, "held");
    const choices = make("p", "choices");
    const decide = async (decision) => {
      choices.remove();
      if (decision === "cancel") say("Cancelled. I kept nothing of it.");
      try {
        const answer = await post(`console/uploads/held/${token}`, form({ decision }));
        if (decision !== "cancel") show({ row, bar, say }, answer);
      } catch { say("Something went wrong. Please upload it again.", "refused"); }
    };
    choices.append(...[["Replace it", "replace"], ["Keep both", "both"], ["Cancel", "cancel"]]
      .map(([label, decision]) => button(label, () => decide(decision))));
    row.append(choices);
  };
  const STAGES = {
    waiting: "Uploaded. Waiting to be read.",
    reading: "Reading it.",
    quick: "Searchable. Still reading it in full.",
    full: "Ready.",
  };
  const readListAgain = async () => {
    const old = document.getElementById("found");
    if (!old || old.contains(document.activeElement)) return; // nobody loses their place
    const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    old.replaceWith(page.getElementById("found") ?? old);
  };
  const follow = async ({ say }, { file, sha256 }) => {
    let before;
    for (let seconds = 1; ; seconds = Math.min(seconds * 1.3, 10)) {
      await new Promise((done) => setTimeout(done, 1000 * seconds));
      let known;
      try {
        known = await (await fetch(`${root}console/uploads/${sha256}?file=${encodeURIComponent(file)}`)).json();
      } catch { continue; } // asked again
      const now = known.rung ?? known.state;
      if (now !== before) readListAgain().catch(() => {}); // the page stays as it was
      before = now;
      if (known.state === "quarantined") return say(known.reason ?? "I couldn’t read it.", "refused");
      say(STAGES[now] ?? known.reason ?? known.state, known.rung ? "kept" : "");
      if (known.state === "live" && known.is_last) return;
    }
  };
  const show = (shown, answer) => {
    shown.bar.remove();
    if (answer.state === "held") return ask(shown, answer);
    shown.say(answer.text, answer.state);
    if (answer.state === "kept") follow(shown, answer);
  };
  const upload = async (file, where) => {
    const shown = newRow(file.name);
    const sent = (share) => {
      shown.bar.value = share;
      shown.say(share < 1 ? `${Math.round(100 * share)} % sent` : "Sent. Saving it.");
    };
    await (queue = queue.then(async () => {
      try { show(shown, await post("console/uploads", form({ place: where, file }), sent)); } catch {
        shown.bar.remove();
        shown.say("Something went wrong. Please try again in a minute.", "refused");
      }
    }));
  };
  let queue = Promise.resolve();
  const take = (files) => {
    const where = place();
    if (where) for (const file of files) upload(file, where);
  };

  const input = box.querySelector("input[type=file]");
  input.addEventListener("change", () => { take(input.files); input.value = ""; });
  for (const one of box.querySelectorAll(".no-script")) one.hidden = true;
  for (const one of box.querySelectorAll(".script")) one.hidden = false;

  const isFiles = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = place() ? "copy" : "none";
    box.classList.toggle("over", Boolean(place()));
  });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) box.classList.remove("over"); });
  addEventListener("drop", (event) => {
    if (!isFiles(event)) return;
    event.preventDefault();
    box.classList.remove("over");
    take(event.dataTransfer.files);
  });
})();
