// Speech becomes a message where the browser can do that; else there is no button. Some send it to their maker for that.
const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;

export function listen(button, heard, failed) {
  button.hidden = !Recognition;
  if (!Recognition) return;
  const recognition = new Recognition();
  recognition.lang = navigator.language || "en-US";
  recognition.interimResults = true;
  let on = false;
  const draw = (now) => {
    on = now;
    button.setAttribute("aria-pressed", String(now));
  };
  recognition.addEventListener("result", (event) => {
    const result = event.results[event.results.length - 1];
    heard(result[0].transcript, result.isFinal);
  });
  recognition.addEventListener("end", () => draw(false));
  recognition.addEventListener("error", (event) => event.error !== "aborted" && failed(event.error));
  button.addEventListener("click", () => {
    draw(!on);
    if (on) recognition.start();
    else recognition.stop();
  });
}
