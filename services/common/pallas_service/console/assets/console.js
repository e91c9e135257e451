// The console: an MCP client of 2026-07-28 in a page. It keeps the token and the sessions in memory and nowhere else.
import { Calls } from "./calls.js";
import { Watch } from "./watch.js";

const VERSION = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";
const CALLS = "#/calls";
const HEALTH_EVERY = 15_000;
const MOST_IMAGE_BYTES = 4 * 1024 * 1024;
const $ = (id) => document.getElementById(id);

let token = "";
let agents = [];
let chosen = null;
let under_way = null;
let watch = null;
let fleet = "";
let serial = 0;
const conversations = new Map();

class Refused extends Error {
  constructor(status) {
    super(status === 401 ? "a token is asked for" : "this token is not taken");
    this.status = status;
  }
}

class Failed extends Error {
  constructor(message, reason, status) {
    super(message);
    this.reason = reason;
    this.status = status;
  }
}

function headers(more) {
  return { ...more, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
}

async function* messages(response) {
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    yield await response.json();
    return;
  }
  let rest = "";
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}

async function request(agent, method, params, { signal, progress } = {}) {
  const id = ++serial;
  const _meta = {
    [`${PREFIX}protocolVersion`]: VERSION,
    [`${PREFIX}clientCapabilities`]: {},
    [`${PREFIX}clientInfo`]: { name: "pallas-console", version: "1" },
    ...(progress ? { progressToken: id } : {}),
  };
  const named = params.name ? { "Mcp-Name": params.name } : {};
  const response = await fetch(agent.mcp, {
    method: "POST",
    signal,
    headers: headers({
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": VERSION,
      "Mcp-Method": method,
      ...named,
    }),
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } }),
  });
  if (response.status === 401 || response.status === 403) throw new Refused(response.status);
  try {
    for await (const message of messages(response)) {
      if (message.method === "notifications/progress") progress?.(message.params);
      else if (message.error) throw new Failed(message.error.message, message.error.data?.reason, response.status);
      else if (message.result) return message.result;
    }
  } catch (error) {
    if (error instanceof SyntaxError) throw new Failed(`HTTP ${response.status}`, undefined, response.status);
    throw error;
  }
  throw new Failed(`the answer ended before it was whole (HTTP ${response.status})`, undefined, response.status);
}

function element(tag, options = {}, ...children) {
  const node = Object.assign(document.createElement(tag), options);
  node.append(...children);
  return node;
}

function conversation() {
  if (!conversations.has(chosen.name)) {
    const random = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0"));
    conversations.set(chosen.name, { session: random.join(""), turns: [] });
  }
  return conversations.get(chosen.name);
}

function list() {
  $("agents").replaceChildren(
    ...agents.map((agent) => {
      const button = element("button", { type: "button", textContent: agent.title, title: agent.description });
      button.setAttribute("aria-current", String(agent === chosen && !watching()));
      button.addEventListener("click", () => choose(agent));
      return element("li", {}, button);
    }),
  );
}

function watching() {
  return !$("watch").hidden;
}

function turn_to(calls) {
  $("watch").hidden = !calls;
  $("log").hidden = calls;
  $("ask").hidden = calls || !chosen;
  $("again").hidden = calls;
  $("calls").setAttribute("aria-current", String(calls));
  list();
  if (!calls) watch?.close();
}

function calls() {
  show("", "");
  turn_to(true);
  $("title").textContent = "Calls";
  $("description").textContent = "What goes through the gateway now, as far as your token may see it.";
  $("title").focus();
  watch.open();
}

function choose(agent) {
  chosen = agent;
  turn_to(false);
  $("title").textContent = agent.title;
  $("description").textContent = agent.description;
  $("log").replaceChildren(...conversation().turns);
  draw_input();
  show("", "");
  health();
  $("message").focus();
}

function show(state, text) {
  $("banner").hidden = !text;
  $("banner").textContent = text;
  $("banner").className = `banner ${state}`;
}

function draw_input() {
  for (const id of ["message", "images", "send"]) $(id).disabled = Boolean(chosen.closed || under_way);
  $("cancel").hidden = !under_way;
}

async function health() {
  const agent = chosen;
  let state = "ok";
  let text = "";
  try {
    const result = await request(agent, "tools/call", { name: "get_health", arguments: {} });
    const body = result.structuredContent ?? JSON.parse(result.content[0].text);
    state = body.status;
    text = body.message ?? "";
  } catch (error) {
    if (error instanceof Refused) return door(error);
    if (error.reason && error.reason !== "unreachable") return; // a limit says nothing of the agent
    state = "error";
    text = error.message;
  }
  agent.closed = state === "error"; // until it is known to be otherwise
  if (agent !== chosen) return;
  draw_input();
  if (watching()) return;
  if (state === "ok") show("", "");
  else show(state, `${agent.title} is ${state}${text ? `: ${text}` : ""}${state === "error" ? ". It cannot be asked now." : ""}`);
}

function seconds(call) {
  return call.ended === null ? "…" : `${((call.ended - call.began) / 1000).toFixed(2)} s${call.failed ? ", failed" : ""}`;
}

function drawn(call) {
  const item = element("li", { className: call.failed ? "failed" : "" }, `${call.label} (${seconds(call)})`);
  if (call.calls.length) item.append(element("ul", {}, ...call.calls.map(drawn)));
  return item;
}

function turn(who, mine) {
  const body = element("pre");
  const node = element("div", { className: `turn${mine ? " mine" : ""}` }, element("p", { className: "who", textContent: who }), body);
  return { node, body };
}

function put(place, node) {
  place.turns.push(node);
  if (conversation() === place) {
    $("log").append(node);
    $("log").scrollTop = $("log").scrollHeight;
  }
}

async function image(file) {
  if (file.size > MOST_IMAGE_BYTES) throw new Failed(`${file.name} is larger than 4 MiB`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { data: btoa(text), mime_type: file.type };
}

async function ask(event) {
  event.preventDefault();
  const text = $("message").value;
  if (!text.trim() || under_way) return;
  const agent = chosen;
  const place = conversation();
  under_way = new AbortController();
  draw_input();
  const question = turn("you", true);
  question.body.textContent = text;
  put(place, question.node);
  const reply = turn(agent.title, false);
  const calls = new Calls(agent.name, performance.now());
  const tree = element("ul", { className: "tree" });
  const lines = element("ol", { className: "lines" });
  const details = element("details", {}, element("summary", { textContent: "progress" }), lines);
  reply.node.append(tree, details);
  const redraw = () => tree.replaceChildren(drawn(calls.root));
  redraw();
  put(place, reply.node);
  let failed = false;
  try {
    const images = await Promise.all([...$("images").files].map(image));
    for (const { data, mime_type } of images) question.node.append(element("img", { src: `data:${mime_type};base64,${data}`, alt: "sent image" }));
    const { tools } = await request(agent, "tools/list", {}, { signal: under_way.signal });
    const names = tools.map((tool) => tool.name).filter((name) => name !== "get_health");
    const name = names.includes("send_message") ? "send_message" : names[0];
    if (!name) throw new Failed("it has no tool to be asked with");
    const result = await request(
      agent,
      "tools/call",
      { name, arguments: { message: text, session_id: place.session, ...(images.length ? { images } : {}) } },
      {
        signal: under_way.signal,
        progress: ({ message }) => {
          if (!message) return;
          calls.add(message, performance.now());
          lines.append(element("li", { textContent: message }));
          reply.body.textContent = message;
          redraw();
        },
      },
    );
    failed = Boolean(result.isError);
    reply.body.textContent = (result.content ?? []).filter((block) => block.type === "text").map((block) => block.text).join("\n");
    for (const block of result.content ?? []) {
      if (block.type === "image") reply.node.append(element("img", { src: `data:${block.mimeType};base64,${block.data}`, alt: `image of ${agent.title}` }));
    }
    $("message").value = "";
    $("images").value = "";
  } catch (error) {
    failed = true;
    reply.body.textContent = error.name === "AbortError" ? "cancelled" : error.message;
    if (error instanceof Refused) door(error);
  }
  calls.end(performance.now(), failed);
  redraw();
  reply.node.classList.toggle("failed", failed);
  under_way = null;
  draw_input();
  await health();
  $("message").focus();
}

function door(error) {
  if ($("door").open) return;
  if (error.status === 403 || token) $("door-reason").textContent = "That token is not taken here. Another one?";
  $("door").showModal();
}

function name_page(waiting) {
  document.title = `${waiting ? `(${waiting}) ` : ""}${fleet}: console`;
}

function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // somebody typed it
  }
}

async function load() {
  let document_;
  try {
    const response = await fetch("/console/agents.json", { headers: headers({}) });
    if (response.status === 401 || response.status === 403) return door(new Refused(response.status));
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    document_ = await response.json();
  } catch (error) {
    return show("error", `The agents cannot be listed now (${error.message}). Load the page again later.`);
  }
  show("", "");
  agents = document_.agents;
  fleet = document_.fleet;
  $("fleet").textContent = fleet;
  name_page(0);
  list();
  if (document_.calls) {
    const refused = (status) => door(new Refused(status));
    watch ??= new Watch(document_.calls, { headers, refused, element, waiting: name_page });
    $("calls").hidden = false;
    if (location.hash === CALLS) return calls();
  }
  const first = agents.find((agent) => agent.name === named()) ?? (agents.length === 1 ? agents[0] : null);
  if (first) choose(first);
}

$("ask").addEventListener("submit", ask);
$("message").addEventListener("keydown", (event) => {
  // while a word is composed (Japanese, Chinese), Enter ends that word
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  $("ask").requestSubmit();
});
$("calls").addEventListener("click", calls);
$("cancel").addEventListener("click", () => under_way?.abort());
$("again").addEventListener("click", () => {
  if (!chosen || under_way) return;
  conversations.delete(chosen.name);
  choose(chosen);
});
$("show").addEventListener("submit", () => {
  token = $("token").value.trim();
  $("token").value = "";
  if (watching()) watch.open();
  else if (chosen) health();
  else load();
});
setInterval(() => {
  if (chosen && !watching() && !under_way && document.visibilityState === "visible") health();
}, HEALTH_EVERY);
load();
