// Keeps the files of the page, so that it opens without a network; of answers and tokens it never sees any.
const NAME = "atlas-1";
const FILES = ["/app/", "dashboard.css", "dashboard.js", "mcp.js", "page.js", "talk.js", "timers.js", "confirmations.js", "voice.js", "icon.svg", "atlas.webmanifest"];

addEventListener("install", (event) => event.waitUntil(caches.open(NAME).then((cache) => cache.addAll(FILES)).then(() => skipWaiting())));

addEventListener("activate", (event) =>
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => name !== NAME).map((name) => caches.delete(name))))
      .then(() => clients.claim()),
  ),
);

// The network first: an edited page is seen at once, the kept one where there is none.
addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin || !url.pathname.startsWith("/app/")) return;
  event.respondWith(
    fetch(event.request)
      .then((answer) => {
        if (answer.ok) {
          const copy = answer.clone();
          caches.open(NAME).then((cache) => cache.put(event.request, copy));
        }
        return answer;
      })
      .catch(async () => (await caches.match(event.request)) ?? Response.error()),
  );
});
