import { STAGE_NODE } from "@turnout/conformance";
import type { RawObject } from "@turnout/core/testing";
import { claimantsOf, packetOfQuestion } from "./questions.ts";
import type { HealthQuestion, Question } from "./questions.ts";
import { nameOf, ownerOf } from "./world.ts";

/** What repeated connections met, each kind once, sorted: `pod-1-1:8080 saw node1`, `refused`, `dropped`, `untouched`, … */
export type Answers = readonly string[];
/**
 * What became of kept flows that one endpoint answered, each kind once, sorted. Whether a forgotten one meets another endpoint, a refusal or nothing is
 * what new connections show.
 */
export type FlowFates = readonly ("kept" | "forgotten")[];

/** A difference in what new connections met. */
export interface PacketDifference {
  readonly objects: readonly RawObject[];
  readonly question: Question;
  readonly turnout: Answers;
  readonly kubeProxy: Answers;
  /** The rules by which the oracle decides, for the variants of kube-proxy's mode. */
  readonly because: readonly string[];
}

/** A difference in what a change did to kept UDP flows that one endpoint answered. */
export interface FlowDifference {
  readonly before: readonly RawObject[];
  readonly after: readonly RawObject[];
  readonly question: Question;
  readonly turnout: FlowFates;
  readonly kubeProxy: FlowFates;
}

/** A difference in the answer of a health check node port. */
export interface HealthDifference {
  readonly objects: readonly RawObject[];
  readonly question: HealthQuestion;
  readonly turnout: Answers;
  readonly kubeProxy: Answers;
}

/** A way in which Turnout is meant to differ from kube-proxy; it counts only where Turnout does what the oracle says. */
export interface Permitted<T> {
  /** The rule of docs/rules.md that says so. */
  readonly rule: string;
  /** What kube-proxy does instead. */
  readonly kubeProxy: string;
  readonly explains: (difference: T) => boolean;
}

const TWO_ENTRIES = "of two entries for one address it takes the one that it happens to read last";

/** All permitted differences in packets besides the declared variants. */
export const PERMITTED_PACKETS: readonly Permitted<PacketDifference>[] = [
  {
    rule: "R-15",
    kubeProxy: TWO_ENTRIES,
    explains: ({ objects, question }) => hasTwoEntries(objects, claimantsOf(objects, question)),
  },
  {
    rule: "R-36",
    kubeProxy: "its nftables mode masquerades a pod that reaches itself only where the endpoint has this node's nodeName",
    explains: ({ objects, question, because }) =>
      because.includes("R-36") && isEndpointElsewhere(objects, packetOfQuestion(question).source),
  },
  {
    rule: "R-39",
    kubeProxy: "an external IP opens the load-balancer IP that it equals, whatever the source ranges",
    explains: ({ objects, question }) =>
      claimantsOf(objects, question).some((service) => isBoth(service, question.address) && hasRanges(service)),
  },
  {
    rule: "R-53",
    kubeProxy: "writes rules for every Service that wants an address; which of them answers is not defined",
    explains: ({ objects, question }) => claimantsOf(objects, question).length > 1,
  },
  {
    rule: "R-64",
    kubeProxy: "serves external IPs in the service range",
    explains: ({ objects, question: { address }, because }) =>
      because.includes("R-48") && objects.some((object) => listIn(object, "spec", "externalIPs").includes(address)),
  },
];

/** All permitted differences in what a change does to kept UDP flows. */
export const PERMITTED_FLOWS: readonly Permitted<FlowDifference>[] = [
  {
    rule: "R-15",
    kubeProxy: TWO_ENTRIES,
    explains: ({ before, after, question }) => [before, after].some((objects) => hasTwoEntries(objects, claimantsOf(objects, question))),
  },
  {
    rule: "R-44",
    kubeProxy: "leaves flows to an address that no Service has any more",
    explains: ({ after, question, kubeProxy }) => claimantsOf(after, question).length === 0 && isKept(kubeProxy),
  },
  {
    rule: "R-43",
    kubeProxy: "leaves flows to node ports of Services without endpoints, and cleans up only with a change of UDP endpoints",
    explains: ({ before, after, question, kubeProxy }) => {
      const [had, has] = [claimantsOf(before, question), claimantsOf(after, question)].map((services) => services.map(ownerOf));
      return (
        isKept(kubeProxy) && has !== undefined && (had?.join() !== has.join() || has.every((name) => !hasServing(after, name, question)))
      );
    },
  },
  {
    rule: "R-53",
    kubeProxy: "which of the Services that want an address has it is not defined",
    explains: ({ before, after, question }) => [before, after].some((objects) => claimantsOf(objects, question).length > 1),
  },
];

/** All permitted differences in what health check node ports answer. */
export const PERMITTED_HEALTH: readonly Permitted<HealthDifference>[] = [
  {
    rule: "R-15",
    kubeProxy: TWO_ENTRIES,
    explains: ({ objects, question }) => hasTwoEntries(objects, checkedBy(objects, question)),
  },
  {
    rule: "R-51",
    kubeProxy: "does not answer on load-balancer IPs that the host has, unless they are node-port addresses",
    explains: ({ objects, question, turnout, kubeProxy }) =>
      kubeProxy.join() === "refused" &&
      turnout.join() !== "refused" &&
      checkedBy(objects, question).some((service) => isBalancedBy(service, question.address)),
  },
];

const isKept = (fates: FlowFates): boolean => fates.includes("kept");

/** Whether an endpoint with this address has no nodeName, or that of another node. */
function isEndpointElsewhere(objects: readonly RawObject[], address: string): boolean {
  return objects.some((object) =>
    (listIn(object, "endpoints") as readonly RawObject[]).some(
      (endpoint) => endpoint["nodeName"] !== STAGE_NODE && listIn(endpoint, "addresses").includes(address),
    ),
  );
}

function hasServing(objects: readonly RawObject[], service: string, { family }: Question): boolean {
  const slices = objects.filter((object) => ownerOf(object) === service && object["addressType"] === family);
  const endpoints = slices.flatMap((slice) => listIn(slice, "endpoints"));
  return endpoints.some((endpoint) => (endpoint as { readonly conditions?: RawObject }).conditions?.["serving"] !== false);
}

/** Whether slices of one of the Services have two entries for one address. */
function hasTwoEntries(objects: readonly RawObject[], services: readonly RawObject[]): boolean {
  return services.some((service) => {
    const { name } = nameOf(service);
    const addresses = objects
      .filter((object) => ownerOf(object) === name)
      .flatMap((slice) => listIn(slice, "endpoints"))
      .flatMap((endpoint) => listIn(endpoint as RawObject, "addresses"));
    return new Set(addresses).size < addresses.length;
  });
}

function isBoth(service: RawObject, address: string): boolean {
  return listIn(service, "spec", "externalIPs").includes(address) && isBalancedBy(service, address);
}

function isBalancedBy(service: RawObject, address: string): boolean {
  const ingress = listIn(service, "status", "loadBalancer", "ingress") as readonly { readonly ip?: string }[];
  return ingress.some(({ ip }) => ip === address);
}

/** The Services that have a health check node port. */
function checkedBy(objects: readonly RawObject[], { port }: HealthQuestion): readonly RawObject[] {
  return objects.filter((object) => (object["spec"] as RawObject | undefined)?.["healthCheckNodePort"] === port);
}

const hasRanges = (service: RawObject): boolean => listIn(service, "spec", "loadBalancerSourceRanges").length > 0;

function listIn(object: RawObject, ...path: readonly string[]): readonly unknown[] {
  const found = path.reduce<unknown>((one, name) => (one as RawObject | undefined)?.[name], object);
  return Array.isArray(found) ? found : [];
}
