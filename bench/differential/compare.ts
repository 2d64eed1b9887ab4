import { affinityOf, flowFate, HOST_ADDRESSES, placeNameOf, stagePeer, STAGE_NODE, STAGE_OBJECTS, verdictOf } from "@turnout/conformance";
import type { OracleWorld, Verdict } from "@turnout/conformance";
import { abilitiesOf, FAMILIES } from "@turnout/core";
import type { BackendModule, IPFamily, NodeSettings, Variants } from "@turnout/core";
import type { RawObject } from "@turnout/core/testing";
import { PERMITTED_FLOWS, PERMITTED_HEALTH, PERMITTED_PACKETS } from "./permitted.ts";
import type { Answers, FlowFates, HealthDifference } from "./permitted.ts";
import { nodeAddresses, packetOfQuestion } from "./questions.ts";
import type { Question } from "./questions.ts";

/** The answer of what stands where packets arrive that no proxy translated. */
export const UNTOUCHED = "untouched";

/** Both proxies, as docs/rules.md describes them. */
export interface Compared {
  readonly backend: BackendModule;
  /** The backend whose declared variants are those of the mode that kube-proxy runs in. */
  readonly mode: BackendModule;
  readonly settings: NodeSettings;
}

/** Why a difference is permitted: a rule of docs/rules.md, or the variants in which the two are declared to differ. */
export type Explanation =
  { readonly rule: string } | { readonly variants: readonly (keyof Variants)[] } | { readonly chance: "R-46" } | undefined;

/** Say why two answers to one question may differ; undefined: they may not. Pure. */
export function explainPackets(
  compared: Compared,
  objects: readonly RawObject[],
  question: Question,
  { turnout, kubeProxy }: { readonly turnout: Answers; readonly kubeProxy: Answers },
): Explanation {
  const { backend, mode } = compared;
  const verdict = verdictFor(compared, objects, question);
  const isChance = isAffine(compared, objects, question);
  if (!agrees(verdict, turnout, question, isChance)) return undefined;
  if (isChance && agrees(verdict, kubeProxy, question, true)) return { chance: "R-46" };
  const [own, other] = [abilitiesOf(backend), abilitiesOf(mode)];
  const world = worldFor(compared, objects);
  const asMode = verdictOf({ ...world, ...other }, packetOfQuestion(question));
  if (agrees(asMode, kubeProxy, question, isChance)) {
    const without = (name: keyof Variants): Verdict =>
      verdictOf({ ...world, variants: { ...own.variants, [name]: other.variants[name] } }, packetOfQuestion(question));
    const variants = (Object.keys(own.variants) as (keyof Variants)[]).filter(
      (name) => answersOf(without(name), question).join() !== answersOf(verdict, question).join(),
    );
    if (variants.length > 0) return { variants };
  }
  const difference = { objects, question, turnout, kubeProxy, because: asMode.because };
  const permitted = PERMITTED_PACKETS.find(({ explains }) => explains(difference));
  return permitted === undefined ? undefined : { rule: permitted.rule };
}

/** Say why kept flows may have met different fates; undefined: they may not. TCP connections always stay. Pure. */
export function explainFlows(
  compared: Compared,
  { before, after }: { readonly before: readonly RawObject[]; readonly after: readonly RawObject[] },
  { question, server }: { readonly question: Question; readonly server: string },
  { turnout, kubeProxy }: { readonly turnout: FlowFates; readonly kubeProxy: FlowFates },
): Explanation {
  if (question.protocol === "TCP") return undefined;
  const { source, destination } = packetOfQuestion(question);
  const flow = { family: question.family, source, destination, port: question.port, endpoint: endpointAt(server, question.family) };
  const fate = flowFate(worldFor(compared, before), worldFor(compared, after), flow);
  if (fate === (turnout.includes("kept") ? "forget" : "keep")) return undefined;
  const difference = { before, after, question, turnout, kubeProxy };
  const permitted = PERMITTED_FLOWS.find(({ explains }) => explains(difference));
  return permitted === undefined ? undefined : { rule: permitted.rule };
}

/** Say why a health check node port may answer otherwise; undefined: it may not. Pure. */
export function explainHealth(difference: HealthDifference): Explanation {
  const permitted = PERMITTED_HEALTH.find(({ explains }) => explains(difference));
  return permitted === undefined ? undefined : { rule: permitted.rule };
}

/** Whether Turnout remembers the client: which endpoint it meets is chance, but once. Pure. */
export function isAffine(compared: Compared, objects: readonly RawObject[], question: Question): boolean {
  return affinityOf(worldFor(compared, objects), packetOfQuestion(question)) !== undefined;
}

/** How many endpoints may answer a question: so many answers have to be seen. Pure. */
export function answersExpected(compared: Compared, objects: readonly RawObject[], question: Question): number {
  return isAffine(compared, objects, question) ? 1 : answersOf(verdictFor(compared, objects, question), question).length;
}

/** What docs/rules.md says about a question, for Turnout's backend. Pure. */
export function verdictFor(compared: Compared, objects: readonly RawObject[], question: Question): Verdict {
  return verdictOf(worldFor(compared, objects), packetOfQuestion(question));
}

/** Write a verdict as answers. What is delivered on the node itself is not masqueraded: its packets never leave it. Pure. */
export function answersOf(verdict: Verdict, { from }: Question): Answers {
  if (verdict.is === "reject") return ["refused"];
  if (verdict.is === "drop") return ["dropped"];
  if (verdict.is !== "forward") return [UNTOUCHED];
  return verdict.answers
    .map(({ endpoint, masquerade }) => {
      const server = serverAt(endpoint);
      return `${server} saw ${masquerade && !server.startsWith(`${STAGE_NODE}:`) ? STAGE_NODE : from}`;
    })
    .toSorted();
}

/** Name a server as it names itself: its place and port. */
function serverAt(endpoint: string): string {
  const colon = endpoint.lastIndexOf(":");
  return `${placeNameOf(endpoint.slice(0, colon).replace(/^\[(.*)\]$/, "$1"))}${endpoint.slice(colon)}`;
}

/** The address and port of a server that names itself. */
function endpointAt(server: string, family: IPFamily): string {
  const [place = "", port = ""] = server.split(":");
  const address = stagePeer(place).addresses[family];
  return `${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Whether answers are what a verdict says; with affinity one of them is enough. */
function agrees(verdict: Verdict, answers: Answers, question: Question, isChance: boolean): boolean {
  const wanted = answersOf(verdict, question);
  if (verdict.is === "pass") return answers.every((answer) => answer.startsWith(UNTOUCHED) || !answer.includes(" saw "));
  if (isChance && answers.length === 1) return wanted.includes(answers[0] ?? "");
  return answers.join() === wanted.join();
}

function worldFor({ backend, settings }: Compared, objects: readonly RawObject[]): OracleWorld {
  const hosts = (family: IPFamily): readonly string[] => [...new Set([...HOST_ADDRESSES[family], ...nodeAddresses(family)])];
  return {
    objects: [...STAGE_OBJECTS, ...objects],
    nodeName: STAGE_NODE,
    settings,
    hostAddresses: Object.fromEntries(FAMILIES.map((family) => [family, hosts(family)])) as OracleWorld["hostAddresses"],
    nodePortAddressesDefault: backend.nodePortAddressesDefault ?? [],
    ...abilitiesOf(backend),
  };
}
