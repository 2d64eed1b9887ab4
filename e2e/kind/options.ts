import { parseArgs } from "node:util";
import { oneOf, wholeNumber } from "@turnout/house/command-line";
import { BACKENDS, CONTROLS, versionOf } from "../cluster/options.ts";
import { WHOLE } from "../cluster/suite.ts";
import type { IpFamily } from "./cluster.ts";

/** What `npm run e2e:kind` is to do. */
export interface KindCommand {
  readonly action: "run" | "down";
  readonly proxy: string;
  readonly ipFamily: IpFamily;
  readonly kubernetes: string;
  /** The image of nodes; undefined: kind's choice. */
  readonly nodeImage: string | undefined;
  /** An archive of Turnout's image; undefined: it is packed. */
  readonly image: string | undefined;
  readonly focus: string;
  readonly procs: number;
  readonly isKept: boolean;
  readonly directory: string | undefined;
}

/** For `--help`. */
export const USAGE: string = `npm run e2e:kind -- [down] [options]
  The same as e2e:cluster on a cluster that kind makes. Needs kind and Docker.
  --backend NAME             ${BACKENDS.join(", ")}; or ${CONTROLS.join(", ")} (default nft)
  --ip-family NAME           ipv4, ipv6 or dual (default dual)
  --kubernetes VERSION       of the suite, and of the image of nodes (default 1.37.0, the choice of kind 0.33)
  --node-image IMAGE         the image of nodes (default: kind's choice)
  --image FILE               an archive of Turnout's image (default: it is packed, which needs Debian)
  --focus REGEXP, --procs N, --keep, --directory DIR   as with e2e:cluster
`;

/** Read the command line. @throws {TypeError | RangeError} in one line. */
export function readKindCommand(args: readonly string[]): KindCommand {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      backend: { type: "string", default: "nft" },
      "ip-family": { type: "string", default: "dual" },
      kubernetes: { type: "string", default: "1.37.0" },
      "node-image": { type: "string" },
      image: { type: "string" },
      focus: { type: "string", default: WHOLE },
      procs: { type: "string", default: "10" },
      keep: { type: "boolean", default: false },
      directory: { type: "string" },
    },
  });
  const words = positionals.join(" ");
  if (words !== "" && words !== "down") throw new RangeError(`${words}: down, or no word`);
  return {
    action: words === "down" ? "down" : "run",
    proxy: oneOf("--backend", values.backend, [...BACKENDS, ...CONTROLS]),
    ipFamily: oneOf("--ip-family", values["ip-family"], ["ipv4", "ipv6", "dual"]),
    kubernetes: versionOf(values.kubernetes),
    nodeImage: values["node-image"],
    image: values.image,
    focus: values.focus,
    procs: wholeNumber("--procs", values.procs, 1, 100),
    isKept: values.keep,
    directory: values.directory,
  };
}
