import { fileURLToPath } from "node:url";
import { createProcess, type NodePlace, type NodeProcess } from "@turnout/lab";

/** The real `turnout run` of one node, in the node's namespace. */
export interface DemoProxy extends Pick<NodeProcess, "isRunning" | "log" | "again" | "end"> {
  readonly node: NodePlace;
}

/** This very command, as it was started: from sources in a checkout's tests, else from the build. */
export function turnoutArguments(): readonly string[] {
  const isSource = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(`../main.${isSource ? "ts" : "js"}`, import.meta.url));
  return isSource ? ["--conditions=@turnout/source", "--disable-warning=ExperimentalWarning", main] : [main];
}

/** Start `turnout run` on a node with these flags. */
export function startProxy(node: NodePlace, flags: readonly string[]): DemoProxy {
  const proxy = createProcess(node);
  proxy.start(process.execPath, [...turnoutArguments(), "run", "--node-name", node.name, ...flags]);
  return Object.assign(proxy, { node });
}
