import { parseArgs } from "node:util";
import { oneOf, wholeNumber } from "@turnout/house/command-line";
import { WHOLE } from "./suite.ts";

/** What `npm run e2e:cluster` is to do. */
export interface ClusterCommand {
  readonly action: "run" | "up" | "down" | "move";
  /** The proxy on every node: a backend of Turnout, or kube-proxy in one of its modes. */
  readonly proxy: string;
  readonly kubernetes: string;
  readonly family: "IPv4" | "IPv6";
  readonly focus: string;
  readonly procs: number;
  readonly nodes: number;
  /** Only what failed in the kept run, one test at a time. */
  readonly isAgain: boolean;
  /** Leave the cluster there, until Ctrl-C or `down`. */
  readonly isKept: boolean;
  readonly directory: string | undefined;
}

/** The backends that nodes in namespaces can have; ipvs is not in the development machine's kernel. */
export const BACKENDS: readonly string[] = ["nft", "iptables", "ipvs", "ebpf"];
/** The control, by kube-proxy's modes. */
export const CONTROLS: readonly string[] = ["kube-proxy-nftables", "kube-proxy-iptables"];

/** For `--help`. */
export const USAGE: string = `npm run e2e:cluster -- [up|down|move] [options]
  Kubernetes' own sig-network tests with Turnout, or with kube-proxy as the control, on a real cluster on this machine. Needs root.
  (no word)            make a cluster, or use the one that is kept, deploy the proxy, play the suite, write docs/conformance.md, remove the cluster
  up                   make the cluster and deploy the proxy, and keep it until Ctrl-C or "down"
  move                 from kube-proxy to Turnout and back by the runbooks of docs/install.md, command for command, with traffic on
  down                 remove the cluster of whichever process, and what a killed one left
  --backend NAME       ${BACKENDS.join(", ")}; or ${CONTROLS.join(", ")}; kube-proxy is the first of these (default nft)
  --family IPv4|IPv6   the primary one of the dual-stack cluster (default IPv4)
  --focus REGEXP       only tests whose names match; then no table is written (default ${WHOLE})
  --again              only what failed in the kept run, one at a time
  --procs N            tests at a time (default 10)
  --nodes N            in three zones (default 3; three tests want 6)
  --kubernetes VERSION (default 1.37.2)
  --keep               leave the cluster there afterwards
  --directory DIR      where programs are kept (default: TURNOUT_CLUSTER, or turnout-cluster in the user's cache)
`;

/** Read the command line. @throws {TypeError | RangeError} in one line. */
export function readCommand(args: readonly string[]): ClusterCommand {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      backend: { type: "string", default: "nft" },
      family: { type: "string", default: "IPv4" },
      focus: { type: "string", default: WHOLE },
      procs: { type: "string", default: "10" },
      nodes: { type: "string", default: "3" },
      kubernetes: { type: "string", default: "1.37.2" },
      keep: { type: "boolean", default: false },
      again: { type: "boolean", default: false },
      directory: { type: "string" },
    },
  });
  const [action = "run", ...more] = positionals;
  if (values.again && values.focus !== WHOLE) throw new RangeError("--again chooses the tests itself: leave out --focus");
  if (!isAction(action) || more.length > 0) throw new RangeError(`${positionals.join(" ")}: up, down, move, or no word`);
  if (action === "move" && values.backend.startsWith("kube-proxy"))
    throw new RangeError(`move --backend ${values.backend}: a backend to move to`);
  return {
    action,
    proxy: oneOf("--backend", values.backend === "kube-proxy" ? "kube-proxy-nftables" : values.backend, [...BACKENDS, ...CONTROLS]),
    family: oneOf("--family", values.family, ["IPv4", "IPv6"]),
    focus: values.focus,
    procs: wholeNumber("--procs", values.procs, 1, 100),
    nodes: wholeNumber("--nodes", values.nodes, 1, 9),
    kubernetes: versionOf(values.kubernetes),
    isAgain: values.again,
    isKept: values.keep || action === "up",
    directory: values.directory,
  };
}

function isAction(word: string): word is ClusterCommand["action"] {
  return word === "run" || word === "up" || word === "down" || word === "move";
}

/** A version of Kubernetes. @throws {RangeError} in one line. */
export function versionOf(value: string): string {
  if (!/^1\.\d+\.\d+$/.test(value)) throw new RangeError(`--kubernetes ${value}: a version such as 1.36.3`);
  return value;
}
