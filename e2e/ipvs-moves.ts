import assert from "node:assert/strict";
import type { IPFamily } from "@turnout/core";
import { STAGE_NODE } from "@turnout/conformance";
import type { HoldStatus, Tally } from "@turnout/lab";
import type { RealStage } from "./conformance-stage.ts";
import { answersAfter, isSoonSo } from "./ipvs-held.ts";
import type { TestService, Way } from "./services.ts";

const ENDPOINTS: readonly string[] = ["pod-1-1", "pod-2-1"];
/** Who connects, and how: from a pod, from the node, from outside; in both families. */
const SOURCES: readonly (readonly [from: string, way: Way, family: IPFamily])[] = [
  ["pod-1-3", "loadBalancerIP", "IPv4"],
  [STAGE_NODE, "clusterIP", "IPv6"],
  ["client1", `nodePort@${STAGE_NODE}`, "IPv4"],
  ["client1", "externalIP", "IPv6"],
];
/** The guest's kernel has no nf_tables, so iptables is what one can go to. */
const IPTABLES: readonly string[] = ["--backend", "iptables", "--backend-option", "variant=legacy"];
/** A chain that only one of the two has. */
const OWN_CHAIN = { ipvs: ":KUBE-LOAD-BALANCER ", iptables: ":KUBE-EXTERNAL-SERVICES " } as const;
/** Of each source, before and after each turn. */
const ATTEMPTS = 3;
/**
 * A new connection that a move has swallowed is never answered. Others are, but not always within seconds: the guest has one CPU, which starting proxies
 * and a busy host take from it.
 */
const SWALLOWED_MS = 60_000;

/** A connection that stays open, and perhaps new ones made over and over. */
interface Client {
  holdStatus(): Promise<HoldStatus>;
  attempts(): Promise<number>;
  /** What became of its new connections, and of the one that it kept. */
  stop(): Promise<readonly [failed: Tally["failed"], held: HoldStatus["state"]]>;
}

/**
 * Put the iptables backend in the place of ipvs while connections are open and new ones are made, and ipvs back in its place: none breaks, none
 * fails, and the former backend's chains go.
 */
export async function checkMoves(stage: RealStage): Promise<void> {
  const { site, replaceProxy } = stage;
  // Clients outside use the endpoints of this node, in ipvs by a virtual server of their own; pods and the node use all.
  const service = await site.services.create({ endpoints: ENDPOINTS, protocols: ["TCP"], fields: { externalTrafficPolicy: "Local" } });
  const clients: Client[] = [];
  const addClients = async (isBusy: boolean): Promise<void> => {
    for (const source of SOURCES) clients.push(await startClient(stage, service, source, isBusy));
  };
  const more = async (): Promise<void> => void (await Promise.all(clients.map(moreAttempts)));
  const stop = (): Promise<unknown> => Promise.all(clients.splice(0).map((client) => client.stop()));
  try {
    await addClients(true);
    for (const [flags, comes, goes] of [
      [IPTABLES, "iptables", "ipvs"],
      [undefined, "ipvs", "iptables"],
    ] as const) {
      await more();
      await replaceProxy(flags);
      await site.waitForSync();
      await isSoonSo(async () => !(await hasChain(stage, goes)));
      const { log } = site.proxy(STAGE_NODE);
      assert.ok(await hasChain(stage, comes), `the chains of ${comes} are not there:\n${log()}`);
      assert.ok(!(await hasChain(stage, goes)), `the chains of ${goes} stay:\n${log()}`);
      await more();
      // Of this backend, too, which the next one finds.
      await addClients(false);
    }
    for (const { holdStatus } of clients) {
      const { answers } = await holdStatus();
      // That it is open is not enough.
      assert.ok((await answersAfter(holdStatus, answers)).answers > answers);
    }
    assert.deepEqual(
      await stop(),
      SOURCES.flatMap(() => [0, 1, 2].map(() => [{}, "open"])),
      `what became of new and of kept connections; the last proxy wrote:\n${site.proxy(STAGE_NODE).log()}`,
    );
  } finally {
    await stop();
    await service.remove();
  }
}

async function startClient(
  { site }: RealStage,
  service: TestService,
  [from, way, family]: (typeof SOURCES)[number],
  isBusy: boolean,
): Promise<Client> {
  const agent = site.place(from).agent();
  const target = service.target(way, family);
  const held = await agent.hold({ ...target, everyMs: 500 });
  const load = isBusy
    ? await agent.startLoad({ ...target, transport: "TCP", concurrency: 1, pauseMs: 300, timeoutMs: SWALLOWED_MS })
    : undefined;
  return {
    holdStatus: () => agent.holdStatus(held),
    attempts: async () => (load === undefined ? Infinity : (await agent.peekLoad(load)).attempts),
    stop: async () => [load === undefined ? {} : (await agent.stopLoad(load)).failed, (await agent.release(held)).state],
  };
}

async function moreAttempts({ attempts }: Client): Promise<void> {
  const before = await attempts();
  await isSoonSo(async () => (await attempts()) >= before + ATTEMPTS);
}

/** Whether a table of the node has a backend's own chain, in either family. */
async function hasChain({ site }: RealStage, backend: keyof typeof OWN_CHAIN): Promise<boolean> {
  const node = site.cluster.node(STAGE_NODE);
  const saved = await Promise.all(["iptables-legacy-save", "ip6tables-legacy-save"].map((tool) => node.run(tool, [])));
  return saved.some(({ stdout }) => stdout.includes(OWN_CHAIN[backend]));
}
