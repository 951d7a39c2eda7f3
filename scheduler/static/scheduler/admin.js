"use strict";
/* Zone switch, live refresh, run-log dialog, preview and copy. Every page works without it. */
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const language = document.documentElement.lang || undefined;
  const recall = (name, otherwise) => { try { return localStorage.getItem("sched-" + name) ?? otherwise; } catch { return otherwise; } };
  const keep = (name, value) => { try { localStorage.setItem("sched-" + name, value); } catch { /* private mode */ } };
  const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

  /* Times: the server names UTC; here they are said again in the zone the reader chose. What names no job is of the page's. */
  function zoneOf(element) {
    const mode = recall("zone", "browser");
    return mode === "utc" ? "UTC" : mode === "job" ? element.closest("[data-zone]:not([data-zone=''])")?.dataset.zone || $("[data-sched-toolbar]")?.dataset.zone || "UTC" : browserZone;
  }
  const formats = new Map();
  function spoken(at, zone) {
    const make = (locale, options) => new Intl.DateTimeFormat(locale, { timeZone: zone, ...options });
    if (!formats.has(zone)) formats.set(zone, [make("sv-SE", { dateStyle: "short", timeStyle: "medium" }), make("en", { timeZoneName: "short" }), make(language, { weekday: "short" })]);
    const [full, name, day] = formats.get(zone), when = new Date(at);
    return [...full.format(when).split(" "), name.formatToParts(when).find((part) => part.type === "timeZoneName").value, day.format(when)];
  }
  function say(element) {
    const zone = zoneOf(element);
    try { const [date, time, name] = spoken(element.dateTime, zone); [element.textContent, element.title] = [`${date} ${time}${element.dataset.fraction ?? ""} ${name}`, zone]; } catch { /* a zone this browser does not know: the server's words stay */ }
  }
  /* Words of a picture: the time in them is said in the shape that it was written in. */
  const shape = /^\d\d$|(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?( UTC)?/;
  function sayInPicture(element) {
    const words = (element.dataset.said ??= element.textContent), [date, time, name, day] = spoken(element.dataset.schedAt, zoneOf(element));
    if (element.matches(".sched-day")) element.textContent = `${day} ${Number(date.slice(8))}`;
    else element.textContent = words.replace(shape, (all, full, seconds, zone) => (full ? date + " " : "") + time.slice(0, seconds ? 8 : all.length > 2 || time.slice(3, 5) > 0 ? 5 : 2) + (zone ? " " + name : ""));
  }
  const ago = new Intl.RelativeTimeFormat(language, { numeric: "always", style: "short" });
  function agoWords(at) {
    const seconds = Math.round((new Date(at) - Date.now()) / 1000);
    const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([one]) => Math.abs(seconds) >= one) ?? [1, "second"];
    return ago.format(Math.trunc(seconds / size), unit);
  }
  function count(element) {
    const words = agoWords(element.dataset.at);
    if (element.textContent !== words) element.textContent = words;
  }
  function localise(root = document) {
    $$("time.sched-time", root).forEach(say);
    $$("[data-sched-at]", root).forEach(sayInPicture);
    $$("[data-sched-zone-said]", root).forEach((one) => { one.textContent = zoneOf(one); });
    $$(".sched-relative", root).forEach(count);
    $$("[data-sched-copy]", root).forEach((button) => { button.hidden = !navigator.clipboard; });
    $$("[data-sched-tail]", root).forEach((log) => { log.scrollTop = log.scrollHeight; });
  }

  /* Live refresh: marked regions are replaced by what the server says now; focus and scrolling stay. */
  let etag = "", timer = 0;
  const served = new Map($$("[data-sched-live]").map((region) => [region.dataset.schedLive, region.innerHTML]));
  const focusable = "a[href], button, input, select, summary, [tabindex]";
  function replace(region, fresh) {
    const key = region.dataset.schedLive;
    region.toggleAttribute("data-sched-busy", fresh.hasAttribute("data-sched-busy"));
    const news = fresh.innerHTML, token = /name="csrfmiddlewaretoken" value="\w+"/g;
    if (news.replace(token, "") === (served.get(key) ?? "").replace(token, "")) return;
    served.set(key, news);
    const held = region.contains(document.activeElement) ? $$(focusable, region).indexOf(document.activeElement) : -1;
    const scrolled = $$(".sched-pre, .sched-scroll", region).map((box) => [box.scrollLeft, box.scrollTop, box.scrollTop + box.clientHeight >= box.scrollHeight - 4]);
    region.replaceChildren(...document.importNode(fresh, true).childNodes);
    localise(region);
    $$(".sched-pre, .sched-scroll", region).forEach((box, place) => {
      const [left, top, atEnd] = scrolled[place] ?? [0, 0, false];
      box.scrollLeft = left;
      if (!atEnd) box.scrollTop = top;
    });
    if (held >= 0) $$(focusable, region)[held]?.focus({ preventScroll: true });
  }
  /* A page that cannot refresh says so: what it shows is of the moment in which the server last answered. */
  const patience = 10000, lifetime = 60000, chosen = () => Number(recall("refresh", "15"));
  let heard = Date.now(), silence = "";
  function tell(why) {
    const note = $("[data-sched-stale]"), age = note && $("[data-heard]", note);
    document.body.toggleAttribute("data-sched-old", Boolean(why) && why !== "off");
    if (!note) return;
    note.hidden = !why;
    note.classList.toggle("sched-bad", why !== "off");
    note.classList.toggle("sched-warn", why === "off");
    if (why && why !== silence) $("[role=status]", note).textContent = $("[role=status]", note).dataset[why];
    if (why) age.textContent = (why === "off" ? age.dataset.off : age.dataset.heard).replace("{time}", agoWords(heard));
    silence = why;
  }
  /* Without refresh no answer can fail to come: there the clock tells that the page is old. */
  function grow() {
    const off = !chosen() && $("[data-sched-live]") && Date.now() - heard >= lifetime;
    const why = silence && silence !== "off" ? silence : off ? "off" : "";
    if (why || silence) tell(why);
  }
  function answered(response) {
    const shut = response.type === "opaqueredirect" || [401, 403].includes(response.status);
    if (response.ok || response.status === 304) heard = Date.now();
    tell(shut ? "shut" : response.ok || response.status === 304 ? "" : "silent");
    return response.ok;
  }
  async function refresh() {
    if (document.hidden) return;
    const headers = { "X-Scheduler-Live": "1", ...(etag && { "If-None-Match": etag }) };
    const response = await fetch(location.href, { cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(patience), headers });
    if (!answered(response)) return;
    etag = response.headers.get("ETag") ?? "";
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const region of $$("[data-sched-live]")) {
      const other = $(`[data-sched-live="${CSS.escape(region.dataset.schedLive)}"]`, fresh);
      if (other) replace(region, other);
    }
  }
  const look = () => refresh().catch(() => tell("silent")).finally(plan);
  function plan() {
    clearTimeout(timer);
    if (!chosen() || !$("[data-sched-live]")) return;
    const wait = $("[data-sched-busy]") ? Math.min(3, chosen()) : chosen();
    timer = setTimeout(look, wait * 1000);
  }

  /* The run log opens from the list in a dialog; a click with a modifier opens the plain page. */
  async function openLog(url, title) {
    const dialog = $("[data-sched-dialog-box]"), body = $("[data-sched-dialog-body]");
    const address = new URL(url, location.href);
    address.searchParams.set("fragment", "1");
    const response = await fetch(address);
    if (!response.ok || response.redirected) { location.href = url; return; }
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    body.replaceChildren(...document.importNode(fresh.body, true).childNodes);
    $("#sched-dialog-title").textContent = title;
    localise(body);
    if (!dialog.open) dialog.showModal();
  }

  /* The preview of a schedule follows the form while it is written. */
  function previewOf(box) {
    const form = box.closest("form");
    let waiting = 0, asked = 0;
    form.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const number = ++asked;
        const response = await fetch(box.dataset.schedPreview, { method: "POST", body: new FormData(form) }).catch(() => null);
        if (number !== asked) return;
        if (!response?.ok || response.redirected) { box.replaceChildren(); return; } /* none, rather than one of another schedule */
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        box.replaceChildren(...document.importNode(fresh.body, true).childNodes);
        localise(box);
      }, 300);
    });
  }

  /* Other themes: each group that none folds is folded. */
  for (const group of $$(".sched-folded:not(:has(details)):not(details *)")) {
    const details = document.createElement("details"), summary = document.createElement("summary"), head = $("h2, .card-header", group);
    if (!head) continue;
    details.open = Boolean($(".errorlist, .errors", group));
    details.append(summary, ...group.childNodes);
    summary.append(head);
    group.append(details);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-sched-dialog], [data-sched-dialog-body] .sched-tabs a[href*='/runs/'], [data-sched-dialog-body] a.sched-button");
    if (link && $("[data-sched-dialog-box]") && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      openLog(link.href, link.closest("tr")?.querySelector(".sched-name")?.textContent ?? $("#sched-dialog-title").textContent).catch(() => { location.href = link.href; });
    }
    $$(".sched-menu[open]").forEach((menu) => { menu.open = menu.contains(event.target); });
    const copy = event.target.closest("[data-sched-copy]");
    if (copy) navigator.clipboard.writeText($("#" + copy.dataset.schedCopy).textContent).then(() => copy.classList.add("sched-good"));
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") $$(".sched-menu[open]").forEach((menu) => { menu.open = false; menu.firstElementChild.focus(); }); });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-sched-zone]")) { keep("zone", event.target.value); start(); }
    if (event.target.matches("[data-sched-refresh]")) { keep("refresh", event.target.value); chosen() && silence ? look() : plan(); }
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && chosen()) look(); });
  function start() {
    $$("[data-sched-toolbar]").forEach((bar) => {
      bar.hidden = false;
      $("[data-sched-zone]", bar).value = recall("zone", "browser");
      $("[data-sched-zone-name]", bar).textContent = recall("zone", "browser") === "browser" ? browserZone : "";
      $("[data-sched-refresh]", bar).value = recall("refresh", "15");
    });
    localise();
    /* What the server draws day by day, it draws in the zone that this cookie names. */
    const jar = `sched_zone=${recall("zone", "browser") === "job" ? "" : zoneOf(document.body)}`;
    if (document.cookie.split("; ").includes(jar)) return;
    document.cookie = jar + "; path=/; max-age=31536000; samesite=lax";
    if ($("[data-sched-drawn-in]")) look();
  }
  start();
  $$("[data-sched-preview]").forEach(previewOf);
  setInterval(() => { $$(".sched-relative").forEach(count); grow(); }, 1000);
  plan();
})();
