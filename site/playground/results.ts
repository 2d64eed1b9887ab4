import { BACKENDS } from "./backends.ts";
import type { Cluster } from "./cluster.ts";
import { at, make } from "./elements.ts";
import type { Trial } from "./trial.ts";
import { backendsView, problemsView, rowsView, rulesView, walkView } from "./view.ts";

/** Below the answer. */
const DETAILS: readonly string[] = ["backends", "rows", ...BACKENDS.map(({ module }) => `rules-${module.name}`)];
/** Where answers stand. */
const PLACES: readonly string[] = ["answer", "problems", ...DETAILS];
const BUSY = "aria-busy";

/** Show something of what is in the form now. */
function fill(id: string, nodes: readonly Node[]): void {
  const place = at(id, HTMLElement);
  place.replaceChildren(...nodes);
  place.removeAttribute(BUSY);
}

/** Show of all answers that they are of a question before. */
export function showWorking(): void {
  for (const id of PLACES) at(id, HTMLElement).setAttribute(BUSY, "true");
  at("status", HTMLElement).textContent = "working…";
}

/** Show that no more answers come, and what was wrong. */
export function showDone(failures: readonly string[] = []): void {
  at("status", HTMLElement).textContent = failures.join("; ");
}

/** Take all answers away, and say why there are none. @param cluster what was read; absent: nothing was */
export function refuse(why: string, cluster?: Cluster): void {
  fill("answer", [verdictOf(why)]);
  fill("problems", cluster === undefined ? [] : problemsView(cluster));
  for (const id of DETAILS) fill(id, [make("p", { class: "quiet" }, "Nothing is shown here: the reason stands above.")]);
  showDone();
}

/** Show what becomes of the packet with the chosen backend, and what was read. @param problem why the backend tells nothing of a packet */
export function showAnswer(cluster: Cluster, trial: Trial | undefined, problem: string | undefined): void {
  const walk = trial?.walk;
  const noWalk = problem ?? "No packet is asked about: say from where to where.";
  fill("answer", walk === undefined ? [verdictOf(noWalk)] : walkView(walk));
  fill("problems", problemsView(cluster));
  fill("rows", rowsView(cluster));
}

/** Show what each backend makes of it. @param failures by backend, why it makes nothing */
export function showAll(trials: ReadonlyMap<string, Trial>, failures: ReadonlyMap<string, string>): void {
  fill("backends", [backendsView(BACKENDS.flatMap(({ module }) => trials.get(module.name) ?? []))]);
  for (const trial of trials.values()) fill(`rules-${trial.backend}`, rulesView(trial));
  for (const [name, failure] of failures) fill(`rules-${name}`, [make("p", {}, failure)]);
}

function verdictOf(text: string): HTMLElement {
  return make("p", { id: "verdict", class: "verdict" }, text);
}
