import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createKubeSource, type KubeSourceOptions, type KubeTimings } from "../kube/kube-source.ts";
import { eventually, RecordingLog, RecordingSink, TestClock, testDirectory } from "./world.ts";

/** What these tests ask of the lab's API server emulator, as they may not import it. */
export interface TestServer {
  readonly requests: readonly { readonly url: string }[];
  readonly watchCount: number;
  kubeconfig(): string;
}

const QUICK: Partial<KubeTimings> = {
  backoffBaseMs: 10,
  backoffMaxMs: 50,
  cheapBackoffMaxMs: 50,
  credentialsMs: 10,
  steadyMs: 50,
  watchIdleMs: 5_000,
  watchListIdleMs: 5_000,
  listSpreadMs: 20,
  listIdleMs: 5_000,
  missingApiMs: 20,
  answerTimeoutMs: 5_000,
};

/** A kube source under test: short times, recorded sink and log, a directory, all of which end with the test. */
export class KubeRun {
  readonly sink: RecordingSink = new RecordingSink();
  readonly log: RecordingLog = new RecordingLog();
  readonly stop: AbortController = new AbortController();
  readonly directory: string;
  #running: Promise<void> | undefined;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async create(): Promise<KubeRun> {
    const run = new KubeRun(await testDirectory());
    onTestFinished(() => run.end());
    return run;
  }

  /** Start without waiting for anything. */
  async start(
    server: Pick<TestServer, "kubeconfig">,
    timings: Partial<KubeTimings> = {},
    rest: Partial<KubeSourceOptions> = {},
  ): Promise<void> {
    const kubeconfig = join(this.directory, "kubeconfig");
    await writeFile(kubeconfig, server.kubeconfig());
    const source = createKubeSource({
      nodeName: "node-1",
      clock: new TestClock(),
      // Makes every spread 100 %.
      random: () => 0.5,
      log: this.log,
      env: {},
      kubeconfig,
      ...rest,
      timings: { ...QUICK, ...timings },
    });
    this.#running = source.run(this.sink, this.stop.signal);
  }

  /** Start and wait until all kinds are synced. */
  async follow(
    server: Pick<TestServer, "kubeconfig">,
    timings: Partial<KubeTimings> = {},
    rest: Partial<KubeSourceOptions> = {},
  ): Promise<void> {
    await this.start(server, timings, rest);
    await Promise.race([this.sink.until((seen) => seen.isSynced), this.#running]);
  }

  /** End the run, as the end of the test does. */
  async end(): Promise<void> {
    this.stop.abort();
    const running = this.#running;
    this.#running = undefined;
    await running;
  }
}

/** Queries of the requests for a resource, in order. */
export function asked(server: TestServer, plural: string): readonly URLSearchParams[] {
  return server.requests
    .map(({ url }) => new URL(url, "http://api"))
    .filter(({ pathname }) => pathname.endsWith(`/${plural}`))
    .map(({ searchParams }) => searchParams);
}

/** Wait until all four watches are open. */
export async function watching(server: TestServer): Promise<void> {
  await eventually(() => server.watchCount === 4);
}

/** A Service in namespace shop. */
export function service(name: string, spec: Record<string, unknown> = {}, labels: Record<string, string> = {}): unknown {
  return {
    kind: "Service",
    metadata: { name, namespace: "shop", labels },
    spec: { clusterIP: "10.96.0.10", ports: [{ port: 80 }], ...spec },
  };
}

/** An EndpointSlice in namespace shop. */
export function slice(name: string, labels: Record<string, string> = {}): unknown {
  return {
    kind: "EndpointSlice",
    metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": "cart", ...labels } },
    addressType: "IPv4",
    endpoints: [],
    ports: [],
  };
}

/** A Node. */
export function node(name: string): unknown {
  return { kind: "Node", metadata: { name } };
}

/** A ServiceCIDR. */
export function cidr(name: string, labels: Record<string, string> = {}): unknown {
  return { kind: "ServiceCIDR", metadata: { name, labels }, spec: { cidrs: ["10.96.0.0/16"] } };
}
