import { familyOf } from "@turnout/core";
import type { FakeHost, Flow, Packet, Trace } from "@turnout/conformance";
import { LinuxFakeHost } from "@turnout/fakes";
import { createFakeIp } from "@turnout/host/testing";
import type { FollowOptions } from "@turnout/fakes";
import { OWN_DEVICE } from "../objects.ts";
import type { UserspaceWorld } from "../world.ts";
import { FakeSockets, type Flow as UdpFlow } from "./fake-sockets.ts";

const FIRST_PORT = 20_000;
const PORTS = 40_000;

/** The userspace backend's host in memory, with more to look at than the kit needs. */
export interface UserspaceFakeHost extends FakeHost {
  readonly world: UserspaceWorld;
  readonly sockets: FakeSockets;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
}

/**
 * Make a host with sockets and addresses that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1 and a device of somebody else. A packet is followed by having a client come to the
 * backend's own sockets and looking which endpoint is dialled for it; what nobody listens on is the host's own affair: `pass`.
 * Edges: a client that is only traced leaves before the endpoint has answered. TCP connections end as soon as they are made; UDP clients stay.
 */
export function createFakeHost(): UserspaceFakeHost {
  return new FakeUserspaceHost();
}

class FakeUserspaceHost extends LinuxFakeHost implements UserspaceFakeHost {
  readonly world: UserspaceWorld;
  readonly sockets: FakeSockets;
  #kept: { readonly flow: Flow; readonly udp: UdpFlow }[] = [];
  #random: () => number = () => 0;
  #port = 0;

  constructor() {
    super();
    const { clock, netlink, faults, log } = this;
    this.sockets = new FakeSockets(
      (ip) => this.#isLocal(ip),
      (ip) => {
        const fault = faults.next([ip]);
        // One socket is opened or it isn't.
        return fault === "during" ? "before" : fault;
      },
    );
    this.world = {
      exec: createFakeIp(this.links, faults),
      netlink,
      clock,
      log,
      sockets: this.sockets,
      random: () => this.#random(),
      canOwnAddresses: () => Promise.resolve(true),
    };
  }

  override get flows(): readonly Flow[] {
    return this.#kept.filter(({ udp }) => this.sockets.has(udp) && !udp.isParted).map(({ flow }) => flow);
  }

  tamper(random: () => number): string | undefined {
    return this.takeAddress(random);
  }

  own(): readonly string[] {
    return [...this.links.addresses.map(({ ip, link }) => `${familyOf(ip)} address ${ip} on ${link}`).toSorted(), ...this.sockets.open];
  }

  external(): readonly string[] {
    const devices = [...this.links.devices].filter(([name]) => name !== OWN_DEVICE).map(([name, kind]) => `${kind} ${name}`);
    return [...devices, ...this.addresses.filter((one) => !this.links.addresses.includes(one)).map(({ ip, link }) => `${ip} on ${link}`)];
  }

  protected follow(packet: Packet, { random }: FollowOptions, stays: boolean): Trace {
    return this.#send(packet, random, stays);
  }

  #send(packet: Packet, random: () => number, isKept: boolean): Trace {
    this.#random = random;
    this.#port = (this.#port + 1) % PORTS;
    const from = { ip: packet.source, port: FIRST_PORT + this.#port };
    const at = { ip: packet.destination, port: packet.port };
    const where = `${packet.protocol} ${at.ip} port ${at.port}`;
    if (packet.protocol === "TCP") {
      const client = this.sockets.client(from, at);
      if (client === undefined) return { is: "pass", path: [`nobody listens on ${where}`] };
      if (isKept) client.answer("answers");
      const endpoint = client.dialled[0];
      const wasReset = client.state === "reset";
      client.close();
      const path = [`accepted on ${where}`, ...client.dialled.map((one) => `dialled ${one}`)];
      if (endpoint !== undefined) return { is: "forward", endpoint, masquerade: true, path };
      return { is: wasReset ? "reject" : "drop", path };
    }
    const flow = packet.protocol === "UDP" ? this.sockets.datagram(from, at) : undefined;
    if (flow === undefined) return { is: "pass", path: [`nobody listens on ${where}`] };
    if (flow === "refused") return { is: "reject", path: [`${where} is held by a socket that takes nothing`] };
    if (flow === "silence") return { is: "drop", path: [`taken on ${where}, and nothing done`] };
    const { endpoint } = flow;
    if (isKept) {
      flow.open();
      const { family, source, destination, port } = packet;
      this.#kept = [
        ...this.#kept.filter(({ udp }) => this.sockets.has(udp)),
        { flow: { family, source, destination, port, endpoint }, udp: flow },
      ];
    } else flow.fail();
    return { is: "forward", endpoint, masquerade: true, path: [`taken on ${where}`, `sent on to ${endpoint}`] };
  }

  #isLocal(ip: string): boolean {
    return ip.startsWith("127.") || this.addresses.some((one) => one.ip === ip);
  }
}
