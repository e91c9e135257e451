// What the other modules draw with. All text goes in as text: what a model or a tool writes is never markup.
export const $ = (id) => document.getElementById(id);

export function element(tag, options = {}, ...children) {
  const node = Object.assign(document.createElement(tag), options);
  node.append(...children);
  return node;
}

export function button(label, name, act, kind = "") {
  const node = element("button", { type: "button", textContent: label, className: kind });
  node.setAttribute("aria-label", name);
  node.addEventListener("click", act);
  return node;
}

export function banner(text, kind = "") {
  $("banner").textContent = text;
  $("banner").className = kind;
  $("banner").hidden = !text;
}

// `every` seconds while the page is seen, and at once when it is seen again.
export function while_seen(every, act) {
  const look = () => document.visibilityState === "visible" && act();
  setInterval(look, every * 1000);
  document.addEventListener("visibilitychange", look);
}
