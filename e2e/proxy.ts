import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Ending, NodePlace, NodeProcess } from "@turnout/lab";
import type { Layout } from "./layout.ts";
import { createProcess } from "@turnout/lab";

/** The command, as it is installed. */
export const TURNOUT: string = fileURLToPath(new URL("../packages/cli/bin/turnout", import.meta.url));

/** The proxy of one node, in the node's namespace, in whatever processes. */
export interface Proxy {
  readonly node: NodePlace;
  readonly layout: Layout;
  /** What touches the kernel: `turnout run`, or the backend's own program. */
  readonly backend: NodeProcess;
  /** `turnout serve`, where it is a process of its own. */
  readonly stateServer: NodeProcess | undefined;
  /** Where the node-state server listens. */
  readonly stateSocket: string;
  /** Where the backend asks: the same, unless somebody stands between. */
  readonly socket: string;
  /** What touches the kernel runs. */
  readonly isRunning: boolean;
  /** All of it runs, so that it follows what changes. */
  readonly isFollowing: boolean;
  /** Everything it wrote so far, over all its lives, newest last; the backend's behind the node-state server's. */
  log(): string;
  /** Start it again after it ended; `flags` replace the ones before. */
  start(flags?: readonly string[]): void;
  /** Start the node-state server again after it ended. */
  startStateServer(): void;
  /** Send all of it a signal and wait for the end; how the backend ended, when all else ended alike. */
  end(signal: NodeJS.Signals): Promise<Ending>;
  /** Wait for the backend to end by itself. */
  ended(): Promise<Ending>;
  /** End whatever still runs. */
  remove(): Promise<void>;
}

/** What a node's proxy is started with. */
export interface ProxyOptions {
  readonly layout: Layout;
  readonly kubeconfig: string;
  /** Takes the socket. */
  readonly folder: string;
  /** Node-state server and backend meet on two sockets, for somebody to stand between. */
  readonly isApart: boolean;
  /** Stay until {@link Proxy.start} is given others. */
  readonly flags: readonly string[];
}

const PORTS: readonly string[] = ["--healthz-bind-address", "0.0.0.0:10256", "--metrics-bind-address", "0.0.0.0:10249"];
/** Of the node-state server, where it is a process of its own. */
const NODE_STATE_PORTS: readonly string[] = ["--healthz-bind-address", "0.0.0.0:12092", "--metrics-bind-address", "0.0.0.0:12091"];
const BACKEND_FLAG = "--backend";

/** Start a node's proxy. */
export function startProxy(node: NodePlace, options: ProxyOptions): Proxy {
  const { layout, kubeconfig, folder, isApart } = options;
  let flags = options.flags;
  const backend = createProcess(node);
  const stateServer = layout === "two processes" ? createProcess(node) : undefined;
  const socket = join(folder, `${node.name}.sock`);
  const stateSocket = isApart ? join(folder, `${node.name}-state.sock`) : socket;
  const serve = ["serve", "--node-name", node.name, "--kubeconfig", kubeconfig, "--listen", `unix://${stateSocket}`];
  // Some scenarios bring a crowd of bad clients.
  serve.push("--streams-per-client", "200", ...NODE_STATE_PORTS);
  const startStateServer = (): void => stateServer?.start(TURNOUT, serve);
  const start = (newFlags: readonly string[] = flags): void => {
    flags = newFlags;
    const { name, rest } = chosenBackend(flags);
    const common = ["--node-name", node.name, ...PORTS, ...rest];
    if (stateServer === undefined) {
      backend.start(TURNOUT, ["run", "--backend", name, "--source", "kube", "--kubeconfig", kubeconfig, ...common]);
      return;
    }
    if (!stateServer.isRunning) startStateServer();
    backend.start(process.execPath, [programOf(name), "--api", `unix://${socket}`, ...common]);
  };
  start();
  const all = stateServer === undefined ? [backend] : [backend, stateServer];
  return {
    node,
    layout,
    backend,
    stateServer,
    stateSocket,
    socket,
    get isRunning() {
      return backend.isRunning;
    },
    get isFollowing() {
      return all.every((one) => one.isRunning);
    },
    log: () => (stateServer === undefined ? backend.log() : `turnout serve:\n${stateServer.log()}the backend:\n${backend.log()}`),
    start,
    startStateServer,
    end: async (signal) => {
      const endings = await Promise.all(all.map((one) => one.end(signal)));
      const [ending = { code: null, signal: null }, other = ending] = endings;
      if (JSON.stringify(other) !== JSON.stringify(ending))
        throw new Error(`the node-state server ended otherwise: ${JSON.stringify(other)}`);
      return ending;
    },
    ended: () => backend.ended(),
    remove: async () => {
      await Promise.all(all.filter(({ isRunning }) => isRunning).map((one) => one.end("SIGKILL")));
    },
  };
}

/** Which backend the flags choose, and what is left of them. */
function chosenBackend(flags: readonly string[]): { readonly name: string; readonly rest: readonly string[] } {
  const at = flags.indexOf(BACKEND_FLAG);
  if (at === -1) return { name: "nft", rest: flags };
  return { name: flags[at + 1] ?? "", rest: flags.toSpliced(at, 2) };
}

/** A backend's own program, as it is built. */
function programOf(backend: string): string {
  return fileURLToPath(new URL(`../packages/backend-${backend}/dist/main.js`, import.meta.url));
}
