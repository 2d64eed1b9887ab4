import { ProxyError } from "@turnout/core";
import type { AskedPacket } from "@turnout/core";
import { BACKENDS } from "./backends.ts";
import { readCluster } from "./cluster.ts";
import type { Cluster } from "./cluster.ts";
import { at, make } from "./elements.ts";
import { EXAMPLE_SCENARIOS, examplesOf, scenarioTitle } from "./examples.ts";
import type { Example } from "./examples.ts";
import { fieldProblems } from "./field-problems.ts";
import type { ListField } from "./field-problems.ts";
import { tooLong, tooMany } from "./limits.ts";
import { FRAGMENT_MAX, fragmentOf, stateOfFragment } from "./link.ts";
import { packetOf } from "./packet.ts";
import { refuse, showAll, showAnswer, showDone, showWorking } from "./results.ts";
import { FIRST_STATE } from "./state.ts";
import type { PlaygroundState } from "./state.ts";
import { tryBackend } from "./trial.ts";
import type { Trial } from "./trial.ts";

/** Who types should not have to wait for what he has not finished. */
const PAUSE_MS = 250;

const form = at("question", HTMLFormElement);
const manifests = at("manifests", HTMLTextAreaElement);
const fields = {
  node: at("node", HTMLInputElement),
  pods: at("pods", HTMLInputElement),
  from: at("from", HTMLInputElement),
  to: at("to", HTMLInputElement),
  addresses: at("addresses", HTMLInputElement),
  nodePortAddresses: at("node-port-addresses", HTMLInputElement),
};
const masqueradeAll = at("masquerade-all", HTMLInputElement);
const backend = at("backend", HTMLSelectElement);
const scenario = at("scenario", HTMLSelectElement);
const steps = at("steps-of", HTMLSelectElement);

function entered(): PlaygroundState {
  const texts = Object.fromEntries(Object.entries(fields).map(([name, { value }]) => [name, value])) as Record<keyof typeof fields, string>;
  return { ...texts, manifests: manifests.value, backend: backend.value, masqueradeAll: masqueradeAll.checked };
}

function enter(state: PlaygroundState): void {
  manifests.value = state.manifests;
  for (const [name, field] of Object.entries(fields)) field.value = state[name as keyof typeof fields];
  backend.value = BACKENDS.some(({ module }) => module.name === state.backend) ? state.backend : FIRST_STATE.backend;
  masqueradeAll.checked = state.masqueradeAll;
}

/** Answers that were overtaken by another question are none. */
let generation = 0;

async function answer(): Promise<void> {
  const own = ++generation;
  const isOvertaken = (): boolean => own !== generation;
  showWorking();
  // The page shows that before it stands still.
  await breath();
  if (isOvertaken()) return;
  try {
    await answerTo(entered(), isOvertaken);
  } catch (error) {
    if (!isOvertaken()) refuse(`This can't be answered, which is a defect of the playground: ${messageOf(error)}`);
    throw error;
  }
}

async function answerTo(state: PlaygroundState, isOvertaken: () => boolean): Promise<void> {
  const misread = showFieldProblems(fieldProblems(state));
  const long = tooLong(state.manifests);
  if (long !== undefined) return refuse(long);
  const cluster = readCluster(state);
  const refusal = misread ?? tooMany(cluster);
  if (refusal !== undefined) return refuse(refusal, cluster);
  const { packet, problem } = asked(state, cluster);
  const trials = new Map<string, Trial>();
  const failures = new Map<string, string>();
  // The chosen one first: its walk is the answer, and the others take a while.
  for (const one of BACKENDS.toSorted((a, b) => Number(b.module.name === state.backend) - Number(a.module.name === state.backend))) {
    const { name } = one.module;
    try {
      trials.set(name, await tryBackend(one, cluster, packet));
    } catch (error) {
      failures.set(name, `${name}: ${messageOf(error)}`);
    }
    // The page stays usable, and a newer question goes first.
    await breath();
    if (isOvertaken()) return;
    if (name === state.backend) showAnswer(cluster, trials.get(name), problem ?? failures.get(name));
  }
  showAll(trials, failures);
  showDone([...(problem === undefined ? [] : [problem]), ...failures.values()]);
}

async function breath(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Say at each field what is wrong with it; gives a line about the first, where there is one. */
function showFieldProblems(problems: ReadonlyMap<ListField, string>): string | undefined {
  for (const name of ["pods", "addresses", "nodePortAddresses"] as const) {
    const field = fields[name];
    const problem = problems.get(name);
    const line = at(`${field.id}-problem`, HTMLElement);
    line.textContent = problem ?? "";
    line.hidden = problem === undefined;
    field.setAttribute("aria-invalid", String(problem !== undefined));
    const details = field.closest("details");
    if (details !== null && problem !== undefined) details.open = true;
  }
  const [first] = problems.keys();
  if (first === undefined) return undefined;
  return `There is no answer: the field "${fields[first].labels?.[0]?.firstChild?.textContent?.trim()}" is wrong. What to write stands below it.`;
}

function asked(state: PlaygroundState, cluster: Cluster): { readonly packet: AskedPacket | undefined; readonly problem?: string } {
  try {
    return { packet: packetOf(state, cluster) };
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    return { packet: undefined, problem: error.message };
  }
}

let timer: ReturnType<typeof setTimeout> | undefined;

function answerSoon(): void {
  clearTimeout(timer);
  at("share-text", HTMLOutputElement).value = "";
  // An answer that is under way is none any more.
  generation += 1;
  showWorking();
  timer = setTimeout(() => void answer(), PAUSE_MS);
}

async function share(): Promise<void> {
  const output = at("share-text", HTMLOutputElement);
  const fragment = await fragmentOf(entered());
  if (fragment === undefined) {
    output.value = `No link was made: it would be longer than ${FRAGMENT_MAX.toLocaleString("en")} characters, and be cut off somewhere. Hand the manifests on as a file.`;
    return;
  }
  history.replaceState(undefined, "", fragment);
  try {
    await navigator.clipboard.writeText(location.href);
    output.value = "The link is copied. It holds all that you entered; nothing is sent to anybody.";
  } catch {
    // Not every page may write there, and one of file:// rarely.
    output.value = "The link is in the address bar. It holds all that you entered; nothing is sent to anybody.";
  }
}

let examples: readonly Example[] = [];

function chooseScenario(): void {
  const found = EXAMPLE_SCENARIOS[Number(scenario.value)];
  examples = found === undefined ? [] : examplesOf(found);
  steps.replaceChildren(...examples.map(({ say }, index) => make("option", { value: String(index) }, `${index + 1}. ${say}`)));
  at("step-line", HTMLElement).hidden = examples.length === 0;
  if (examples.length === 0) {
    at("probes", HTMLElement).replaceChildren();
    enter({ ...FIRST_STATE, backend: backend.value });
    return answerSoon();
  }
  const first = examples.findIndex(({ packets }) => packets.length > 0);
  steps.value = String(first);
  chooseStep();
}

function chooseStep(): void {
  const example = examples[Number(steps.value)];
  if (example === undefined) return;
  const [first] = example.packets;
  enter({ ...example.state, from: first?.from ?? "", to: first?.to ?? "", backend: backend.value });
  const about = "Packets of this step, each with what must come of it: who answers, and whose address they see.";
  at("probes", HTMLElement).replaceChildren(
    make("li", { class: "quiet" }, example.packets.length === 0 ? "This step sends no packet." : about),
    ...example.packets.map(({ text, from, to }) => {
      const button = make("button", { type: "button", class: "probe" }, text);
      button.addEventListener("click", () => {
        fields.from.value = from;
        fields.to.value = to;
        answerSoon();
      });
      return make("li", {}, button);
    }),
  );
  answerSoon();
}

function move(by: 1 | -1): void {
  const next = steps.selectedIndex + by;
  if (next >= 0 && next < steps.options.length) steps.selectedIndex = next;
  chooseStep();
}

/** Choose the first scenario of the rule that the address asks for, as the rulebook does: `?rule=R-22`. */
function fromRule(): void {
  const rule = new URLSearchParams(location.search).get("rule") ?? "";
  const index = EXAMPLE_SCENARIOS.findIndex(({ rules }) => rules.includes(rule));
  if (index < 0) return;
  scenario.value = String(index);
  chooseScenario();
}

/** Take what the address asks for, if anything: a rule, or all that somebody entered. */
async function fromAddress(): Promise<void> {
  // Without a fragment, or with that of a place on this page.
  if (location.hash === "" || document.getElementById(location.hash.slice(1)) !== null) return fromRule();
  const state = await stateOfFragment(location.hash);
  if (state !== undefined) return enter(state);
  at("share-text", HTMLOutputElement).value = "This link can't be read: it is cut off, or of another version.";
}

for (const { module } of BACKENDS) {
  backend.append(make("option", { value: module.name }, module.name));
  const place = make("div", { id: `rules-${module.name}` });
  at("rules", HTMLElement).append(make("details", { name: "rules" }, make("summary", {}, make("code", {}, module.name)), place));
}
scenario.append(
  make("option", { value: "" }, "a shop on two nodes"),
  ...EXAMPLE_SCENARIOS.map((one, index) => make("option", { value: String(index) }, scenarioTitle(one))),
);
form.addEventListener("input", (event) => {
  if (event.target !== scenario && event.target !== steps) answerSoon();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(timer);
  void answer();
});
scenario.addEventListener("change", chooseScenario);
steps.addEventListener("change", chooseStep);
at("next-step", HTMLButtonElement).addEventListener("click", () => move(1));
at("previous-step", HTMLButtonElement).addEventListener("click", () => move(-1));
at("share", HTMLButtonElement).addEventListener("click", () => void share());
addEventListener("hashchange", () => void fromAddress().then(answer));

async function begin(): Promise<void> {
  enter(FIRST_STATE);
  await fromAddress();
  await answer();
}

void begin();
