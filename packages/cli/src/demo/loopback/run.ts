import { ProxyError } from "@turnout/core";
import type { CommonFindings } from "../findings.ts";
import { buildLoopbackStage, type LoopbackOptions, type LoopbackStage } from "./stage.ts";
import { DNS, NEW, OLD, type TownEndpoint } from "./town.ts";

const HELD = 8;
const ASK_EVERY_MS = 50;
/** Between two steps of a rollout. */
const STEP_MS = 300;
const FLOW_TIMEOUT_MS = 500;

/** What was seen. Times in ms. */
export interface LoopbackFindings extends CommonFindings {
  readonly stageMs: number;
  readonly readyMs: number;
  /** Until requests followed a step of the rollout, the slowest. */
  readonly followedMs: number;
}

/**
 * Play the small story on loopback: servers, a proxy, traffic, a rollout; everything is removed when it ends.
 * @throws {ProxyError} what can't be started or never came to be, `canceled`.
 */
export async function runLoopbackDemo(options: LoopbackOptions & { readonly progress: (text: string) => void }): Promise<LoopbackFindings> {
  const { nowMs, progress } = options;
  const startMs = nowMs();
  progress(`Starting ${OLD.length + NEW.length + DNS.length} servers and a client on 127.0.0.1, and turnout run`);
  const stage = await buildLoopbackStage(options);
  try {
    const stageMs = nowMs() - startMs;
    const { client, addressOf } = stage;
    const isAnswered = async (name: "cart" | "dns"): Promise<boolean> => {
      const { outcome } = await client.attempt({ ...addressOf(name), timeoutMs: 100 });
      return outcome === "ok";
    };
    const readyMs = await stage.until("no service was answered", async () => (await isAnswered("cart")) && (await isAnswered("dns")));
    return { stageMs, readyMs, ...(await runActs(stage, progress)) };
  } catch (cause) {
    // Ctrl-C ends servers and proxy too, so anything may have come first.
    if (!options.signal.aborted) throw cause;
    throw new ProxyError("canceled", "the demo was stopped, everything it made is removed", { cause });
  } finally {
    await stage.destroy();
  }
}

async function runActs(stage: LoopbackStage, progress: (text: string) => void): Promise<Omit<LoopbackFindings, "stageMs" | "readyMs">> {
  const { client, addressOf } = stage;
  progress("Sending traffic, all the time from here on");
  const startMs = stage.nowMs();
  const cart = await client.startLoad({ ...addressOf("cart"), concurrency: 2, pauseMs: 5 });
  const dns = await client.startLoad({ ...addressOf("dns"), concurrency: 1, pauseMs: 10 });
  const handles: number[] = [];
  for (let count = 0; count < HELD; count++) handles.push(await client.hold({ ...addressOf("cart"), everyMs: ASK_EVERY_MS }));
  progress("Looking at who answers");
  const spread = await client.burst({ ...addressOf("cart"), count: 300 });
  const affinity = await client.burst({ ...addressOf("checkout"), count: 60 });
  const { outcome } = await client.attempt(addressOf("search"));
  progress("Taking the server away from a UDP client");
  const flow = await moveFlow(stage);
  progress("Rolling out new servers");
  const { rollout, followedMs } = await rollOut(stage);
  progress("Counting");
  await stage.pause(STEP_MS);
  const held = await Promise.all(handles.map((handle) => client.release(handle)));
  const traffic = [
    { what: "client → cart", tally: await client.stopLoad(cart) },
    { what: "client → dns", tally: await client.stopLoad(dns) },
  ];
  const asked = { from: "client", family: "IPv4" } as const;
  return {
    spread: [{ ...asked, service: "cart", expected: OLD.map(({ name }) => name), tally: spread }],
    affinity: [{ ...asked, tally: affinity }],
    // The kernel has accepted a client before the proxy can refuse it.
    refused: [{ family: "IPv4", outcome: outcome === "reset" ? "refused" : outcome }],
    flows: [flow],
    rollout,
    followedMs,
    traffic,
    trafficMs: stage.nowMs() - startMs,
    held,
  };
}

/** Let a UDP client that never changes its port lose its server. */
async function moveFlow({ client, addressOf, setEndpoints, until }: LoopbackStage): Promise<CommonFindings["flows"][number]> {
  const first = await client.attempt({ ...addressOf("dns"), timeoutMs: FLOW_TIMEOUT_MS });
  const { server: before = "nobody", localPort: fromPort } = first;
  const target = { ...addressOf("dns"), timeoutMs: FLOW_TIMEOUT_MS, ...(fromPort === undefined ? {} : { fromPort }) };
  await setEndpoints(
    ["dns"],
    DNS.filter(({ name }) => name !== before).map((replica) => ({ replica })),
  );
  let after = before;
  const tookMs = await until("the UDP client was never sent elsewhere", async () => {
    after = (await client.attempt(target)).server ?? before;
    return after !== before;
  });
  await setEndpoints(
    ["dns"],
    DNS.map((replica) => ({ replica })),
  );
  return { family: "IPv4", port: fromPort ?? 0, before: [before], after, tookMs };
}

/** Replace the servers one by one as a Deployment does: the new one ready, the old one terminating, then gone. */
async function rollOut(stage: LoopbackStage): Promise<Pick<LoopbackFindings, "rollout" | "followedMs">> {
  const { client, addressOf, setEndpoints } = stage;
  const startMs = stage.nowMs();
  const followedMs: number[] = [];
  let serving: readonly TownEndpoint[] = OLD.map((replica) => ({ replica }));
  for (const [index, leaving] of OLD.entries()) {
    const coming = NEW[index];
    serving = [...serving.filter(({ replica }) => replica !== leaving), ...(coming === undefined ? [] : [{ replica: coming }])];
    const names = serving.map(({ replica }) => replica.name).toSorted();
    await setEndpoints(["cart", "checkout"], [...serving, { replica: leaving, isLeaving: true }]);
    // A pod that is told to end waits until nobody is sent to it any more.
    const isFollowed = async (): Promise<boolean> => {
      const { servers } = await client.burst({ ...addressOf("cart"), count: 40 });
      return Object.keys(servers).toSorted().join() === names.join();
    };
    followedMs.push(await stage.until(`${leaving.name} was asked for ever`, isFollowed));
    await stage.drain(leaving);
    await setEndpoints(["cart", "checkout"], serving);
    await stage.pause(STEP_MS);
  }
  const { servers } = await client.burst({ ...addressOf("cart"), count: 100 });
  const expected = NEW.map(({ name }) => name).toSorted();
  const answering = Object.keys(servers).toSorted();
  const rollout = { service: "cart", replaced: OLD.length, durationMs: stage.nowMs() - startMs, expected, answering };
  return { rollout, followedMs: Math.max(...followedMs) };
}
