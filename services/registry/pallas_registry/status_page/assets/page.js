// Keeps the page up to date; without it the page is the same, only as of when it was loaded.
"use strict";

const PARTS = ["headline", "counts", "banner", "troubles", "map", "focus", "agents", "services", "graph", "changes"];
const TYPING = 250; // milliseconds without a key before a search begins
const QUIET_REFRESH = 15000; // milliseconds: ages and latencies, when nothing else happens
const PATIENCE = 15000; // milliseconds for an answer: a connection that is lost without a word gives none, and no error
const REFUSED = 2000; // milliseconds until the events are asked for again
const live = document.getElementById("live");
const filter = document.getElementById("filter");

document.documentElement.classList.add("js"); // buttons that do nothing without it appear

let loading = false;
let again = false;
let silent = false; // no answer to the last question
let stream;

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  const wanted = location.search;
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), PATIENCE);
  try {
    const reply = await fetch(wanted || "./", { headers: { accept: "text/html" }, signal: stop.signal });
    const text = await reply.text();
    if (silent && stream.readyState === EventSource.OPEN) {
      live.textContent = "live";
    }
    silent = false;
    // what came for another choice is late: it is asked for once more
    if (reply.ok && wanted === location.search) {
      replace(new DOMParser().parseFromString(text, "text/html"));
    }
  } catch {
    silent = true;
    live.textContent = "no answer, trying again";
  } finally {
    clearTimeout(late);
    loading = false;
    if (again || wanted !== location.search) {
      again = false;
      await refresh();
    }
  }
}

// Swaps the parts that differ. What a person has opened, closed or scrolled stays so, what has the focus keeps it.
function replace(fresh) {
  const folds = [...document.querySelectorAll("details[id]")].map((fold) => [fold.id, fold.open]);
  const focused = place(document.activeElement);
  document.title = fresh.title;
  const icon = (from) => from.querySelector("link[rel=icon]");
  icon(document).href = icon(fresh).getAttribute("href");
  for (const id of PARTS) {
    const now = document.getElementById(id);
    const next = fresh.getElementById(id);
    if (now && next && now.outerHTML !== next.outerHTML) {
      const scrolled = [...now.querySelectorAll(".scroll")].map((area) => [area.scrollLeft, area.scrollTop]);
      now.replaceWith(document.adoptNode(next));
      [...next.querySelectorAll(".scroll")].forEach((area, index) => area.scrollTo(...(scrolled[index] ?? [0, 0])));
    }
  }
  for (const [id, open] of folds) {
    const fold = document.getElementById(id);
    if (fold) {
      fold.open = open;
    }
  }
  for (const field of fresh.getElementById("filter").elements) {
    const mine = field.name && filter.elements[field.name];
    if (mine && mine !== document.activeElement) {
      mine.value = field.value;
    }
  }
  if (focused && document.activeElement === document.body) {
    focused()?.focus({ preventScroll: true });
  }
}

// Shows another choice without loading the page anew; the address is the one that a browser without this would go to.
async function go(address, instead = false) {
  const { search, hash, pathname } = new URL(address, location.href);
  history[instead ? "replaceState" : "pushState"](null, "", (search || pathname) + hash);
  await refresh();
  const target = hash && document.getElementById(hash.slice(1));
  if (target) {
    target.tabIndex = -1;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  }
}

function chosen() {
  const fields = new URLSearchParams(location.search);
  fields.delete("page");
  for (const [name, value] of new FormData(filter)) {
    fields.delete(name);
    if (value && !(name === "sort" && value === "worst")) {
      fields.set(name, value);
    }
  }
  return fields.size ? `?${fields}` : "./";
}

let typing = 0;
filter.addEventListener("input", (event) => {
  clearTimeout(typing);
  typing = setTimeout(() => go(chosen(), true), event.target.type === "search" ? TYPING : 0);
});
filter.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  go(chosen());
});
addEventListener("popstate", refresh);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button.copy");
  if (button) {
    copy(button);
    return;
  }
  const link = event.target.closest("a");
  const address = link?.getAttribute("href") ?? "";
  const plain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) && event.button === 0;
  if (plain && (address.startsWith("?") || address === "./" || address.startsWith("./#"))) {
    event.preventDefault();
    go(address);
  }
});

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.url);
    live.textContent = `URL of ${button.dataset.agent} copied`;
  } catch {
    // only pages over TLS or on this machine may write there
    live.textContent = button.dataset.url;
  }
}

// How to find the element again in a new copy of the page: the nearest id, and which of its kind it is below that.
function place(element) {
  const home = element?.closest("[id]");
  if (!home) {
    return null;
  }
  const kind = element.localName;
  const index = [...home.querySelectorAll(kind)].indexOf(element);
  return () => {
    const found = document.getElementById(home.id);
    return index < 0 ? found : found?.querySelectorAll(kind)[index];
  };
}

function age(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) {
      return `${Math.floor(seconds / size)} ${unit} ago`;
    }
  }
  return seconds < 2 ? "just now" : `${Math.floor(seconds)} s ago`;
}

setInterval(() => {
  for (const time of document.querySelectorAll("time")) {
    time.textContent = age(Math.max(0, (Date.now() - Date.parse(time.dateTime)) / 1000));
  }
}, 1000);
setInterval(refresh, QUIET_REFRESH);

document.addEventListener("submit", async (event) => {
  if (!event.target.matches("form[action$='/recheck']")) {
    return;
  }
  event.preventDefault();
  const button = event.target.querySelector("button");
  button.disabled = true;
  try {
    const reply = await fetch(event.target.action, { method: "POST", headers: { accept: "application/json" } });
    const answer = await reply.json();
    live.textContent = reply.ok ? `${answer.agent}: ${answer.status}` : answer.error;
  } catch {
    live.textContent = "connection lost, nothing was asked";
  } finally {
    button.disabled = false;
    button.focus();
  }
  refresh();
});

function listen() {
  stream = new EventSource("events");
  stream.addEventListener("open", () => {
    live.textContent = "live";
    refresh();
  });
  stream.addEventListener("error", () => {
    live.textContent = "connection lost, trying again";
    // refused, by a proxy whose registry restarts or for too many streams: then the browser does not try by itself
    if (stream.readyState === EventSource.CLOSED) {
      setTimeout(listen, REFUSED);
    }
  });
  stream.addEventListener("update", refresh);
  stream.addEventListener("change", (event) => {
    const change = JSON.parse(event.data);
    live.textContent = `${change.agent} is ${change.new}`;
    refresh();
  });
  stream.addEventListener("service", (event) => {
    const change = JSON.parse(event.data);
    live.textContent = `${change.service} is ${change.new}`;
    refresh();
  });
}
listen();
