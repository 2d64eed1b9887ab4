import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { needs } from "@turnout/house/needs";
import { describe, expect, it } from "vitest";

const child = fileURLToPath(new URL("../test-support/ipset-child.ts", import.meta.url));
const flags = ["--conditions=@turnout/source", "--no-warnings"];
const SEED = Number(process.env["SEED"] ?? 7);

/** Play a scenario in a fresh network namespace, which goes with its process. */
async function inNamespace(scenario: readonly string[], before: readonly string[] = []): Promise<unknown> {
  const args = ["-n", ...before, process.execPath, ...flags, child, ...scenario];
  const { stdout } = await promisify(execFile)("unshare", args, { timeout: 100_000, killSignal: "SIGKILL" });
  return JSON.parse(stdout);
}

describe("the program ipset", needs("root", "netns", "ipset"), () => {
  it("carries out lines, names each that is refused and goes on, and reads sets back", async () => {
    const lines = "ipset could not apply a line: ";
    const portless: unknown = expect.stringContaining(
      "[tool_failed] ipset could not apply a change: Syntax error: 'x' is invalid as number",
    );
    const inA = (...entries: readonly string[]): unknown => ({ type: "hash:ip,port", options: "family inet maxelem 1048576", entries });
    expect(await inNamespace(["tool"])).toEqual({
      version: true,
      before: {},
      first: [
        ...Array.from({ length: 7 }, () => null),
        expect.stringContaining(
          `[invalid_object] ${lines}The value of the CIDR parameter of the IP address is invalid (add B fd00::1,tcp:80,::/0)`,
        ),
        null,
        expect.stringContaining(`[not_found] ${lines}The set with the given name does not exist (add NOPE 10.96.0.10,tcp:80)`),
        null,
        null,
        expect.stringContaining(`[limit_reached] ${lines}Hash is full, cannot add more elements (add FULL 1.1.1.3)`),
        expect.stringContaining(`[invalid_object] ${lines}Null-valued element`),
        null,
        expect.stringContaining(`[already_exists] ${lines}Set cannot be created: set with the same name already exists`),
        null,
        null,
        null,
      ],
      sets: {
        P: { type: "bitmap:port", options: "range 0-65535", entries: ["30080"] },
        B: {
          type: "hash:ip,port,net",
          options: "family inet6 maxelem 1048576",
          entries: ["fd00::1,tcp:80,::/1", "fd00::1,tcp:80,::102:304"],
        },
        A: inA("10.96.0.10,tcp:80"),
      },
      sizes: { P: 1, B: 2, FULL: 2 },
      swapped: [null, null, null, null],
      after: { A: inA("1.1.1.1,udp:1") },
      // What the tool had collected when it stumbled is given again.
      slip: [null, expect.stringContaining(`${lines}Syntax error: Second element is missing from 1.1.1.3.`), null],
      portless,
      kept: ["1.1.1.1,udp:1", "1.1.1.2,udp:2", "1.1.1.4,udp:4", "1.1.1.6,udp:6"],
      // What is refused again and again of one set takes nothing from the others.
      codes: { not_found: 100, limit_reached: 50, ok: 1 },
      names: ["A", "B", "FOREIGN", "FULL", "P"],
    });
  });

  it("says when it has no right to", needs("setpriv"), async () => {
    const denied: unknown = expect.stringContaining("[permission_denied]");
    const without = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin"];
    expect(await inNamespace(["refused"], without)).toEqual([denied, denied]);
  });
});

describe("the fake does what ipset does", needs("root", "netns", "ipset>=7"), () => {
  it("with what somebody might type, right or wrong", async () => {
    expect(await inNamespace(["oneByOne"])).toEqual([]);
  });

  it("with inputs made by chance", async () => {
    expect({ seed: SEED, found: await inNamespace(["random", String(SEED)]) }).toEqual({ seed: SEED, found: [] });
  });
});
