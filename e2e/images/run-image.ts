import { execFile, execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { CLUSTER_IP, NODE_NAME } from "./node-stage.ts";
import type { NodeStage } from "./node-stage.ts";
import { maskOf, privilegesIn, runtimeConfig } from "./pod.ts";
import type { Container, ImageConfig, Pod } from "./pod.ts";

/** An unpacked image. */
export interface Unpacked {
  readonly root: string;
  readonly config: ImageConfig;
}

/** What was seen of a container while it ran. */
export interface Seen {
  readonly name: string;
  /** The capabilities that its process may ever have, as its manifest names them. */
  readonly capabilities: readonly string[];
  /** Whether these are all, and no others. */
  readonly hasThese: boolean;
  readonly uid: string;
  readonly noNewPrivileges: boolean;
  readonly isReadOnly: boolean;
}

interface Running {
  readonly name: string;
  readonly capabilities: readonly string[];
  readonly id: string;
  readonly process: ChildProcess;
  readonly ended: Promise<number>;
  log(): string;
}

const WAIT_MS = 120_000;

/** Plays the pods of a variant on a node by the OCI runtime runc. */
export class Runner {
  readonly #folder: string;
  readonly #stage: NodeStage;
  readonly #images: (image: string) => Unpacked;
  readonly #running: Running[] = [];

  constructor(folder: string, stage: NodeStage, images: (image: string) => Unpacked) {
    this.#folder = folder;
    this.#stage = stage;
    this.#images = images;
  }

  /** Run init containers to their end, and start the others. @throws {Error} with the log, when an init container fails. */
  async start(pod: Pod): Promise<void> {
    for (const container of pod.initContainers ?? []) {
      const running = this.#run(pod, container);
      const code = await running.ended;
      this.#running.pop();
      if (code !== 0) throw new Error(`${container.name} ended with ${code}: ${running.log()}`);
    }
    for (const container of pod.containers) this.#run(pod, container);
  }

  #run(pod: Pod, container: Container): Running {
    const { root, config } = this.#images(container.image);
    const id = `${this.#stage.namespace}-${container.name}`;
    const bundle = join(this.#folder, id);
    mkdirSync(bundle, { recursive: true });
    const mounts = withToken(pod, container);
    const isKube = container.args[0] !== "cleanup" && !container.args.some((arg) => arg.startsWith("--source="));
    const stage = {
      root,
      network: this.#stage.network,
      nodeName: NODE_NAME,
      volumes: this.#stage.volumes,
      privileges: privilegesIn(readFileSync("/proc/self/status", "utf8")),
      moreArgs: isKube ? [`--source=${this.#stage.source}`] : [],
    };
    for (const { mountPath } of mounts) makeMountPoint(root, mountPath);
    writeFileSync(join(bundle, "config.json"), JSON.stringify(runtimeConfig(pod, { ...container, volumeMounts: mounts }, config, stage)));
    const process = spawn("runc", ["run", "--bundle", bundle, id], { stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [process.stdout, process.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    const { promise: ended, resolve } = Promise.withResolvers<number>();
    process.once("exit", (code) => resolve(code ?? -1));
    const running = {
      name: container.name,
      capabilities: container.securityContext.capabilities?.add ?? [],
      id,
      process,
      ended,
      log: () => text,
    };
    this.#running.push(running);
    return running;
  }

  /** Wait until `/healthz` and `/readyz` of the proxy, which load balancers and the kubelet ask, say 200. @throws {Error} with the logs, when a container ends or time is up. */
  async untilHealthy(): Promise<void> {
    const end = Date.now() + WAIT_MS;
    while (Date.now() < end) {
      const over = this.#running.find(({ process }) => process.exitCode !== null);
      if (over !== undefined) throw new Error(`${over.name} ended with ${over.process.exitCode}: ${over.log()}`);
      const answers = await Promise.all(["healthz", "readyz"].map((path) => this.#fetch(`http://127.0.0.1:10256/${path}`)));
      if (answers.every((status) => status === "200")) return;
      await sleep(200);
    }
    throw new Error(`not healthy after ${WAIT_MS / 1000} s: ${this.logs}`);
  }

  /** Give the status that a client on the node gets, or the reason why it gets none. */
  async #fetch(url: string): Promise<string> {
    const code = `fetch(${JSON.stringify(url)}, { signal: AbortSignal.timeout(3000) }).then((a) => console.log(a.status), (e) => console.log(e.cause?.code ?? e.name))`;
    const joinCgroup = `echo $$ >${this.#stage.volumes["cgroup"]}/cgroup.procs && exec "$@"`;
    const client = ["sh", "-c", joinCgroup, "client", process.execPath, "-e", code];
    const { stdout } = await promisify(execFile)("nsenter", [`--net=${this.#stage.network}`, ...client]);
    return stdout.trim();
  }

  /** Ask the Service by its cluster IP, with an endpoint behind it, until it gives the status that is wanted, or for half a minute. Gives the last answer. */
  async askService(isWanted: (answer: string) => boolean): Promise<string> {
    const server = `require("node:http").createServer((_, a) => a.end()).listen(8080, "0.0.0.0", () => console.log("listens"))`;
    const endpoint = spawn("nsenter", [`--net=${this.#stage.network}`, process.execPath, "-e", server], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      await new Promise((resolve) => endpoint.stdout.once("data", resolve));
      const end = Date.now() + 30_000;
      for (;;) {
        const answer = await this.#fetch(`http://${CLUSTER_IP}/`);
        if (isWanted(answer) || Date.now() > end) return answer;
      }
    } finally {
      endpoint.kill();
    }
  }

  /** What `turnout status` says in the container of the proxy. @throws {Error} when it fails. */
  status(): string {
    const proxy = this.#running.find(({ name }) => name === "turnout");
    return execFileSync("runc", ["exec", proxy?.id ?? "", "turnout", "status"], { encoding: "utf8" });
  }

  /** What the containers have logged. */
  get logs(): string {
    return this.#running.map((one) => one.log()).join("\n");
  }

  /** Look at the processes from outside. */
  look(): readonly Seen[] {
    return this.#running.map(({ name, id, capabilities }) => {
      const { pid } = JSON.parse(execFileSync("runc", ["state", id], { encoding: "utf8" })) as { readonly pid: number };
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const field = (key: string): string => new RegExp(`^${key}:\\s*(\\S+)`, "m").exec(status)?.[1] ?? "";
      return {
        name,
        capabilities,
        hasThese: field("CapBnd") === maskOf(capabilities),
        uid: field("Uid"),
        noNewPrivileges: field("NoNewPrivs") === "1",
        isReadOnly: isReadOnly(pid),
      };
    });
  }

  /** Stop all as a kubelet does. Gives the codes with which they end, by name. */
  async stop(): Promise<Readonly<Record<string, number>>> {
    const codes: Record<string, number> = {};
    for (const { name, id, process: started, ended } of this.#running.splice(0)) {
      if (started.exitCode === null) execFileSync("runc", ["kill", id, "TERM"]);
      codes[name] = await ended;
    }
    return codes;
  }

  /** End whatever still runs, however. */
  async end(): Promise<void> {
    for (const { id, process: started, ended } of this.#running.splice(0)) {
      if (started.exitCode === null) execFileSync("runc", ["delete", "--force", id]);
      await ended;
    }
  }
}

/** What a container mounts, with the token that a kubelet gives it where it is not told otherwise. */
function withToken({ automountServiceAccountToken }: Pod, { volumeMounts }: Container): Container["volumeMounts"] {
  if (automountServiceAccountToken === false) return volumeMounts;
  return [...volumeMounts, { name: "token", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true }];
}

/** containerd makes these in a layer of the container's own. */
function makeMountPoint(root: string, path: string): void {
  if (path.endsWith(".lock")) writeFileSync(join(root, path), "", { flag: "a" });
  else mkdirSync(join(root, path), { recursive: true });
}

function isReadOnly(pid: number): boolean {
  const root = readFileSync(`/proc/${pid}/mountinfo`, "utf8")
    .split("\n")
    .find((line) => line.split(" ")[4] === "/");
  return root?.split(" ")[5]?.split(",").includes("ro") ?? false;
}
