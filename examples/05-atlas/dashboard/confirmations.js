// Calls that wait for the word of whoever this is: the exact call, and two buttons.
import { $, banner, button, element } from "./page.js";

const PATH = "/confirmations";

export async function load(gateway) {
  const { confirmations } = await gateway.json(PATH);
  const before = new Set([...$("waiting").children].map((node) => node.dataset.id));
  const nodes = confirmations.map((call) => [...$("waiting").children].find((node) => node.dataset.id === call.id) ?? card(gateway, call));
  $("waiting").replaceChildren(...nodes);
  $("nothing-waits").hidden = nodes.length > 0;
  $("count").textContent = nodes.length || "";
  if (confirmations.some((call) => !before.has(call.id))) navigator.vibrate?.(100);
}

export function forget() {
  $("waiting").replaceChildren();
  $("count").textContent = "";
}

function card(gateway, call) {
  const node = element("li", { className: "call" });
  node.dataset.id = call.id;
  const act = (decision) => () => decide(gateway, call, decision, node);
  const approve = button("Approve", `Approve ${call.tool}`, act("approve"), "primary");
  node.append(
    element("p", {}, element("strong", { textContent: `${call.agent}: ${call.tool}` })),
    element("p", { className: "quiet", textContent: `asked by ${call.caller}` }),
  );
  if (!call.characters && plain(call)) {
    const what = element("dl");
    for (const [name, value] of Object.entries(call.arguments ?? {})) {
      what.append(element("dt", { textContent: name }), element("dd", { textContent: typeof value === "string" ? value : JSON.stringify(value) }));
    }
    node.append(what);
    if (call.more) node.append(element("pre", { textContent: JSON.stringify(call.more, null, 1) }));
  } else {
    approve.disabled = true;
    node.append(button("Show all", `Show all of ${call.tool}`, (event) => whole(gateway, call, approve, event.target), "small"));
  }
  node.append(element("div", { className: "row" }, button("Refuse", `Refuse ${call.tool}`, act("refuse")), approve));
  return node;
}

// What this page can show as it is: numbers that a browser does not round, and no character that hides others.
function plain(value) {
  if (typeof value === "string") return !/[\p{C}\p{Zl}\p{Zp}]/u.test(value);
  if (typeof value === "number") return Number.isSafeInteger(value) || !Number.isInteger(value);
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).flat().every(plain);
}

// Nobody approves what was not shown: here it is the gateway's own text, in ASCII.
async function whole(gateway, call, approve, asked) {
  try {
    const text = await gateway.text(`${PATH}/${encodeURIComponent(call.id)}`);
    const shown = element("pre", { textContent: text, tabIndex: 0, ariaLabel: `All of ${call.tool}` });
    shown.setAttribute("role", "group");
    asked.replaceWith(shown);
    shown.focus();
    approve.disabled = false;
  } catch (error) {
    banner(error.message, "error");
  }
}

async function decide(gateway, call, decision, node) {
  for (const one of node.querySelectorAll("button")) one.disabled = true;
  try {
    await gateway.json(`${PATH}/${encodeURIComponent(call.id)}`, { decision });
    banner(decision === "approve" ? `${call.tool} is approved: whoever asked for it asks once more.` : `${call.tool} is refused.`);
  } catch (error) {
    banner(error.message, "error");
  }
  node.remove();
  await load(gateway).catch(() => {});
}
