// What every page has: the theme that the reader chose, and keys. It runs before anything is drawn,
// so that no page appears in another theme first. Without it the theme is the system's.
{
  const SEQUENCE_MS = 1500;
  const root = document.documentElement;
  let first = "", timer;

  // A browser may forbid the memory of a page.
  function recall(name) {
    try { return localStorage.getItem(name) ?? ""; } catch { return ""; }
  }

  function remember(name, value) {
    try { localStorage.setItem(name, value); } catch { /* It then lasts as long as the page. */ }
  }

  function showTheme(theme) {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    for (const each of document.querySelectorAll("#themes button"))
      each.setAttribute("aria-pressed", String(each.value === theme));
  }

  function isWriting(event) {
    return event.isComposing || event.target.closest?.("input, textarea, select, dialog[open]");
  }

  function act(keys, find, help) {
    if (keys === "?") help.showModal();
    else if (keys === "/") find?.focus();
    else {
      const link = document.querySelector(`a[data-keys="${CSS.escape(keys)}"]`);
      if (!link) return false;
      link.click();
    }
    return true;
  }

  // A page in a frame is of another origin, and remembers a theme of its own.
  function tell(frame, theme) { frame.contentWindow.postMessage({ theme }, "*"); }

  function choose(theme, frames) {
    remember("theme", theme);
    showTheme(theme);
    for (const each of frames) tell(each, theme);
  }

  function offerThemes() {
    const frames = document.querySelectorAll("iframe");
    for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
    for (const each of document.querySelectorAll("#themes button"))
      each.addEventListener("click", () => choose(each.value, frames));
    for (const each of frames)
      each.addEventListener("load", () => { if (recall("theme")) tell(each, recall("theme")); });
    showTheme(recall("theme"));
  }

  function listen() {
    const [find, help, isOn] = ["find", "keys", "keys-on"].map((id) => document.getElementById(id));
    if (!help) return;
    isOn.checked = recall("keys") !== "off";
    isOn.addEventListener("change", () => remember("keys", isOn.checked ? "on" : "off"));
    document.getElementById("show-keys").addEventListener("click", () => help.showModal());
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event) || !isOn.checked) return;
      const keys = first + event.key;
      clearTimeout(timer);
      first = event.key === "g" ? "g" : "";
      timer = setTimeout(() => { first = ""; }, SEQUENCE_MS);
      if (act(keys, find, help)) event.preventDefault();
    });
  }

  showTheme(recall("theme"));
  addEventListener("message", ({ source, data }) => {
    if (source === parent && parent !== window && ["", "light", "dark"].includes(data?.theme))
      showTheme(data.theme);
  });
  addEventListener("storage", () => showTheme(recall("theme")));
  document.addEventListener("DOMContentLoaded", () => { offerThemes(); listen(); });
}
