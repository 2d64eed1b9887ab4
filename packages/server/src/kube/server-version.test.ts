import { createApiServer, type ApiServerOptions } from "@turnout/lab";
import { ProxyError } from "@turnout/core";
import { expect, it } from "vitest";
import { KubeRun, service } from "../test-support/kube.ts";
import { TestClock, untilTestEnds } from "../test-support/world.ts";
import type { KubeClient } from "./kube-client.ts";
import { askServerVersion } from "./server-version.ts";

type Answer = Awaited<ReturnType<KubeClient["ask"]>>;

/** A client that gives these answers, one after another; the last one again and again. */
function clientOf(...answers: readonly (Answer | ProxyError)[]): { readonly client: KubeClient; readonly asked: () => number } {
  let asked = 0;
  const ask = (): Promise<Answer> => {
    const answer = answers[Math.min(asked++, answers.length - 1)];
    return answer === undefined || ProxyError.is(answer) ? Promise.reject(answer ?? new Error("no answer")) : Promise.resolve(answer);
  };
  return { client: { ask } as unknown as KubeClient, asked: () => asked };
}

async function* chunks(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text.slice(0, 3));
  yield await Promise.resolve(Buffer.from(text.slice(3)));
}

const open = (text: string): Answer => ({ kind: "open", chunks: chunks(text) });
const refused = (status: number): Answer => ({
  kind: "refused",
  status,
  reason: "",
  message: "",
  retryAfterMs: 0,
  isFutureRevision: false,
});
const unreached: Answer = { kind: "unreached", error: new ProxyError("feed_lost", "no connection") };
const lost = new ProxyError("feed_lost", "the connection broke");

it.each<readonly [name: string, answers: readonly (Answer | ProxyError)[], version: string | undefined, asked: number]>([
  ["a version", [open('{"gitVersion": "v1.37.2"}')], "v1.37.2", 1],
  [
    "a server that can't be reached for a while",
    [unreached, unreached, unreached, unreached, open('{"gitVersion": "v1.40.0"}')],
    "v1.40.0",
    5,
  ],
  ["credentials that are accepted later", [refused(401), refused(401), refused(401), open('{"gitVersion": "v1.40.0"}')], "v1.40.0", 4],
  ["a connection that breaks", [lost, open('{"gitVersion": "v1.40.0"}')], "v1.40.0", 2],
  ["a load balancer whose server is away", [lost, lost, lost, lost, open('{"gitVersion": "v1.40.0"}')], "v1.40.0", 5],
  ["a server that is starting", [refused(503), refused(500), refused(429), refused(503), open('{"gitVersion": "v1.40.0"}')], "v1.40.0", 5],
  ["a server that does not say", [refused(403)], undefined, 3],
  ["a login page", [open("<html>")], undefined, 3],
  ["JSON without a version", [open('{"gitVersion": 7}')], undefined, 3],
])("%s", async (_name, answers, version, asked) => {
  const { client, asked: count } = clientOf(...answers);
  const random = (): number => 0;
  const clock = {
    nowMs: () => 0,
    sleep: (ms: number, signal: AbortSignal) => new TestClock().sleep(Math.min(ms, ms === 10_000 ? ms : 1), signal),
  };
  expect(await askServerVersion({ client, clock, random, isWorking: () => false }, new AbortController().signal)).toBe(version);
  expect(count()).toBe(asked);
});

it.each([
  ["breaks the connection", lost],
  ["answers 503", refused(503)],
] as const)("Services do not wait for ever where the server works, and %s for its version only", async (_name, answer) => {
  const { client, asked } = clientOf(answer);
  const clock = { nowMs: () => 0, sleep: (_ms: number, signal: AbortSignal) => new TestClock().sleep(1, signal) };
  const question = { client, clock, random: () => 0, isWorking: () => asked() > 5 };
  expect([await askServerVersion(question, new AbortController().signal), asked()]).toEqual([undefined, 8]);
});

it.each<readonly [options: ApiServerOptions, version: string]>([
  [{}, "v1.34.0-turnout-lab"],
  [{ version: "v1.40.1" }, "v1.40.1"],
])("the version is heard before the first Service: %j", async (options, version) => {
  const api = untilTestEnds(await createApiServer(options));
  api.apply(service("cart"));
  const run = await KubeRun.create();
  const { sink } = run;
  const heard: string[] = [];
  const onVersion = (said: string | undefined): void =>
    void heard.push(`${said} with ${[...sink.objects.keys()].filter((key) => key.startsWith("Service ")).length} Services`);
  await run.follow(api, {}, { onVersion });
  expect(heard).toEqual([`${version} with 0 Services`]);
  expect([...sink.objects.keys()]).toContain("Service shop/cart");
});
