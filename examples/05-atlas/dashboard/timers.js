// Timers and reminders of the house, asked of its server itself: no model stands between.
import { $, banner, button, element } from "./page.js";

const HOUSE = "/services/home-tools/mcp";
const SHOWN_FOR = 3_600_000;
let timers = [];
let told = null;

export async function load(gateway) {
  const { data } = await gateway.tool(HOUSE, "list_timers", {});
  timers = data.timers ?? [];
  draw(gateway);
  const fired = timers.filter((timer) => timer.fired).map((timer) => timer.id);
  if (told) timers.filter((timer) => timer.fired && !told.has(timer.id)).forEach(ring);
  told = new Set(fired);
}

export function forget() {
  timers = [];
  told = null;
  $("timers").replaceChildren();
}

// Every second: what is left of those that wait. Returns whether one of them should have fired by now.
export function tick() {
  let due = false;
  for (const node of $("timers").querySelectorAll("time[data-due]")) {
    const left = Math.ceil((Date.parse(node.dataset.due) - Date.now()) / 1000);
    node.textContent = left > 0 ? span(left) : "now";
    due ||= left === 0 || left === -2;
  }
  return due;
}

function draw(gateway) {
  const recent = timers.filter((timer) => !timer.fired || Date.now() - Date.parse(timer.fired) < SHOWN_FOR);
  $("timers").replaceChildren(...recent.map((timer) => row(gateway, timer)));
  $("no-timers").hidden = recent.length > 0;
  tick();
}

function row(gateway, timer) {
  const time = element("time", { dateTime: timer.fired ?? timer.due });
  if (timer.fired) time.textContent = `at ${new Date(timer.fired).toLocaleTimeString([], { timeStyle: "short" })}`;
  else time.dataset.due = timer.due;
  const item = element("li", { className: timer.fired ? "fired" : "" });
  item.append(element("span", { className: "label", textContent: timer.label }), time);
  if (!timer.fired) item.append(button("✕", `Cancel ${timer.label}`, () => drop(gateway, timer), "small"));
  return item;
}

async function drop(gateway, timer) {
  try {
    await gateway.tool(HOUSE, "cancel_timer", { timer: timer.id });
  } catch (error) {
    banner(`${timer.label}: ${error.message}`, "error");
  }
  await load(gateway).catch(() => {});
}

function ring(timer) {
  banner(`${timer.kind === "reminder" ? "Reminder" : "Timer"}: ${timer.label}`, "ring");
  navigator.vibrate?.([200, 100, 200]);
  if (window.Notification?.permission === "granted") new Notification("Atlas", { body: timer.label, tag: `timer-${timer.id}` });
}

function span(seconds) {
  if (seconds >= 86_400) return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
  const parts = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  return (parts[0] ? parts : parts.slice(1)).map((part, index) => (index ? String(part).padStart(2, "0") : part)).join(":");
}
