import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf } from "@turnout/core";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { HostAddress } from "@turnout/host";
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import { createFakeIp, createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import type { FakeLinks } from "@turnout/host/testing";
import { OWN_DEVICE } from "../objects.ts";
import type { UserspaceWorld } from "../world.ts";
import { FakeSockets, type Flow as UdpFlow } from "./fake-sockets.ts";

const START_MS = 1_000_000;
const FIRST_PORT = 20_000;
const PORTS = 40_000;
const EXTERNAL_DEVICE = "docker0";

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

class FakeUserspaceHost implements UserspaceFakeHost {
  readonly world: UserspaceWorld;
  readonly sockets: FakeSockets;
  readonly #log = createFakeLog();
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink = createFakeNetlink();
  readonly #links: FakeLinks = { devices: new Map([[EXTERNAL_DEVICE, "bridge"]]), addresses: [], onChange: () => this.#reportAddresses() };
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;
  #kept: { readonly flow: Flow; readonly udp: UdpFlow }[] = [];
  #random: () => number = () => 0;
  #port = 0;

  constructor() {
    this.sockets = new FakeSockets(
      (ip) => this.#isLocal(ip),
      (ip) => {
        const fault = this.#faults.next([ip]);
        // One socket is opened or it isn't.
        return fault === "during" ? "before" : fault;
      },
    );
    this.world = {
      exec: createFakeIp(this.#links, this.#faults),
      netlink: this.#netlink,
      clock: this.#clock,
      log: this.#log,
      sockets: this.sockets,
      random: () => this.#random(),
      canOwnAddresses: () => Promise.resolve(true),
    };
    this.#reportAddresses();
  }

  get lines(): readonly string[] {
    return this.#log.lines;
  }

  get flows(): readonly Flow[] {
    return this.#kept.filter(({ udp }) => this.sockets.has(udp) && !udp.isParted).map(({ flow }) => flow);
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
    this.#reportAddresses();
  }

  trace(packet: Packet, random: () => number): Trace {
    return this.#send(packet, random, false);
  }

  connect(packet: Packet, random: () => number): Trace {
    return this.#send(packet, random, true);
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    const { addresses } = this.#links;
    const [gone] = addresses.splice(Math.floor(random() * addresses.length), 1);
    if (gone === undefined) return undefined;
    this.#reportAddresses();
    return `took ${gone.ip} off ${gone.link}`;
  }

  own(): readonly string[] {
    return [...this.#links.addresses.map(({ ip, link }) => `${familyOf(ip)} address ${ip} on ${link}`).toSorted(), ...this.sockets.open];
  }

  external(): readonly string[] {
    const devices = [...this.#links.devices].filter(([name]) => name !== OWN_DEVICE).map(([name, kind]) => `${kind} ${name}`);
    return [...devices, ...this.#addresses.map(({ ip, link }) => `${ip} on ${link}`)];
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
    return ip.startsWith("127.") || [...this.#addresses, ...this.#links.addresses].some((one) => one.ip === ip);
  }

  #reportAddresses(): void {
    const all = [...this.#addresses, ...this.#links.addresses];
    for (const family of FAMILIES)
      this.#netlink.setAddresses(
        family,
        all.filter(({ ip }) => familyOf(ip) === family),
      );
  }
}
