// The page of a running proxy. It asks the routes beside it and shows what they say: as text, never as HTML.

const POLL_MS = 2_000;
/** Entries of the list of changes; the oldest go. */
const CHANGES_SHOWN_MAX = 200;

/** @param {string} id */
const at = (id) => document.getElementById(id);

/** Make an element with text or children in it. */
function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  const { className, ...attributes } = options;
  if (className) element.className = className;
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children);
  return element;
}

const number = (value) => value.toLocaleString("en");
const clock = (ms) => new Date(ms).toISOString().slice(11, 19);

function age(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

async function reply(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error((await response.text()).trim() || `the proxy answered ${response.status}`);
  return response;
}

async function ask(path) {
  return await (await reply(path)).json();
}

// State

function showStatus(status) {
  const { node, health, backend, version, source, nowMs, families } = status;
  at("node").textContent = `on ${node}`;
  document.title = `Turnout on ${node}`;
  const isGood = health.isHealthy;
  showHealth(
    isGood,
    isGood ? (health.isEligible ? "healthy" : `healthy, not for load balancers: ${health.reason}`) : `not healthy: ${health.reason}`,
  );
  const from = source === undefined ? "" : `, source ${source}`;
  at("about").textContent = `${version}, backend ${backend}${from}; running for ${age(nowMs - status.startedMs)}; ${clock(nowMs)} UTC`;
  at("families").replaceChildren(...families.map((family) => familyRow(family, nowMs)));
  at("problems").replaceChildren(...problemsOf(status));
  showCounted(families);
}

function showHealth(isGood, text) {
  const health = at("health");
  // Only what is new is read out.
  if (health.textContent === text) return;
  health.textContent = text;
  health.className = isGood ? "good" : "bad";
}

function familyRow({ family, services, rows, rowsWithoutEndpoints, objects, appliedSinceMs, lastSyncMs, latency }, nowMs) {
  const counts = [services, rows, rowsWithoutEndpoints, objects].map((count) => make("td", { className: "number" }, number(count)));
  const since = appliedSinceMs === undefined ? "not yet" : `${clock(appliedSinceMs)} UTC`;
  const last = lastSyncMs === undefined ? "never" : `${age(nowMs - lastSyncMs)} ago`;
  const took = latency === undefined ? "none yet" : `${latency.p50Ms.toFixed(1)} / ${latency.p99Ms.toFixed(1)} ms`;
  return make("tr", {}, make("th", { scope: "row" }, family), ...counts, ...[since, last, took].map((text) => make("td", {}, text)));
}

function problemsOf({ families, issues, sourceProblems, nowMs }) {
  const blocks = [];
  const block = (title, lines, count) => {
    if (lines.length === 0) return;
    const more = count > lines.length ? [make("li", {}, `and ${number(count - lines.length)} more`)] : [];
    blocks.push(
      make("div", { className: "trouble" }, make("h3", {}, title), make("ul", {}, ...lines.map((line) => make("li", {}, line)), ...more)),
    );
  };
  const parts = Object.entries(sourceProblems).map(([part, problem]) => `${part}: ${problem}`);
  block("The source is not followed; rules stay as they are", parts, parts.length);
  for (const { family, waiting, refused, externalChange } of families) {
    if (waiting !== undefined) {
      const since = `since ${clock(waiting.sinceMs)} UTC (${age(nowMs - waiting.sinceMs)})`;
      block(
        `${family}: a change waits ${since}`,
        [...(waiting.error === undefined ? [] : [waiting.error]), ...waiting.rows.first],
        waiting.rows.count,
      );
    }
    const refusals = refused.first.map(
      ({ object, rows, error }) => `${object ?? "all"} of ${rows.join(", ") || "nobody any more"}: ${error.message}`,
    );
    block(`${family}: refused by the host`, refusals, refused.count);
    if (externalChange !== undefined) {
      const { atMs, who, objects } = externalChange;
      block(`${family}: changed by others`, [`${clock(atMs)} UTC: ${who}: ${number(objects)} objects, repaired since`], 1);
    }
  }
  block(
    "Reported about API objects",
    issues.first.map(({ object, what, hint }) => `${object}: ${what}: ${hint}`),
    issues.count,
  );
  return blocks;
}

const COUNT_WORDS = {
  connections: "connections",
  datagrams: "datagrams",
  bytesIn: "bytes in",
  bytesOut: "bytes out",
  rejects: "refused (no endpoints)",
  dropsWithoutLocal: "dropped (no local endpoints)",
  dropsOutsideRanges: "dropped (source ranges)",
};

function countsText(counts) {
  return Object.entries(COUNT_WORDS)
    .flatMap(([name, word]) => (counts[name] ? [`${number(counts[name])} ${word}`] : []))
    .join(", ");
}

function showCounted(families) {
  const counting = families.filter(({ counted }) => counted !== undefined && counted.first.length > 0);
  at("counted").replaceChildren(
    ...counting.flatMap(({ family, counted }) => [
      make("h3", {}, `${family}: the busiest Service ports, as the dataplane counted until ${clock(counted.readMs)} UTC`),
      make("ul", {}, ...counted.first.slice(0, 5).map(({ row, counts }) => make("li", {}, `${row}: ${countsText(counts)}`))),
    ]),
  );
}

// Services

/** What the list shows: for which search, and how far. */
const list = { search: "", next: undefined, generation: 0 };

async function search(text) {
  list.search = text;
  await load(undefined);
}

/** Load a page of the list; `after` undefined: from its beginning. */
async function load(after) {
  const generation = ++list.generation;
  const query = new URLSearchParams({ q: list.search, ...(after === undefined ? {} : { after }) });
  let page;
  try {
    page = await ask(`services?${query}`);
  } catch (error) {
    if (generation === list.generation) at("found").textContent = error.message;
    return;
  }
  // An answer that was overtaken by a later question is none.
  if (generation !== list.generation) return;
  const items = page.rows.map(rowItem);
  if (after === undefined) at("rows").replaceChildren(...items);
  else at("rows").append(...items);
  const shown = at("rows").children.length;
  at("found").textContent = page.count === 0 ? "nothing is found" : `${number(shown)} of ${number(page.count)} ports`;
  list.next = page.next;
  at("more").hidden = page.next === undefined;
}

function rowItem(row) {
  const { key, family, destinations, endpoints, isRefused, isWaiting } = row;
  const where = destinations.first.map(({ text }) => text).join(", ") || "no address";
  const states = [
    ...(endpoints.serving === 0 ? [make("span", { className: "bad" }, " no endpoint to serve")] : []),
    ...(isRefused ? [make("span", { className: "bad" }, " refused by the host")] : []),
    ...(isWaiting ? [make("span", { className: "bad" }, " waits")] : []),
  ];
  const summary = make(
    "summary",
    {},
    key,
    " ",
    make("span", { className: "quiet" }, `${family}  ${where}  ${number(endpoints.serving)} of ${number(endpoints.count)} endpoints serve`),
    ...states,
  );
  const details = make("details", {}, summary);
  // What is not looked at is not made: the list may be long.
  details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(rowDetail(row)), { once: true });
  return make("li", {}, details);
}

function rowDetail({ destinations, endpoints, policies, counts }) {
  const part = (title, lines, count) => {
    const more = count > lines.length ? [make("li", {}, `and ${number(count - lines.length)} more`)] : [];
    return [
      make("h3", {}, title),
      make("ul", {}, ...(lines.length === 0 ? [make("li", {}, "none")] : lines.map((line) => make("li", {}, line))), ...more),
    ];
  };
  const addresses = destinations.first.map(({ text, kind, rules }) => `${text} (${kind}): ${rules.join("; ")}`);
  return make(
    "div",
    { className: "detail" },
    ...part("Answers on this node at", addresses, destinations.count),
    ...part("Endpoints", endpoints.first, endpoints.count),
    ...part("Policies", policies, policies.length),
    ...(counts === undefined ? [] : part("Counted", [countsText(counts)], 1)),
  );
}

// Changes

const changes = { since: 0, isPaused: false };

function showChanges({ newest, changes: news }) {
  const items = news.map(({ atMs, family, text }) => make("li", {}, make("time", {}, `${clock(atMs)} UTC`), ` ${family} ${text}`));
  const shown = at("change-list");
  shown.prepend(...items.reverse());
  while (shown.children.length > CHANGES_SHOWN_MAX) shown.lastElementChild.remove();
  at("no-changes").hidden = shown.children.length > 0;
  changes.since = newest;
}

// Why

async function why(form) {
  const answer = at("why-answer");
  answer.hidden = false;
  answer.textContent = "asking…";
  try {
    answer.textContent = await (await reply(`why?${whyQuery(new FormData(form))}`)).text();
  } catch (error) {
    answer.textContent = error.message;
  }
}

function whyQuery(said) {
  const [from, to] = ["from", "to"].map((name) => String(said.get(name)).trim());
  return new URLSearchParams({ from, to, protocol: said.get("protocol"), output: "text" });
}

// All of it

async function refresh() {
  try {
    const [status, news] = await Promise.all([ask("status"), changes.isPaused ? undefined : ask(`changes?since=${changes.since}`)]);
    showStatus(status);
    if (news !== undefined) showChanges(news);
  } catch (error) {
    showHealth(false, `the proxy does not answer: ${error.message}`);
    // A proxy that is new begins to count its changes anew.
    changes.since = 0;
  }
}

async function follow() {
  for (;;) {
    if (!document.hidden) await refresh();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

at("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void why(event.target);
});
at("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void search(at("search").value.trim());
});
let typing;
at("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => void search(at("search").value.trim()), 200);
});
at("more").addEventListener("click", () => void load(list.next));
at("pause").addEventListener("click", () => {
  changes.isPaused = !changes.isPaused;
  at("pause").setAttribute("aria-pressed", String(changes.isPaused));
  at("pause").textContent = changes.isPaused ? "Go on" : "Pause";
});
void search("");
void follow();
