import type { FuzzTarget } from "@turnout/house/fuzz";
import { readSaved } from "@turnout/host/ipset/text";
import { readLook } from "../observe.ts";
import { ipvsModule } from "../module.ts";

const OPTIONS = ipvsModule.parseOptions({});

/** What `ipset save` printed, and after a line `--` what `iptables-save` printed. */
function readHost(input: Buffer): void {
  const [sets = "", rules = ""] = input.toString("utf8").split("\n--\n");
  for (const family of ["IPv4", "IPv6"] as const) {
    const look = {
      saved: { filter: rules, nat: rules, mangle: rules },
      sets: readSaved(sets),
      listing: { virtualServers: [], firewallMarks: [] },
      bound: [],
      hostAddresses: [],
      parameters: new Map<string, string>(),
      timeouts: undefined,
    };
    readLook(look, family, OPTIONS);
  }
}

/** What reads sets and rules as their tools print them. */
export const FUZZ_TARGETS: readonly FuzzTarget[] = [{ name: "ipvs-objects", form: "text", run: readHost }];
