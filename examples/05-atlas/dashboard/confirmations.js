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
  const where = call.agent;
  const node = element("li", { className: "call" });
  node.dataset.id = call.id;
  const what = element("dl");
  for (const [name, value] of Object.entries(call.arguments ?? {})) {
    what.append(element("dt", { textContent: name }), element("dd", { textContent: typeof value === "string" ? value : JSON.stringify(value) }));
  }
  node.append(
    element("p", {}, element("strong", { textContent: `${where}: ${call.tool}` })),
    element("p", { className: "quiet", textContent: `asked by ${call.caller}` }),
    what,
  );
  if (call.characters) node.append(button("Show all", `Show all of ${call.tool}`, (event) => whole(gateway, call, what, event.target), "small"));
  if (call.more) node.append(element("pre", { textContent: JSON.stringify(call.more, null, 1) }));
  const act = (decision) => () => decide(gateway, call, decision, node);
  const approve = button("Approve", `Approve ${call.tool}`, act("approve"), "primary");
  approve.disabled = Boolean(call.characters);
  node.append(element("div", { className: "row" }, button("Refuse", `Refuse ${call.tool}`, act("refuse")), approve));
  return node;
}

// Nobody approves what was not shown.
async function whole(gateway, call, what, asked) {
  try {
    const { arguments: all } = await gateway.json(`${PATH}/${encodeURIComponent(call.id)}`);
    what.replaceChildren(element("dt", { textContent: "arguments" }), element("dd", { textContent: JSON.stringify(all, null, 1) }));
    what.parentNode.querySelector("button.primary").disabled = false;
    asked.remove();
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
