// Keeps the page up to date; without it the page is the same, only as of when it was loaded.
"use strict";

const PARTS = ["headline", "counts", "banner", "troubles", "agents", "services", "graph", "changes"];
const QUIET_REFRESH = 15000; // milliseconds: ages and latencies, when nothing else happens
const live = document.getElementById("live");

let loading = false;
let again = false;

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  try {
    const reply = await fetch("./", { headers: { accept: "text/html" } });
    if (reply.ok) {
      replace(new DOMParser().parseFromString(await reply.text(), "text/html"));
    }
  } catch {
    // the event stream says when the registry is gone
  } finally {
    loading = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

// Swaps the parts that differ. What a person has opened stays open, what has the focus keeps it.
function replace(fresh) {
  const open = [...document.querySelectorAll("details[open]")].map((each) => each.id);
  const focused = place(document.activeElement);
  document.title = fresh.title;
  const icon = (from) => from.querySelector("link[rel=icon]");
  icon(document).href = icon(fresh).getAttribute("href");
  for (const id of PARTS) {
    const now = document.getElementById(id);
    const next = fresh.getElementById(id);
    if (now && next && now.outerHTML !== next.outerHTML) {
      now.replaceWith(document.adoptNode(next));
    }
  }
  for (const id of open) {
    document.getElementById(id)?.setAttribute("open", "");
  }
  if (focused && document.activeElement === document.body) {
    focused()?.focus({ preventScroll: true });
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
    const said = await reply.json();
    live.textContent = reply.ok ? `${said.agent}: ${said.status}` : said.error;
  } finally {
    button.disabled = false;
    button.focus();
  }
  refresh();
});

const stream = new EventSource("events");
stream.addEventListener("open", () => {
  live.textContent = "live";
  refresh();
});
stream.addEventListener("error", () => {
  live.textContent = "connection lost, trying again";
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
