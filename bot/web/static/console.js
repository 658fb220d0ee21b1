// Asks, shows answers with their sources, and opens the cited page. Text is never inserted as HTML.
"use strict";
(() => {
  const at = (id) => document.getElementById(id);
  const make = (tag, className, text) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const writePath = (target, path) => {
    target.replaceChildren(...path.split(/(?<=\/)/).flatMap((part) => [part, make("wbr")]));
  };
  const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const channel = at("channel");
  const question = at("question");
  const thread = at("thread");
  const nothing = { files: 0, answering: 0, pages: 0, waiting: 0, quarantined: 0, rungs: [] };
  let known = { documents: [], suggestions: [], progress: nothing };

  // The channel's documents.
  const read = async (path) => {
    const response = await fetch(path, { cache: "no-store" });
    // The secret has changed: the page shown instead explains where it is.
    if (response.status === 401) location.reload();
    if (!response.ok) throw new Error(response.status);
    return response.json();
  };
  const describe = (doc) => {
    if (doc.state === "waiting") return doc.reason || "waiting";
    if (doc.state === "reading") return doc.reason || "reading";
    const pages = count(doc.pages, "page");
    if (doc.state !== "live") return doc.reason || "unreadable";
    const standing = doc.rung === "full" ? pages : `${pages}, still reading it in full`;
    return doc.reason ? `${standing}; ${doc.reason}` : standing;
  };
  const showDocuments = () => {
    const rows = known.documents.map((doc) => {
      const row = make("li");
      const link = make("a", "", doc.title || doc.file);
      link.href = doc.version ? `console/pages/${doc.version}` : `console/documents/${channel.value}/${doc.id}`;
      link.title = doc.file;
      row.append(link, make("span", `state ${doc.state}`, describe(doc)));
      return row;
    });
    const more = known.progress.files - rows.length;
    if (more > 0) rows.push(make("li", "small", `and ${more.toLocaleString("en")} more`));
    at("documents").replaceChildren(...rows);
  };
  const showProgress = () => {
    const { files, answering, quarantined, rungs } = known.progress;
    const parts = [];
    if (files) parts.push(answering < files ? `${answering} of ${count(files, "document")} ready` : count(files, "document"));
    if (quarantined) parts.push(`${quarantined} unreadable`);
    at("progress").textContent = parts.join(" · ");
    at("climb").replaceChildren(...rungs.filter((rung) => left(rung) > 0).map(showRung));
  };
  // Progress of each rung: the same numbers as in the log and the command line.
  const left = (rung) => known.progress.files - rung.files - rung.failed;
  const inSeconds = (seconds) => {
    if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
    return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
  };
  const showRung = (rung) => {
    const row = at("rung").content.firstElementChild.cloneNode(true);
    const { files, pages, waiting } = known.progress;
    const parts = [`${rung.files} of ${count(files, "file")}`];
    if (pages) parts.push(`${rung.pages} of ${waiting ? `${pages}+ pages` : count(pages, "page")}`);
    if (rung.pages_per_second) parts.push(`${rung.pages_per_second.toFixed(rung.pages_per_second < 10 ? 1 : 0)} pages/s`);
    if (rung.seconds_left) parts.push(`about ${inSeconds(rung.seconds_left)} left`);
    row.querySelector(".rung-name").textContent = rung.rung === "quick" ? "Searchable:" : "Read in full:";
    row.querySelector(".rung-numbers").textContent = parts.join(" · ");
    const bar = row.querySelector("progress");
    bar.value = (rung.files + rung.failed) / files;
    bar.setAttribute("aria-label", row.querySelector(".rung-name").textContent);
    return row;
  };

  // Approved web pages that the channel may cite.
  const showWeb = () => {
    const { web } = known;
    const unwell = web ? ["stale", "failing", "failing_for_a_week", "never", "changed", "lost_quotes"].filter((state) => web[state]) : [];
    const words = { never: "not fetched yet", failing_for_a_week: "failing for a week", lost_quotes: "no longer with the quoted text" };
    const counts = unwell.map((state) => `${web[state]} ${words[state] ?? state}`);
    at("web").textContent = web ? [count(web.pages, "web page"), ...counts].join(" · ") : "";
    at("web").title = counts.length ? "footnote sources check" : "";
  };

  // Folders that need attention.
  const approve = async (folder, button) => {
    button.disabled = true;
    try { await send(`console/folders/${folder.id}/approve`, { documents: folder.asked }); } finally { refresh(); }
  };
  const showAlarm = (folder) => {
    const row = at("alarm").content.firstElementChild.cloneNode(true);
    const [title, text] = row.children;
    title.textContent = folder.channel ? folder.location : `Folder ${folder.id} of a chat channel`;
    text.textContent = folder.channel ? folder.problem : "It needs your attention. Run: footnote folders";
    if (!folder.channel || !folder.asked.length) return row;
    const { asked, vanished } = folder;
    const names = row.querySelector("details");
    names.hidden = false;
    names.querySelector("summary").textContent = `Show ${asked.length === 1 ? "it" : "them"}`;
    const more = asked.length > vanished.length ? [`and ${asked.length - vanished.length} more`] : [];
    names.querySelector("ul").append(...[...vanished, ...more].map((file) => make("li", "", file)));
    const button = row.querySelector("button");
    button.hidden = false;
    button.textContent = `Delete ${asked.length === 1 ? "it" : `these ${asked.length}`} here too`;
    button.addEventListener("click", () => approve(folder, button));
    return row;
  };
  let alarms = "";
  const showAlarms = (folders) => {
    const alarming = folders.filter(({ problem, asks }) => problem || asks);
    if (JSON.stringify(alarming) === alarms) return;
    alarms = JSON.stringify(alarming);
    at("alarms").replaceChildren(...alarming.map(showAlarm));
  };

  // Suggested questions, tried when their files arrived.
  let tried = "";
  const showTries = () => {
    const box = at("tries");
    box.hidden = !known.suggestions.length;
    if (JSON.stringify(known.suggestions) === tried) return;
    tried = JSON.stringify(known.suggestions);
    box.querySelector("ul").replaceChildren(...known.suggestions.map(({ question: text, title }) => {
      const row = make("li");
      const button = make("button", "try", text);
      button.type = "button";
      button.title = title;
      button.addEventListener("click", () => { question.value = text; at("ask").requestSubmit(); });
      row.append(button);
      return row;
    }));
  };
  // Where PDFs are dropped, and any problem with that folder.
  const showPlace = (place) => {
    at("upload").hidden = !place;
    if (!place) return;
    const isOpen = !place.problem;
    at("upload").dataset.place = isOpen ? place.place : "";
    at("drop-here").textContent = isOpen ? "Drop PDFs on this page, or copy them to" : "You can’t drop PDFs here. Copy them to";
    at("drop-problem").textContent = place.problem ?? "";
    at("choose-files").hidden = !isOpen;
    if (at("folder").textContent !== place.folder) writePath(at("folder"), place.folder);
  };
  const showOpening = () => {
    const opening = at("opening");
    opening.hidden = thread.childElementCount > 0;
    at("thread-title").hidden = !opening.hidden;
    if (opening.hidden) return;
    const { answering: quick, waiting } = known.progress;
    showTries();
    const headline = at("headline");
    headline.textContent = quick ? "Ask your documents" : waiting ? "Reading your documents" : "Drop a PDF to begin";
    headline.append(make("sup", "", "1"));
    at("advice").textContent = quick
      ? `Answers come from the ${count(quick, "document")} in this channel${known.web ? " and its approved web pages" : ""}, and from nothing else.`
      : waiting ? "You can ask as soon as I’ve read the first one."
      : !at("upload").dataset.place ? "Copy PDFs to this channel’s folder. You can ask about them within seconds."
      : channel.options.length ? "Drop PDFs on this page, or copy them to the channel’s folder. You can ask about them within seconds."
      : "Drop PDFs on this page: they go to the folder below, which becomes your first channel. A folder next to it becomes another one.";
    at("hole").hidden = Boolean(quick || waiting);
    writePath(at("hole").querySelector("code"), at("folder").textContent);
    at("opening-note").textContent = "¹ Every sentence of an answer has a number. Click it to open the page with the passage marked.";
  };
  const refresh = async () => {
    let pause = 10000;
    try {
      const { channels } = await read("console/channels");
      showChannels(channels);
      if (channel.value) {
        known = await read(`console/channels/${channel.value}`);
        showPlace(known.upload);
      }
      showAlarms((await read("console/folders")).folders);
      if (!known.progress.files || known.progress.rungs.some((rung) => left(rung) > 0)) pause = 1500;
    } catch {
      // On a failed refresh, keep showing the last known state.
      at("progress").textContent = "Footnote isn’t responding. Trying again…";
      return 3000;
    }
    showDocuments(); showProgress(); showWeb(); showOpening();
    return pause;
  };
  const showChannels = (channels) => {
    const listed = [...channel.options].map((option) => option.value).join();
    if (listed === channels.map(({ id }) => String(id)).join()) return;
    const chosen = channel.value;
    channel.replaceChildren(...channels.map(({ id, name }) => new Option(name, id, false, String(id) === chosen)));
    channel.closest(".choose").hidden = !channels.length;
  };
  const keepFresh = async () => { const pause = await refresh(); setTimeout(keepFresh, pause); };

  // The cited page.
  const openPage = ({ view, title, file }, key) => {
    const path = view.replace(/^\//, "");
    if (at("reader-frame").getAttribute("src") !== path) at("reader-frame").src = path;
    at("reader-title").textContent = title;
    at("reader-file").textContent = title === file ? "" : file;
    at("reader-open").href = path;
    at("reader").hidden = false;
    document.body.classList.add("reading");
    for (const control of document.querySelectorAll("[data-keys]")) {
      if (control.dataset.keys.split(" ").includes(key)) control.setAttribute("aria-current", "true");
      else control.removeAttribute("aria-current");
    }
  };
  const closePage = () => {
    at("reader").hidden = true;
    document.body.classList.remove("reading");
    document.querySelectorAll('[aria-current="true"]').forEach((control) => control.removeAttribute("aria-current"));
  };
  at("reader-close").addEventListener("click", closePage);
  addEventListener("keydown", (event) => { if (event.key === "Escape") closePage(); });

  // A question and its answer.
  // A control opens one page; it is marked current while any of its citations is open.
  const control = (className, turn, numbers, page) => {
    const button = make("button", className);
    button.type = "button";
    const keys = numbers.map((number) => `${turn}.${number}`);
    button.dataset.keys = keys.join(" ");
    button.addEventListener("click", () => {
      if (page.web) open(page.web, "_blank", "noopener,noreferrer");
      else openPage(page, keys[0]);
    });
    return button;
  };
  const writeText = (target, { text, headings = [] }, citations, turn) => {
    for (const part of text.split(/(?<=\n)|(\[\d+\])/)) {
      if (!part) continue;
      const cited = citations.get(part);
      if (!cited) { target.append(headings.includes(part.trimEnd()) ? make("strong", "", part) : part); continue; }
      if (target.lastChild?.nodeType === Node.TEXT_NODE) target.lastChild.data = target.lastChild.data.trimEnd();
      target.append(markOf(cited, turn));
    }
  };
  // A number opens its page with its own quote marked strongest.
  const markOf = (cited, turn) => {
    const mark = control("cite", turn, [cited.number], cited);
    mark.textContent = cited.number;
    const place = cited.web ? cited.title : `page ${cited.page} of ${cited.title}`;
    mark.setAttribute("aria-label", `Source ${cited.number}: ${place}`);
    return mark;
  };
  const pictureOf = ({ image, alt }) => {
    const shown = make("img", "picture");
    shown.src = image.replace(/^\//, "");
    shown.alt = alt;
    return shown;
  };
  const writeSources = (target, sources, turn) => {
    for (const { numbers, label, quotes, picture, page, cited } of sources) {
      const column = make("span", "n");
      column.append(...(cited ? cited.map((one) => markOf(one, turn)) : numbers));
      const button = control("source", turn, numbers, page);
      if (picture) button.append(pictureOf(picture));
      button.append(make("span", "at", label));
      button.append(...quotes.map((quote) => make("span", "said", quote)));
      button.title = page.file;
      const row = make("li");
      row.append(column, button);
      target.append(row);
    }
  };
  const writeFigures = (target, figures, turn) => {
    const sources = figures.map(({ label, caption, file, view, image, alt }) => ({
      numbers: ["▧"], label, quotes: caption ? [caption] : [], picture: { image, alt }, page: { title: file, file, view },
    }));
    writeSources(target, sources, turn);
  };
  const writeAside = (turn, answer, key) => {
    const aside = turn.querySelector(".aside");
    const unread = answer.unread.map((line) => `I couldn’t read ${line}`);
    aside.textContent = [...(answer.generated ? [answer.generated] : []), ...unread].join("\n");
    if (answer.nearest) {
      const { file, label, note, view } = answer.nearest;
      const nearest = { numbers: ["≈"], label, page: { view, title: file, file }, quotes: [note] };
      writeSources(turn.querySelector(".sources"), [nearest], key);
    }
  };

  // Feedback on an answer, and why it came out as it did.
  const writeFeedback = (turn, { question: id, language, feedback }) => {
    const box = turn.querySelector(".feedback");
    const about = { channel: Number(channel.value), question: id, language };
    const plain = (text, act) => {
      const button = make("button", "plain", text);
      button.type = "button";
      button.addEventListener("click", act);
      return button;
    };
    const say = (text) => make("p", "small", text);
    const tell = async (verdict, page) => {
      const answer = await send("console/feedback", { ...about, verdict, page });
      if (!answer.reasons.length) { box.replaceChildren(say(answer.text)); return; }
      const pages = make("select");
      pages.setAttribute("aria-label", answer.right_page);
      pages.append(new Option(answer.right_page, ""), ...answer.pages.map((label, number) => new Option(label, number)));
      const chosen = () => (pages.value === "" ? undefined : Number(pages.value));
      const reasons = answer.reasons.map(([name, label]) => plain(label, () => tell(name, chosen())));
      box.replaceChildren(say(answer.text), pages, ...reasons);
    };
    const explain = async () => {
      const { why } = await send("console/why", about);
      box.querySelector(".why")?.remove();
      box.append(make("p", "small why", why));
    };
    if (!feedback.length) return;
    const [helpful, notHelpful, why] = feedback;
    box.append(plain(helpful, () => tell("good")), plain(notHelpful, () => tell("bad")), plain(why, explain));
  };
  let turns = 0;
  const showBeginning = (turn, text) => { turn.querySelector(".answer").textContent = text; };
  const showAnswer = (turn, answer, isRestored = false) => {
    showBeginning(turn, "");
    const key = ++turns;
    turn.classList.add(answer.state);
    turn.lang = answer.language;
    const citations = new Map(answer.citations.map((cited) => [`[${cited.number}]`, cited]));
    const sources = answer.sources.map((source) => {
      const cited = source.numbers.map((number) => citations.get(`[${number}]`));
      const { title, file } = cited[0];
      return { ...source, cited, page: { title, file, view: source.view, web: source.web } };
    });
    turn.querySelector(".understood").textContent = answer.understood;
    writeText(turn.querySelector(".answer"), answer, citations, key);
    writeSources(turn.querySelector(".sources"), sources, key);
    writeFigures(turn.querySelector(".sources"), answer.figures, key);
    writeAside(turn, answer, key);
    writeFeedback(turn, answer);
    if (isRestored) return;
    if (!answer.citations.length) closePage();
    else if (matchMedia("(min-width: 70rem)").matches && sources[0].view) turn.querySelector(".source").click();
  };
  const request = async (path, body, accept = "application/json") => {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Footnote-Console": "1", Accept: accept },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(response.status);
    return response;
  };
  const send = async (path, body) => (await request(path, body)).json();
  // Questions asked in this tab and channel form one thread. It survives a reload, and ends with the tab.
  const MAX_TURNS_KEPT = 30;
  const slot = () => `thread ${channel.value}`;
  let talk = "";
  let said = [];
  const keepThread = (text, view) => {
    said = [...said, { text, view }].slice(-MAX_TURNS_KEPT);
    at("tools").hidden = false;
    try { sessionStorage.setItem(slot(), JSON.stringify({ talk, said })); } catch { /* Storage is full or disabled: a reload starts a new thread. */ }
  };
  const newTurn = (text) => {
    const turn = at("turn").content.firstElementChild.cloneNode(true);
    turn.querySelector(".question").textContent = text;
    return turn;
  };
  const openThread = () => {
    let kept = null;
    try { kept = JSON.parse(sessionStorage.getItem(slot())); } catch { /* Treat as empty. */ }
    talk = kept?.talk ?? crypto.randomUUID();
    said = kept?.said ?? [];
    thread.replaceChildren(...said.map(({ text, view }) => {
      const turn = newTurn(text);
      turn.querySelector(".working").remove();
      showAnswer(turn, view, true);
      return turn;
    }));
    at("tools").hidden = at("thread-title").hidden = !said.length;
  };
  const threadText = () => said.map(({ text, view }) => {
    const sources = view.citations.map(({ number, file, page, quote }) => `[${number}] ${file}${page ? ` p. ${page}` : ""}: "${quote}"`);
    return [text, "", view.text, ...sources].join("\n");
  }).join("\n\n");
  const lines = async function* (response) {
    let rest = "";
    for await (const piece of pieces(response.body.pipeThrough(new TextDecoderStream()).getReader())) {
      const parts = (rest + piece).split("\n");
      rest = parts.pop();
      yield* parts;
    }
  };
  // Not every browser supports async iteration of streams.
  const pieces = async function* (reader) {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  };
  const post = async (text, begin) => {
    const asked = { channel: Number(channel.value), question: text, thread: talk };
    let last = {};
    for await (const line of lines(await request("console/ask", asked, "application/x-ndjson"))) {
      last = JSON.parse(line);
      if ("beginning" in last) begin(last.beginning);
    }
    if (!("text" in last)) throw new Error("no answer");
    return last;
  };
  const wait = (turn) => {
    const label = turn.querySelector(".working-text");
    const started = performance.now();
    const tick = () => {
      const seconds = Math.floor((performance.now() - started) / 1000);
      label.textContent = seconds < 2 ? "Searching the pages" : `Searching the pages, ${seconds} s`;
    };
    tick();
    return setInterval(tick, 1000);
  };
  const ask = async (text) => {
    const turn = newTurn(text);
    thread.append(turn);
    showOpening();
    turn.scrollIntoView({ block: "start" });
    const timer = wait(turn);
    const asked = talk;
    try {
      const view = await post(text, (beginning) => showBeginning(turn, beginning));
      showAnswer(turn, view);
      if (talk === asked) keepThread(text, view); // else it was cleared, or another channel was chosen
    } catch (error) {
      turn.classList.add("failed");
      const why = error.message === "429" ? "You’ve asked many questions in the last minute." : "Something went wrong.";
      turn.querySelector(".answer").textContent = `${why} Please ask again in a minute.`;
    } finally {
      clearInterval(timer);
      turn.querySelector(".working").remove();
      turn.scrollIntoView({ block: "start" });
    }
  };
  const nothingToAsk = () => `There are no documents to answer from yet. ${
    at("upload").dataset.place ? "Drop a PDF on this page" : at("upload").hidden ? "Ask an admin to add PDFs" : "Copy PDFs to the folder above"
  }, then ask again.`;
  at("ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = question.value.trim();
    const send = event.target.querySelector("button");
    if (!text || send.disabled) return;
    at("ask-note").textContent = channel.value ? "" : nothingToAsk();
    if (!channel.value) return;
    question.value = "";
    send.disabled = true;
    await ask(text);
    send.disabled = false;
    question.focus();
  });
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    at("ask").requestSubmit();
  });
  channel.addEventListener("change", () => {
    at("upload").dataset.place = ""; // until its folder is known
    openThread(); closePage(); refresh();
  });
  at("clear").addEventListener("click", async () => {
    await send("console/forget", { channel: Number(channel.value), thread: talk });
    sessionStorage.removeItem(slot());
    openThread(); closePage(); refresh();
    question.focus();
  });

  // Copying a path, or the thread.
  const showCopied = (button, label) => {
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  at("copy-thread").addEventListener("click", async ({ target }) => {
    await navigator.clipboard.writeText(threadText());
    showCopied(target, "Copy thread");
  });
  const copies = [[at("copy"), at("folder")], [at("hole").querySelector("button"), at("hole").querySelector("code")]];
  for (const [button, source] of copies) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(source.textContent);
      showCopied(button, "Copy path");
    });
  }
  openThread();
  question.focus();
  keepFresh();
})();
