// Shows times in the reader's zone, and keeps "8 min" since then up to date. Without it they are
// UTC, and as old as the page. `live.js` calls it for what it draws.
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const short = new Intl.DateTimeFormat("en", { timeZoneName: "short" });
const SHAPES = { full: dayAndTime, second: clockWithSeconds, since: duration };
let aheadMs = 0;

// By the clock of Headgate: that of a reader may be wrong.
function now() { return new Date(Date.now() + aheadMs); }

function two(number) { return String(number).padStart(2, "0"); }

function clock(at) {
  const today = now(), time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (at.toDateString() === today.toDateString()) return time;
  const year = at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()]}${year} ${time}`;
}

function clockWithSeconds(at) { return `${clock(at)}:${two(at.getSeconds())}`; }

function dayAndTime(at) {
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

// As `duration` of service/text/times.py.
function duration(at) {
  const seconds = Math.max(0, Math.floor((now() - at) / 1000));
  const [minutes, hours] = [60, 3600].map((each) => Math.floor(seconds / each));
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min`;
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${Math.floor(hours / 24)} d`;
}

function zoned(at) {
  const name = short.formatToParts(at).find((each) => each.type === "timeZoneName").value;
  return name === zone ? name : `${name} (${zone})`;
}

function write(element, at, shape) {
  const text = shape(new Date(at));
  if (element.textContent !== text) element.textContent = text;
}

function localized(root) {
  const made = root.querySelector("#made time");
  if (made) aheadMs = new Date(made.dateTime) - Date.now();
  for (const each of root.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    write(each, at, SHAPES[each.dataset.as] ?? clock);
    each.title = `${dayAndTime(at)} ${zoned(at)}`;
  }
  for (const each of root.querySelectorAll("[data-at]")) write(each, each.dataset.at, clock);
  for (const each of root.querySelectorAll("[data-label]"))
    each.ariaLabel = each.dataset.label.replace(/{(.*?)}/g, (_, at) => clock(new Date(at)));
  const name = root.getElementById("zone");
  if (name && zone !== "UTC") name.textContent = `Times are of your zone, ${zoned(now())}${name.dataset.but ?? ""}`;
}

localized(document);
setInterval(() => {
  for (const each of document.querySelectorAll("time[data-as=since]")) write(each, each.dateTime, duration);
}, 1000);
