// The conversation with the agent that the gateway leads this caller to.
import { Refused } from "./mcp.js";
import { $, button, element } from "./page.js";

const AGENT = "/agent/mcp";
let session = "";
let under_way = null;

export function begin_anew() {
  session = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`;
  $("log").replaceChildren();
}

export async function greet(gateway) {
  const { data, text } = await gateway.tool(AGENT, "get_health", {});
  return { status: "ok", ...(text ? JSON.parse(text) : {}), ...data };
}

export function cancel() {
  under_way?.abort();
}

export async function ask(gateway, message, refused) {
  const text = message.trim();
  if (!text || under_way) return;
  under_way = new AbortController();
  draw();
  const question = turn("You", text, "mine");
  const reply = turn("Atlas", "…", "busy");
  const bar = element("progress", { hidden: true });
  const lines = element("ol", { className: "lines" });
  reply.append(bar, element("details", {}, element("summary", { textContent: "Steps" }), lines));
  try {
    const answer = await gateway.tool(AGENT, "send_message", { message: text, session_id: session }, {
      signal: under_way.signal,
      progress: (step) => show_step(step, bar, lines),
    });
    say(reply, answer.text);
  } catch (error) {
    reply.classList.add("failed");
    say(reply, error.name === "AbortError" ? "Cancelled." : error.message);
    question.append(button("Ask again", `Ask again: ${text}`, () => ask(gateway, text, refused), "small"));
    if (error instanceof Refused) refused(error);
  }
  reply.classList.remove("busy");
  bar.hidden = true;
  under_way = null;
  draw();
  $("message").focus();
}

function show_step({ progress, total, message }, bar, lines) {
  if (message) lines.append(element("li", { textContent: message }));
  bar.hidden = false;
  if (total) Object.assign(bar, { max: total, value: progress });
}

function say(reply, text) {
  reply.querySelector("p.text").textContent = text;
  reply.scrollIntoView({ block: "nearest" });
}

function turn(who, text, kind) {
  const node = element("article", { className: `turn ${kind}` });
  node.append(element("p", { className: "who", textContent: who }), element("p", { className: "text", textContent: text }));
  $("log").append(node);
  node.scrollIntoView({ block: "nearest" });
  return node;
}

function draw() {
  $("send").disabled = Boolean(under_way);
  $("cancel").hidden = !under_way;
}
