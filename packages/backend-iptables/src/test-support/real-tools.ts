import { spawnSync } from "node:child_process";
import type { ExecResult } from "@turnout/core";
import { createExec } from "@turnout/host";
import { heard } from "@turnout/fakes/iptables";

function ip(...args: readonly string[]): void {
  const { status, stderr } = spawnSync("ip", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`ip ${args.join(" ")}: ${stderr}`);
}

const exec = createExec();

/** The real programs in a network namespace of their own. For tests. */
export class RealTools {
  readonly #namespace: string;

  constructor(namespace: string) {
    this.#namespace = namespace;
    ip("netns", "add", namespace);
  }

  run(command: string, input?: string): Promise<ExecResult> {
    return exec.run("ip", ["netns", "exec", this.#namespace, ...command.split(" ")], input === undefined ? {} : { input });
  }

  /** Run a line of sh there. */
  async script(line: string): Promise<string> {
    return (await exec.run("ip", ["netns", "exec", this.#namespace, "sh", "-c", line])).stdout.trim();
  }

  /** Replace all that a variant's tool (e.g. `iptables-nft`) holds by a saved text. @throws {Error} when it refuses. */
  async load(tool: string, saved: string): Promise<void> {
    const empty = ["mangle", "nat", "filter"].map((table) => `*${table}\nCOMMIT\n`).join("");
    for (const input of [empty, saved]) {
      const answer = said(await this.run(`${tool}-restore`, input));
      if (answer !== "0") throw new Error(`${tool} can't begin like the fake: ${answer}`);
    }
  }

  close(): void {
    ip("netns", "del", this.#namespace);
  }
}

/** Generated and completed lines have the time in them. */
export function withoutComments(saved: string): string {
  return saved.replaceAll(/^#.*\n/gm, "");
}

/** What `iptables-save` printed, in any order of tables: legacy's is that of their first use in the namespace. */
export function savedContent(text: string): string {
  return withoutComments(text)
    .split(/(?<=^COMMIT\n)/m)
    .sort()
    .join("");
}

/** Lines that one has and the other hasn't; undefined: both saved the same. */
export function savedDifference(real: string, fake: string): unknown {
  const [one, other] = [savedContent(real), savedContent(fake)];
  if (one === other) return undefined;
  const without = (lines: string, others: string): readonly string[] => {
    const known = new Set(others.split("\n"));
    return lines
      .split("\n")
      .filter((line) => !known.has(line))
      .slice(0, 5);
  };
  return { onlyReal: without(one, other), onlyFake: without(other, one) };
}

/**
 * What a program said that both must say.
 *
 * Edges: which built-in chains nft has made in the kernel by then, which a jump to one shows, is left out.
 */
export function said({ code, stderr }: ExecResult): string {
  // A child that ends before it has read its input is none of a tool's complaints.
  const text = withoutComments(stderr).replace(/^\(stdin: .*\n/, "");
  return heard({ code, stderr: text.replaceAll("Operation not supported", "No such file or directory") });
}
