import type { Agent, Attempt, TargetRequest } from "@turnout/lab";
import { describe, expect, it } from "vitest";
import type { Site } from "./site.ts";
import { attemptWithWitness } from "./witness.ts";

const OK: Attempt = { outcome: "ok", latencyMs: 1 };
const SILENT: Attempt = { outcome: "timeout", latencyMs: 1 };
const WITNESS = "10.1.1.1";
const request = { address: "10.96.0.1", port: 80, timeoutMs: 100 };

/** A site of one pod, whose agents hear what is said for each round: of the one asked, and of the witness. */
function siteThatHears(rounds: readonly (readonly [asked: Attempt, witness: Attempt])[]): {
  readonly site: Site;
  readonly waits: number[];
} {
  const waits: number[] = [];
  const attempt = async ({ address, timeoutMs = 0 }: TargetRequest): Promise<Attempt> => {
    if (address !== WITNESS) waits.push(timeoutMs);
    return rounds[waits.length - 1]?.[address === WITNESS ? 1 : 0] ?? SILENT;
  };
  const pod = { name: "pod-1-1", address: () => WITNESS };
  const agent = (): Pick<Agent, "attempt"> => ({ attempt });
  return { site: { place: () => ({ agent }), cluster: { nodes: [{ pods: [pod] }] } } as unknown as Site, waits };
}

describe("silence counts beside a witness alone", () => {
  it("is believed when the witness answers", async () => {
    const { site, waits } = siteThatHears([[SILENT, OK]]);
    expect([await attemptWithWitness(site, "client1", request), waits]).toEqual([SILENT, [100]]);
  });

  it("is tried again, for longer, when nobody answers", async () => {
    const { site, waits } = siteThatHears([
      [SILENT, SILENT],
      [SILENT, SILENT],
      [OK, SILENT],
    ]);
    expect([await attemptWithWitness(site, "client1", request), waits]).toEqual([OK, [100, 200, 300]]);
  });

  it("tells nothing when nobody ever answers", async () => {
    const { site } = siteThatHears([]);
    await expect(attemptWithWitness(site, "client1", request)).rejects.toThrow("silence tells nothing");
  });
});
