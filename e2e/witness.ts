import type { IPFamily } from "@turnout/core";
import type { Attempt, TargetRequest } from "@turnout/lab";
import { SERVER_PORT } from "./services.ts";
import type { Site } from "./site.ts";

/** A machine on which a witness is not answered in the sum of so many growing waits is out of order. */
const TRIES_MAX = 8;

/** How long an answer that should come is waited for, however busy the machine is; costs nothing where it comes. */
export const PATIENCE_MS = 10_000;

/**
 * Ask once, and believe silence only when somebody else who was asked meanwhile has answered: else the machine was busy, and both are asked
 * again for longer.
 *
 * Shape: the witness is a pod's own address, over UDP, from the same place.
 * @throws {Error} when the witness never answers: then silence tells nothing.
 */
export async function attemptWithWitness(
  site: Site,
  from: string,
  request: TargetRequest & { readonly timeoutMs: number },
): Promise<Attempt> {
  const agent = site.place(from).agent();
  const witness = witnessFor(site, from, request.address.includes(":") ? "IPv6" : "IPv4");
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const timeoutMs = request.timeoutMs * tries;
    const [one, other] = await Promise.all([agent.attempt({ ...request, timeoutMs }), agent.attempt({ ...witness, timeoutMs })]);
    if (one.outcome !== "timeout" || other.outcome === "ok") return one;
  }
  throw new Error(`${from} hears nothing from ${witness.address}, which should answer: silence tells nothing`);
}

function witnessFor(site: Site, from: string, family: IPFamily): TargetRequest {
  const pod = site.cluster.nodes.flatMap(({ pods }) => pods).find(({ name }) => name !== from);
  if (pod === undefined) throw new Error("a witness needs a pod that does not ask");
  return { address: pod.address(family), port: SERVER_PORT, transport: "UDP" };
}
