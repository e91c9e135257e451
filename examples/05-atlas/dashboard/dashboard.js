// The dashboard: who is there, what was asked, what waits. Token, session and answers are in memory and nowhere else.
import * as confirmations from "./confirmations.js";
import { Gateway, Refused } from "./mcp.js";
import { $, banner, while_seen } from "./page.js";
import * as talk from "./talk.js";
import * as timers from "./timers.js";
import { listen } from "./voice.js";

const gateway = new Gateway();

function door(error) {
  gateway.token = "";
  timers.forget();
  confirmations.forget();
  if (error) $("door-reason").textContent = "That token is not taken here. Another one?";
  if (!$("door").open) $("door").showModal();
}

// What cannot be had is said once, in its own place; the rest goes on.
async function part(name, load) {
  if (!gateway.known) return;
  try {
    await load(gateway);
    $(name).textContent = "";
  } catch (error) {
    if (error instanceof Refused) door(error);
    else $(name).textContent = error.message;
  }
}

const look = () => Promise.all([part("timers-trouble", timers.load), part("waiting-trouble", confirmations.load)]);

async function enter() {
  talk.begin_anew();
  await part("talk-trouble", async () => {
    const health = await talk.greet(gateway);
    banner(health.status === "ok" ? "" : `The agent is ${health.status}: ${health.message ?? ""}`, health.status);
  });
  await look();
  if (gateway.known) $("message").focus();
}

async function send() {
  const text = $("message").value;
  if (!gateway.known || !text.trim() || $("send").disabled) return;
  $("message").value = "";
  await talk.ask(gateway, text, door);
  await look();
}

$("show").addEventListener("submit", () => {
  gateway.token = $("token").value.trim();
  $("token").value = "";
  enter();
});
$("door").addEventListener("cancel", (event) => event.preventDefault());
$("leave").addEventListener("click", () => {
  talk.cancel();
  talk.begin_anew();
  banner("");
  $("door-reason").textContent = "It stays in this page, and is forgotten when that is closed.";
  door();
});
$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
$("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
$("cancel").addEventListener("click", talk.cancel);
document.addEventListener("keydown", (event) => {
  if ($("door").open) return;
  if (event.key === "Escape") talk.cancel();
  else if (event.key === "/" && !event.target.closest("input, textarea")) {
    event.preventDefault();
    $("message").focus();
  }
});
listen(
  $("speak"),
  (text, done) => {
    $("message").value = text;
    if (done) send();
  },
  (reason) => banner(`Nothing was understood: ${reason}`, "error"),
);
$("notify").hidden = !window.Notification || Notification.permission !== "default";
$("notify").addEventListener("click", async () => {
  await Notification.requestPermission();
  $("notify").hidden = true;
});
for (const name of ["online", "offline"]) {
  addEventListener(name, () => banner(name === "offline" ? "There is no network." : "", "error"));
}
while_seen(15, look);
setInterval(() => timers.tick() && part("timers-trouble", timers.load), 1000);
navigator.serviceWorker?.register("/app/sw.js").catch(() => {});
door();
