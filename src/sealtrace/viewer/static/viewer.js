// Keys, and events without loading the page anew. Everything works without this file, by links.
//
// Markup comes from the server alone: a piece of a page is asked for as a document, which the browser
// parses without running anything, and its elements are moved over. No text is ever turned into markup
// here.
"use strict";

(() => {
  const run = document.querySelector(".run");
  const list = document.querySelector(".runs");

  const typing = (target) => target.closest("input, textarea, select, dialog") !== null;

  // Gets a page of this server, parsed and inert.
  const fetchPage = (address) => {
    const request = new XMLHttpRequest();
    const done = new Promise((resolve, reject) => {
      request.open("GET", address);
      request.responseType = "document";
      request.onload = () => (request.response ? resolve(request.response) : reject(new Error("no page")));
      request.onerror = () => reject(new Error("no answer"));
      request.onabort = () => resolve(null);
      request.send();
    });
    return { done, stop: () => request.abort() };
  };

  // The run's page.

  // A step asked for while an event is on its way: one is kept, so a key held down goes on, and stops when let go.
  let nextStep = null;

  const openEvent = (() => {
    let going = null;

    // address: of the run's page at the event; the panel alone is under /events/.
    return (address, remember) => {
      const url = new URL(address, location.href);
      const given = url.searchParams;
      const seq = given.get("event");
      if (seq === null) return false;
      const panel = new URL(`${run.dataset.run}/events/${encodeURIComponent(seq)}`, location.origin);
      for (const name of ["record", "view", "q"]) {
        if (given.has(name)) panel.searchParams.set(name, given.get(name));
      }
      if (going) going.stop();
      nextStep = null;
      going = fetchPage(panel);
      const mine = going;
      const place = document.getElementById("open");
      place.setAttribute("aria-busy", "true");
      mine.done.then((page) => {
        if (mine !== going || page === null) return;
        const got = page.getElementById("open");
        if (!got) {
          location.assign(url); // an error page: show it as it is
          return;
        }
        const within = place.contains(document.activeElement);
        place.replaceChildren(...got.childNodes); // which also takes them over from their document
        place.removeAttribute("aria-busy");
        place.scrollTop = 0;
        tellOpened(within);
        if (remember === "push") history.pushState(null, "", url);
        if (remember === "replace") history.replaceState(null, "", url);
        offerCopy();
        markLine();
        if (nextStep) step(nextStep);
      }).catch(() => location.assign(url));
      return true;
    };
  })();

  // Says to those who hear the page what has opened, and keeps the focus where they were reading.
  const tellOpened = (within) => {
    const panel = document.getElementById("panel");
    const title = document.getElementById("panel-title");
    document.getElementById("said").textContent = title ? title.textContent : "";
    if (within && panel) panel.focus({ preventScroll: true });
  };

  const shownEvent = () => document.querySelector("#panel[data-seq]");

  const linesOf = (seq, record) =>
    Array.from(document.querySelectorAll(`.lines a.go[data-seq="${CSS.escape(seq)}"]`)).filter(
      (link) => link.dataset.record === record,
    );

  // Marks the line of the event that is open, and fetches the piece of the list it is in.
  const markLine = async () => {
    const panel = shownEvent();
    for (const line of document.querySelectorAll(".line.here")) line.classList.remove("here");
    for (const link of document.querySelectorAll(".lines a[aria-current]")) link.removeAttribute("aria-current");
    if (!panel) return;
    const { seq, record } = panel.dataset;
    const place = document.querySelector("#open .steps[data-line]");
    if (place && !linesOf(seq, record).length) await fetchLines(Number(place.dataset.line));
    for (const link of linesOf(seq, record)) {
      link.setAttribute("aria-current", "true");
      const line = link.closest(".line");
      line.classList.add("here");
      line.scrollIntoView({ block: "nearest" });
    }
  };

  const asked = new WeakMap();

  // Fetches the piece of the list that a line is in, once; who asks again waits for the same answer.
  const fetchLines = (number) => {
    const waiting = Array.from(document.querySelectorAll(".waiting")).find((one) => {
      const from = Number(one.dataset.line);
      return from <= number && number < from + Number(one.dataset.count);
    });
    if (!waiting) return Promise.resolve();
    if (!asked.has(waiting)) asked.set(waiting, bringLines(waiting));
    return asked.get(waiting);
  };

  const bringLines = async (waiting) => {
    const address = new URL(`${run.dataset.run}/lines`, location.origin);
    address.searchParams.set("line", waiting.dataset.line);
    if (run.dataset.wanted) address.searchParams.set("q", run.dataset.wanted);
    const page = await fetchPage(address).done.catch(() => null);
    const piece = page && page.querySelector("ol.lines");
    if (piece) waiting.replaceWith(document.adoptNode(piece));
  };

  const fetchOnSight = () => {
    if (!("IntersectionObserver" in window)) return;
    const watcher = new IntersectionObserver((seen) => {
      for (const entry of seen) {
        if (entry.isIntersecting) {
          watcher.unobserve(entry.target);
          fetchLines(Number(entry.target.dataset.line));
        }
      }
    }, { root: document.querySelector(".rail"), rootMargin: "600px" });
    for (const waiting of document.querySelectorAll(".waiting")) watcher.observe(waiting);
  };

  const step = (name) => {
    if (document.getElementById("open").hasAttribute("aria-busy")) {
      nextStep = name;
      return;
    }
    const link = document.querySelector(`#open a.step.${name}`);
    if (link) openEvent(link.href, "replace");
  };

  const firstEvent = () => {
    const link = document.querySelector(".lines a.go");
    if (link) openEvent(link.href, "replace");
  };

  const offerCopy = () => {
    for (const button of document.querySelectorAll("button.copy")) button.hidden = !navigator.clipboard;
  };

  const copy = async (button) => {
    const answer = await fetch(button.dataset.from, { headers: { Accept: "application/json" } });
    const said = button.textContent;
    try {
      if (!answer.ok) throw new Error("refused");
      await navigator.clipboard.writeText(await answer.text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Could not be copied";
    }
    setTimeout(() => { button.textContent = said; }, 1500);
  };

  // The list of runs: j and k move through it, Enter is the link's own.

  const stepInList = (by) => {
    const links = Array.from(document.querySelectorAll(".list a.go"));
    const at = links.indexOf(document.activeElement);
    const next = links[Math.max(0, Math.min(links.length - 1, at < 0 ? 0 : at + by))];
    if (next) next.focus();
  };

  const keys = {
    j: () => (run ? step("after") : stepInList(1)),
    k: () => (run ? step("before") : stepInList(-1)),
    g: () => run && firstEvent(),
    c: () => { const button = document.querySelector("button.copy:not([hidden])"); if (button) copy(button); },
    "/": () => { const field = document.querySelector("#find, #f-q"); if (field) { field.focus(); field.select(); } },
    "?": () => { const help = document.getElementById("keys"); if (help && !help.open) help.showModal(); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target)) {
      if (event.key === "Escape" && event.target.matches("input")) event.target.blur();
      return;
    }
    if (event.key === "Enter" && run && !event.target.closest("a, button, summary")) {
      const panel = document.getElementById("panel");
      if (panel) { panel.focus(); event.preventDefault(); }
      return;
    }
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (act) { event.preventDefault(); act(); }
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) { copy(button); return; }
    const link = event.target.closest("a[href]");
    if (!run || !link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    if (link.pathname !== run.dataset.run || link.origin !== location.origin) return;
    if (openEvent(link.href, "push")) event.preventDefault();
  });

  // First, for it makes the pieces that are still to come as high as they will be.
  if (run || list) document.documentElement.dataset.keys = "ready";
  if (run) {
    window.addEventListener("popstate", () => { if (!openEvent(location.href, null)) location.reload(); });
    offerCopy();
    fetchOnSight();
    markLine();
  }
})();
