// Keeps an open page current: when it has changed, asks for it again and changes only what
// differs, in place. Focus, scroll position, typed text and opened parts stay; nothing moves while
// the pointer is on a link.
const [main, word] = ["main", "following"].map((id) => document.getElementById(id));
const isStream = main.dataset.live === "stream", everyMs = isStream ? 3000 : 1000 * main.dataset.live;
// After an upgrade a page is loaded anew, but not again and again while versions alternate.
const ANSWER_MS = 30000, QUIET_MS = 90000, SETTLED_MS = 600000;
let tag = "", waitMs = everyMs, source, timer, isAsking = false, isMissed = false;

function say(text, isStale) {
  word.hidden = false;
  word.classList.toggle("stale", isStale);
  if (word.textContent !== text) word.textContent = text;
}

function morph(from, to) {
  if (from.isEqualNode(to)) return;
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  const kept = new Map([...from.children].map((each) => [each.dataset.key, each]));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = wanted.dataset?.key;
    const found = key ? kept.get(key) : at;
    if (!found || found.nodeName !== wanted.nodeName || found.dataset?.key !== key) {
      from.insertBefore(document.importNode(wanted, true), at);
      continue;
    }
    if (found === at) at = at.nextSibling;
    else from.insertBefore(found, at);
    if (found.nodeType === Node.ELEMENT_NODE) morph(found, wanted);
    else if (found.nodeValue !== wanted.nodeValue) found.nodeValue = wanted.nodeValue;
  }
  for (let next; at; at = next) { next = at.nextSibling; at.remove(); }
}

async function look() {
  const signal = AbortSignal.timeout(ANSWER_MS);
  const reply = await fetch(location.href, { signal, headers: { "If-None-Match": tag } });
  if (reply.status === 304) return true;
  if (!reply.ok) throw new Error(String(reply.status));
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (main.querySelector("a:hover, summary:hover")) return false;
  const styles = [document, page].map((each) => each.querySelector("link[rel=stylesheet]").href);
  if (styles[0] !== styles[1] && performance.now() > SETTLED_MS && !main.querySelector("[open] form, :focus"))
    location.reload();
  const active = document.activeElement;
  localized(page);
  morph(main, page.getElementById("main"));
  document.getElementById("made")?.replaceWith(page.getElementById("made"));
  if (active !== document.activeElement && active.isConnected) active.focus({ preventScroll: true });
  if (document.title !== page.title) document.title = page.title;
  morph(...[document, page].map((each) => each.querySelector("link[rel=icon]")));
  tag = reply.headers.get("ETag") ?? "";
  return true;
}

// A stream says when to ask again. Where it is refused or there is none, the page asks by itself.
async function refresh() {
  isMissed = isAsking;
  if (isAsking) return;
  clearTimeout(timer);
  isAsking = true;
  let isShown = false;
  try {
    isShown = await look();
    say(isShown ? "Live" : "Changed: move the pointer off the link", !isShown);
    waitMs = everyMs;
  } catch {
    if (waitMs === everyMs) say(`Stale since ${clock(now())}`, true);
    waitMs = Math.min(2 * waitMs, 60000);
  }
  isAsking = false;
  if (isMissed) refresh();
  else if (document.hidden) return;
  else if (source && isShown) timer = setTimeout(again, QUIET_MS);
  else timer = setTimeout(refresh, waitMs);
}

// A stream says something each minute. One that is silent may have lost its connection.
function again() { listen(); refresh(); }

function listen() {
  source?.close();
  source = undefined;
  if (document.hidden) return;
  if (!isStream) { refresh(); return; }
  source = new EventSource(location.href);
  source.onmessage = refresh;
  source.onerror = () => {
    if (source?.readyState === EventSource.CLOSED) source = undefined;
    refresh();
  };
}
document.addEventListener("visibilitychange", listen);
listen();
