import { ProxyError } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { MAX_IN_FLIGHT, NetlinkChannel } from "../netlink/channel.ts";
import { errno, kernelError } from "../netlink/errno.ts";
import { findFamily } from "../netlink/generic.ts";
import { NETLINK } from "../netlink/socket.ts";
import { parseCounts, parseRealServer, parseService, parseTimeouts, parseVersion } from "./answers.ts";
import type { ServiceAnswer } from "./answers.ts";
import { IPVS_FAMILY } from "./constants.ts";
import { ipvsMissing, operationError, timeoutsError } from "./errors.ts";
import { operationObject, virtualServerName } from "./model/model.ts";
import type { IpvsListing, IpvsOperation, IpvsTimeouts, RealServer, VirtualServerCounts, VirtualServerKey } from "./model/model.ts";
import { operationRequest, questionRequest, realServersRequest, servicesRequest, timeoutsRequest } from "./requests.ts";
import { checksumIpvs } from "./contents.ts";
import { summarizeIpvs } from "./summary.ts";
import type { IpvsSummary } from "./summary.ts";
import { Mutex } from "../netlink/mutex.ts";

/** IPVS of one network namespace. */
export interface Ipvs {
  /**
   * List the virtual servers of one family with their real servers; others' are among them.
   *
   * Shape: those that `only` names, or all; one round trip for each virtual server; 5,000 with ten real servers each take 0.3 s of CPU.
   * Edges: when somebody else changes something meanwhile, any virtual server may be missing or be there twice: the kernel doesn't say.
   * @throws {ProxyError} `host_unsupported` where the kernel has no IPVS, `permission_denied`, `tool_failed`.
   */
  list(family: IPFamily, only?: (server: VirtualServerKey) => boolean): Promise<IpvsListing>;
  /**
   * List the real servers of a few virtual servers, in their order: one round trip each.
   *
   * Edges: empty also for a virtual server that isn't there, as the kernel doesn't tell these apart.
   * @throws {ProxyError} as {@link Ipvs.list}.
   */
  realServers(of: readonly VirtualServerKey[]): Promise<readonly (readonly RealServer[])[]>;
  /** Read what was counted for each virtual server of one family, in one round trip. @throws {ProxyError} as {@link Ipvs.list}. */
  counts(family: IPFamily): Promise<readonly (VirtualServerKey & VirtualServerCounts)[]>;
  /**
   * Carry out operations in order, many in one round trip, and say what became of each: undefined, or why the kernel refused it. One that
   * is refused stops no other.
   *
   * Edges: those that were not sent when `signal` aborted are `canceled`.
   * @throws {ProxyError} as {@link Ipvs.list}; any of them may be in force then.
   */
  change(operations: readonly IpvsOperation[], signal: AbortSignal): Promise<readonly (ProxyError | undefined)[]>;
  /** What changes when somebody adds or removes something of IPv4, quickly. @throws {ProxyError} as {@link Ipvs.list}. */
  summary(): IpvsSummary;
  /**
   * Digest all of one family, with real servers and their weights, for each part as of `partOf`: fifty times as dear as a summary.
   *
   * @param pagesMax of the kernel's list, which has both families, only so many pages from its beginning count
   * @throws an error of node:fs.
   */
  contents(family: IPFamily, pagesMax?: number): Promise<Int32Array>;
  /** How long connections are remembered; of the whole network namespace. @throws {ProxyError} as {@link Ipvs.list}. */
  timeouts(): Promise<IpvsTimeouts>;
  /** Set them; 0 leaves one as it is. @throws {ProxyError} as {@link Ipvs.list}, `tool_failed` for one above 2^31 jiffies. */
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
  /** The kernel's version of IPVS, e.g. `1.2.1`. @throws {ProxyError} as {@link Ipvs.list}. */
  version(): Promise<string>;
  /** Close the socket once what is under way has ended; what has not begun fails with `canceled`. */
  close(): void;
}

/** Make the real {@link Ipvs}, for the network namespace of this process. Touches nothing yet. */
export function createIpvs(): Ipvs {
  return new KernelIpvs();
}

class KernelIpvs implements Ipvs {
  readonly #channel = new NetlinkChannel(NETLINK.generic);
  #type: number | undefined;
  /** Listings and changes take turns: places in the kernel's table shift when it changes, so a listing could miss what nobody touches. */
  readonly #turns = new Mutex();

  list(family: IPFamily, only: (server: VirtualServerKey) => boolean = () => true): Promise<IpvsListing> {
    return this.#turns.run(async () => {
      const { services: all, firewallMarks } = await this.#services(family);
      const services = all.filter(only);
      const realServers = await this.realServers(services);
      return { virtualServers: services.map((service, at) => ({ ...service, realServers: realServers[at] ?? [] })), firewallMarks };
    });
  }

  async realServers(of: readonly VirtualServerKey[]): Promise<readonly (readonly RealServer[])[]> {
    const type = await this.#familyId();
    const found: (readonly RealServer[])[] = [];
    for (const service of of) {
      const servers: RealServer[] = [];
      const { errno: value } = await this.#channel.dump(type, realServersRequest(service), (_, payload) => {
        const server = parseRealServer(payload, service.family);
        if (server !== undefined) servers.push(server);
      });
      this.#check(value, "real servers can't be listed", virtualServerName(service));
      found.push(servers);
    }
    return found;
  }

  counts(family: IPFamily): Promise<readonly (VirtualServerKey & VirtualServerCounts)[]> {
    return this.#turns.run(async () => {
      const found: (VirtualServerKey & VirtualServerCounts)[] = [];
      const { errno: value } = await this.#channel.dump(await this.#familyId(), servicesRequest(), (_, payload) => {
        const [service, counts] = [parseService(payload), parseCounts(payload)];
        if (service === undefined || counts === undefined || service.family !== family || "firewallMark" in service) return;
        const { protocol, address, port } = service;
        found.push({ family, protocol, address, port, ...counts });
      });
      this.#check(value, "what was counted for virtual servers can't be read", undefined);
      return found;
    });
  }

  change(operations: readonly IpvsOperation[], signal: AbortSignal): Promise<readonly (ProxyError | undefined)[]> {
    return this.#turns.run(async () => {
      const outcomes: (ProxyError | undefined)[] = [];
      while (outcomes.length < operations.length) {
        const some = operations.slice(outcomes.length, outcomes.length + MAX_IN_FLIGHT);
        if (signal.aborted) outcomes.push(...some.map((operation) => canceled(operation, signal)));
        else {
          const values = await this.#channel.requestMany(await this.#familyId(), some.map(operationRequest));
          outcomes.push(...some.map((operation, index) => operationError(operation, values[index] ?? 0)));
        }
      }
      return outcomes;
    });
  }

  summary(): IpvsSummary {
    return summarizeIpvs();
  }

  contents(family: IPFamily, pagesMax?: number): Promise<Int32Array> {
    return checksumIpvs(family, pagesMax);
  }

  async timeouts(): Promise<IpvsTimeouts> {
    return await this.#ask("timeouts", parseTimeouts);
  }

  async setTimeouts(timeouts: IpvsTimeouts): Promise<void> {
    const value = await this.#channel.request(await this.#familyId(), timeoutsRequest(timeouts));
    if (value !== 0) throw timeoutsError(timeouts, value);
  }

  async version(): Promise<string> {
    return await this.#ask("version", parseVersion);
  }

  close(): void {
    this.#channel.close();
  }

  async #ask<T>(question: "timeouts" | "version", parse: (payload: Buffer) => T | undefined): Promise<T> {
    let answer: T | undefined;
    const value = await this.#channel.request(await this.#familyId(), questionRequest(question), (_, payload) => {
      answer ??= parse(payload);
    });
    this.#check(value, `the ${question} of IPVS can't be read`, undefined);
    if (answer === undefined) throw new ProxyError("tool_failed", `the kernel's answer holds no ${question} of IPVS`);
    return answer;
  }

  async #services(family: IPFamily): Promise<{ readonly services: readonly ServiceAnswer[]; readonly firewallMarks: readonly number[] }> {
    const services: ServiceAnswer[] = [];
    const firewallMarks: number[] = [];
    const { errno: value } = await this.#channel.dump(await this.#familyId(), servicesRequest(), (_, payload) => {
      const service = parseService(payload);
      if (service === undefined || service.family !== family) return;
      if ("firewallMark" in service) firewallMarks.push(service.firewallMark);
      else services.push(service);
    });
    this.#check(value, "virtual servers can't be listed", undefined);
    return { services, firewallMarks };
  }

  async #familyId(): Promise<number> {
    this.#type ??= await findFamily(this.#channel, IPVS_FAMILY);
    if (this.#type === undefined) throw ipvsMissing();
    return this.#type;
  }

  #check(value: number, what: string, object: string | undefined): void {
    if (value === 0) return;
    // The module went; when it comes again it may have another number.
    if (value === errno("ENOENT")) {
      this.#type = undefined;
      throw ipvsMissing();
    }
    throw kernelError(value, what, object === undefined ? {} : { object });
  }
}

function canceled(operation: IpvsOperation, signal: AbortSignal): ProxyError {
  return new ProxyError("canceled", "a change of IPVS was given up", { object: operationObject(operation), cause: signal.reason });
}
