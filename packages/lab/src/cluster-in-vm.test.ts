import { IPVS_MODULES, jsonFromVm, nodeCommand } from "@turnout/house/vm";
import { needs } from "@turnout/house/needs";
import { expect, it } from "vitest";

it("a cluster carries packets through IPVS in a guest", needs("uml", "ipvsadm", "ip"), async () => {
  const command = nodeCommand(new URL("./test-support/cluster-in-vm.ts", import.meta.url));
  expect(await jsonFromVm({ command, modules: IPVS_MODULES })).toEqual({ outcome: "ok", server: "pod" });
});
