import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";

const CHILD = fileURLToPath(new URL("../test-support/rights-child.ts", import.meta.url));
const NODE = [process.execPath, "--conditions=@turnout/source", CHILD];
/** CAP_DAC_READ_SEARCH, by which anybody can read the checkout, is bit 2, CAP_SETPCAP 8, CAP_NET_ADMIN 12, CAP_NET_RAW 13, CAP_SYS_ADMIN 21. */
const AMBIENT = "+net_admin,+net_raw,+sys_admin,+dac_read_search";

describe("rights of a process", needs("root", "setpriv"), () => {
  test.each([
    ["root", ["--inh-caps", "-all"]],
    ["somebody else with ambient capabilities", ["--reuid", "1000", "--clear-groups", "--inh-caps", AMBIENT, "--ambient-caps", AMBIENT]],
  ])("are given up by %s: in its main thread, in those of the pool, and in its programs", async (_who, as) => {
    const bounding = ["--bounding-set", "-all,+net_admin,+net_raw,+sys_admin,+setpcap"];
    const { stdout } = await promisify(execFile)("setpriv", [...(as.includes("--reuid") ? [] : bounding), ...as, "--", ...NODE]);
    const result = JSON.parse(stdout) as { readonly first: { readonly pool: readonly string[] }; readonly poolBefore: number };
    expect(result).toMatchObject({
      poolBefore: 4,
      inLook: as.includes("--reuid") ? "201004" : "201100",
      first: { main: "3000", child: ["CapPrm:", "0000000000001000", "NoNewPrivs:", "1"] },
      last: ["CAP_NET_ADMIN"],
    });
    expect(new Set(result.first.pool)).toEqual(new Set(["3000"]));
  });
});
