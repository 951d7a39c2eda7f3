"use strict";
// Replaces the live part of the page by a fresh copy, while somebody looks at it.
(() => {
  const SECONDS = Number(document.getElementById("live").dataset.seconds || 5);

  async function renew() {
    if (document.hidden) return;
    const response = await fetch(location.href, { cache: "no-store" });
    if (!response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("live");
    if (!fresh || document.getSelection().type === "Range") return;
    document.getElementById("live").replaceChildren(...fresh.childNodes);
    document.title = page.title;
  }

  const quietly = () => renew().catch(() => {}); // the server may be restarting
  setInterval(quietly, SECONDS * 1000);
  document.addEventListener("visibilitychange", quietly);
})();
