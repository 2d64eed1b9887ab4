import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Outcome, Plan } from "@turnout/core/backend";
import { setParameter } from "@turnout/host";
import type { OwnAddresses } from "@turnout/host";
import type { IpsetTool } from "@turnout/host/ipset";
import type { SectionRestore } from "@turnout/host/iptables";
import { AddressWriter } from "./applying/addresses.ts";
import { MemberWriter } from "./applying/members.ts";
import { Results } from "./applying/results.ts";
import { deletion, ServerWriter } from "./applying/servers.ts";
import type { IpvsObject, SysctlObject, TimeoutObject } from "./objects.ts";
import type { Step } from "./plan.ts";
import { operationOf, virtualServerOf } from "./servers.ts";
import type { IpvsWorld } from "./world.ts";

/** A chain that somebody else jumps to can't be deleted; it is tried again after this long. */
const CHAIN_LINGER_MS = 60_000;

/** What plans are carried out with. */
export interface ApplierTools {
  readonly world: Pick<IpvsWorld, "exec" | "clock" | "ipvs">;
  readonly family: IPFamily;
  readonly sets: IpsetTool;
  readonly rules: SectionRestore;
  readonly addresses: OwnAddresses;
  /** How long a real server keeps its connections, in ms. */
  readonly drainMs: number;
}

/** The error of a step, with which one it is. */
function atStep(error: unknown, step: Step, index: number, count: number): unknown {
  if (!ProxyError.is(error)) return error;
  const { code, what, object, hint, cause } = error;
  const where = `step ${index + 1} of ${count} (${step.do})`;
  return new ProxyError(code, what, {
    object: object === undefined ? where : `${object}, in ${where}`,
    ...(hint === undefined ? {} : { hint }),
    cause,
  });
}

/**
 * Carries plans out, step by step.
 *
 * Edges: a member of a set, a server, an address or a parameter that the host refuses fails by itself. A change of rules that fails ends the plan.
 */
export class Applier {
  readonly #tools: ApplierTools;
  readonly #members: MemberWriter;
  readonly #servers: ServerWriter;
  readonly #addresses: AddressWriter;

  constructor(tools: ApplierTools) {
    this.#tools = tools;
    const { world, family, sets, addresses, drainMs } = tools;
    this.#members = new MemberWriter(sets, family);
    this.#servers = new ServerWriter({ ipvs: world.ipvs, clock: world.clock, family, drainMs });
    this.#addresses = new AddressWriter(addresses, family);
  }

  /** @throws {ProxyError} what a tool failed with as a whole; earlier steps are in force. */
  async apply({ steps }: Plan<Step>, signal: AbortSignal): Promise<Outcome<IpvsObject>> {
    const results = new Results();
    for (const [index, step] of steps.entries()) {
      try {
        await this.#carryOut(step, results, signal);
      } catch (error) {
        throw atStep(error, step, index, steps.length);
      }
    }
    return results.outcome();
  }

  async #carryOut(step: Step, results: Results, signal: AbortSignal): Promise<void> {
    const { family, rules } = this.#tools;
    switch (step.do) {
      case "set":
        for (const object of step.objects) results.note(object, await this.#set(object, signal));
        return;
      case "fill":
        return await this.#members.fill(step.sets, step.entries, results, signal);
      case "restore":
        for (const object of await rules.restore(step.sections, signal)) results.lingering.push({ object, afterMs: CHAIN_LINGER_MS });
        return;
      case "serve":
        return await this.#servers.change(
          step.changes.map((change) => [change.object, operationOf(change, family)]),
          results,
          signal,
        );
      case "bind":
        return await this.#addresses.bind(step.addresses, results, signal);
      case "unbind":
        return await this.#addresses.unbind(step.addresses, results, signal);
      case "drain":
        return await this.#servers.drain(step.servers, results, signal);
      case "strip":
        return await this.#servers.change(
          step.servers.map((object) => deletion(object, family)),
          results,
          signal,
        );
      case "withdraw":
        return await this.#servers.change(
          step.services.map((object) => [object, { verb: "delete-service", service: virtualServerOf(object.key, family) }]),
          results,
          signal,
        );
      case "empty":
        return await this.#members.empty(step.entries, step.sets, results, signal);
      case "delete":
        for (const object of await rules.deleteChains(step.chains, signal)) results.lingering.push({ object, afterMs: CHAIN_LINGER_MS });
    }
  }

  async #set(object: SysctlObject | TimeoutObject, signal: AbortSignal): Promise<ProxyError | undefined> {
    const { exec, ipvs } = this.#tools.world;
    try {
      if (object.kind === "sysctl") await setParameter(exec, object.key, object.value, signal);
      // 0 leaves one as it is.
      else await ipvs.setTimeouts({ tcp: 0, tcpFin: 0, udp: 0, [object.key]: object.value });
      return undefined;
    } catch (error) {
      return ProxyError.from(error, "tool_failed", "a kernel parameter can't be set", { object: object.key });
    }
  }
}
