import { RecordingLog, TestClock } from "@turnout/core/testing";
import { Fronts, hostViewOf, SharedSockets, Traffic } from "@turnout/client/sockets";
import type { ListenerObject, ListenerValue } from "@turnout/client/sockets";
import { hostPort } from "@turnout/core";
import { userspaceModule } from "../module.ts";
import { FakeSockets } from "../testing/index.ts";

/** Fronts on sockets in memory, with all that is to be looked at. */
export interface FrontStage {
  readonly fronts: Fronts;
  readonly traffic: Traffic;
  readonly sockets: FakeSockets;
  readonly clock: TestClock;
  readonly log: RecordingLog;
  /** Ids of objects that were lost. */
  readonly lost: string[];
}

/** Make fronts on a host that has 10.96.0.10 and loopback. The first of several endpoints is chosen. */
export function createFrontStage(raw: Parameters<typeof userspaceModule.parseOptions>[0] = {}): FrontStage {
  const clock = new TestClock(0);
  const log = new RecordingLog();
  const sockets = new FakeSockets((ip) => ["10.96.0.10", "0.0.0.0"].includes(ip) || ip.startsWith("127."));
  const options = userspaceModule.parseOptions(raw);
  const traffic = new Traffic("IPv4", { sockets, clock, log, random: () => 0 }, options, new SharedSockets(options));
  traffic.host = hostViewOf({ addresses: ["172.18.0.1"], pods: [] });
  const lost: string[] = [];
  return { fronts: new Fronts(traffic, (id) => lost.push(id)), traffic, sockets, clock, log, lost };
}

/** A listener that leads anyone to these endpoints. */
export function listenerOf(
  cluster: readonly string[],
  more: Partial<ListenerValue> = {},
  kind: ListenerObject["kind"] = "listener",
): ListenerObject {
  const at = { ip: "10.96.0.10", port: 80 };
  const value: ListenerValue = {
    row: "shop/cart:http/TCP",
    transport: "TCP",
    ...at,
    asked: { address: at.ip, port: at.port },
    rules: [{ from: "anyone", to: cluster.length === 0 ? "reject" : "cluster" }],
    cluster,
    local: [],
    ...more,
  };
  return { kind, key: `${value.transport} ${hostPort(value.ip, value.port)}`, value };
}

/** Where the listeners are. */
export const AT: ListenerValue["asked"] & { readonly ip: string } = { ip: "10.96.0.10", address: "10.96.0.10", port: 80 };

/** A client's port. */
export function from(number: number, ip: string = "203.0.113.1"): { readonly ip: string; readonly port: number } {
  return { ip, port: 40_000 + number };
}

/** As {@link createFrontStage}, with a listener that leads anyone to these endpoints. */
export async function stageOf(
  cluster: readonly string[],
  raw: Parameters<typeof createFrontStage>[0] = {},
  more: Partial<ListenerValue> = {},
): Promise<FrontStage> {
  const stage = createFrontStage(raw);
  await stage.fronts.put(listenerOf(cluster, more));
  return stage;
}
