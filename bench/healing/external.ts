import { readFileSync } from "node:fs";
import type { NodePlace } from "@turnout/lab";
import { parse } from "yaml";

interface Scripts {
  readonly make: string;
  readonly look: string;
}

type Machine = Scripts & { readonly tools: string };

const FILE = parse(readFileSync(new URL("others.yaml", import.meta.url), "utf8")) as Scripts & Readonly<Record<"host" | "vm", Machine>>;

/** What others have in such a place. */
export function othersIn(isInVm: boolean): Others {
  const { make, look, tools } = FILE[isInVm ? "vm" : "host"];
  const script = (own: string, all: string): readonly string[] => ["-c", `${own}\nTOOLS='${tools}'\n${all}`];
  return {
    async make(node) {
      const { code, stderr } = await node.run("sh", script(make, FILE.make));
      if (code !== 0) throw new Error(`others can't have rules here: ${stderr}`);
    },
    look: async (node) => (await node.run("sh", script(look, FILE.look))).stdout,
  };
}

/** What others than the proxy have on a node. */
export interface Others {
  /** Have them make something. */
  make(node: NodePlace): Promise<void>;
  /** What they have now. */
  look(node: NodePlace): Promise<string>;
}
